import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { PRIORITIES, type Priority } from "../../../wire/registry.ts";
import type { Millis } from "../../base/brand.ts";
import { OVERLOAD_STATES } from "../views.ts";
import { isShed, OPERATION_NAMES, OPERATIONS, type Operation, priorityOf } from "./operations.ts";
import { RequestGuard } from "./request-guard.ts";

const LIMITS = { global: 100, high: 50, normal: 30, low: 20 };
/** Lag that causes each state by itself. */
const LAG_MS = { healthy: 0, busy: 201, stressed: 501, overloaded: 2_001 } as const;

function pressed(state: keyof typeof LAG_MS): RequestGuard {
  const guard = new RequestGuard(LIMITS);
  guard.sample({ lagMs: LAG_MS[state], cpu: 0, memory: 0, queue: 0 }, 0 as Millis);
  return guard;
}

describe("shedding by priority", () => {
  it("follows the table of AD-22, and never sheds critical requests (AD-22.2, AD-22.3)", () => {
    const table = OVERLOAD_STATES.map((state) => [
      state,
      PRIORITIES.filter((priority) => isShed(priority, state)),
    ]);
    expect(Object.fromEntries(table)).toEqual({
      healthy: [],
      busy: ["low"],
      stressed: ["normal", "low"],
      overloaded: ["high", "normal", "low"],
    });
  });

  it.each(OVERLOAD_STATES)(
    "serves the required requests when %s, and gives the others a retry time",
    (state) => {
      const guard = pressed(state);
      for (const operation of OPERATION_NAMES) {
        const refused = guard.admit(operation, "one", 0 as Millis);
        if (isShed(priorityOf(operation), state)) {
          expect(refused).toMatchObject({ reason: "overloaded" });
          expect(refused?.retryAfterMs).toBeGreaterThan(0);
        } else expect(refused).toBeNull();
      }
    },
  );

  it("rejects nothing more important than what it serves, whatever is in flight", () => {
    const priorities = fc.constantFrom(...OPERATION_NAMES);
    fc.assert(
      fc.property(fc.array(priorities, { maxLength: 200 }), (asked) => {
        const guard = new RequestGuard(LIMITS);
        for (const operation of asked) guard.admit(operation, null, 0 as Millis);
        const served = OPERATION_NAMES.filter(
          (operation) => guard.admit(operation, null, 0 as Millis) === null,
        );
        expect(served).toEqual(expect.arrayContaining(["cancel", "status"] satisfies Operation[]));
      }),
      { numRuns: 200 },
    );
  });

  it("gives each rejected request a retry time, and counts them by priority (AD-22.8)", () => {
    const asked = fc.tuple(
      fc.constantFrom(...OPERATION_NAMES),
      fc.constantFrom(...OVERLOAD_STATES),
    );
    fc.assert(
      fc.property(fc.array(asked, { maxLength: 300 }), (steps) => {
        const guard = new RequestGuard(LIMITS);
        const refused: Record<Priority, number> = { critical: 0, high: 0, normal: 0, low: 0 };
        for (const [at, [operation, state]] of steps.entries()) {
          // Old samples are forgotten after a minute.
          const now = (at * 61_000) as Millis;
          guard.sample({ lagMs: LAG_MS[state], cpu: 0, memory: 0, queue: 0 }, now);
          const answer = guard.admit(operation, null, now);
          if (answer === null) continue;
          refused[priorityOf(operation)]++;
          expect(answer.reason).toBe("overloaded");
          expect(answer.retryAfterMs).toBeGreaterThan(0);
          expect(answer.message).toContain(operation);
        }
        expect(guard.view(0 as Millis).shed).toEqual(refused);
        expect(refused.critical).toBe(0);
      }),
      { numRuns: 50 },
    );
  });

  it("uses the latest measurement of every kind (C10-11)", () => {
    const IDLE = { lagMs: 0, cpu: 0, memory: 0, queue: 0 };
    for (const measured of ["memory", "queue"] as const) {
      const guard = new RequestGuard(LIMITS);
      const isServed = (fill: number): boolean => {
        guard.sample({ ...IDLE, [measured]: fill }, 0 as Millis);
        return guard.admit("submit", null, 0 as Millis) === null;
      };
      expect([0.5, 0.99, 0.95, 0.951, 0].map(isServed)).toEqual([true, false, true, false, true]);
    }
  });

  it("keeps the slots of a class occupied until its requests have finished", () => {
    const guard = new RequestGuard(LIMITS);
    const ask = () => guard.admit("list", null, 0 as Millis);
    for (let i = 0; i < LIMITS.low; i++) expect(ask()).toBeNull();
    expect(ask()).toMatchObject({ reason: "overloaded", retryAfterMs: 500 });
    guard.done("list", 1, 0 as Millis);
    expect(ask()).toBeNull();
  });
});

describe("rate limits", () => {
  const limited = OPERATION_NAMES.filter((one) => OPERATIONS[one].perTenSeconds !== null);

  it.each(limited)(
    "%s: limits one caller per 10 s, and admits again exactly then (AD-24.1, AD-24.4, AD-24.5)",
    (operation) => {
      const guard = new RequestGuard({ global: 0, high: 0, normal: 0, low: 0 });
      const most = OPERATIONS[operation].perTenSeconds ?? 0;
      for (let i = 0; i < most; i++)
        expect(guard.admit(operation, "greedy", 0 as Millis)).toBeNull();
      const refused = guard.admit(operation, "greedy", 0 as Millis);
      expect(refused?.reason).toBe("rateLimited");
      const wait = refused?.retryAfterMs ?? 0;
      expect(guard.admit(operation, "modest", 0 as Millis)).toBeNull();
      expect(guard.admit(operation, "greedy", (wait - 2) as Millis)?.reason).toBe("rateLimited");
      expect(guard.admit(operation, "greedy", wait as Millis)).toBeNull();
      expect(guard.view(wait as Millis).rateLimited).toBe(2);
    },
  );

  it("apply per caller and kind, and evict the caller that was silent longest (AD-24)", () => {
    const guard = new RequestGuard({ global: 0, high: 0, normal: 0, low: 0 });
    const ask = (caller: string, operation: Operation = "cancel"): boolean =>
      guard.admit(operation, caller, 0 as Millis) === null;
    const empty = (caller: string): void => {
      for (let count = 0; count < 20; count++) expect(ask(caller)).toBe(true);
      expect(ask(caller)).toBe(false);
    };
    empty("one");
    expect([ask("one", "steer"), ask("two")]).toEqual([true, true]);
    empty("three");
    for (let at = 0; at < 9_998; at++) {
      ask(`other ${at}`);
      // The third keeps asking, and is remembered for it.
      if (at % 1_000 === 0) expect(ask("three")).toBe(false);
    }
    expect(ask("three")).toBe(false);
    // Ten thousand callers have asked since: its budget starts again.
    expect(ask("one")).toBe(true);
  });

  it("do not apply to members of the cluster", () => {
    const guard = new RequestGuard({ global: 0, high: 0, normal: 0, low: 0 });
    for (let i = 0; i < 1_000; i++) expect(guard.admit("cancel", null, 0 as Millis)).toBeNull();
  });
});

it("ignores a second of full CPU, and counts five as overload", () => {
  const guard = new RequestGuard(LIMITS);
  const sample = () => guard.sample({ lagMs: 0, cpu: 1, memory: 0, queue: 0 }, 0 as Millis);
  sample();
  sample();
  expect(guard.view(0 as Millis).state).toBe("healthy");
  for (let i = 0; i < 8; i++) sample();
  expect(guard.view(0 as Millis).state).toBe("stressed");
});

it("logs changes of its state with the reason", () => {
  const guard = new RequestGuard(LIMITS);
  const sample = (memory: number) =>
    guard.sample({ lagMs: 3, cpu: 0, memory, queue: 0 }, 0 as Millis);
  expect(sample(0.5)).toEqual([]);
  expect(sample(0.9)).toMatchObject([
    { level: "warn", fields: { before: "healthy", state: "stressed", memoryPercent: 90 } },
  ]);
  expect(sample(0.9)).toEqual([]);
  expect(sample(0.5)).toMatchObject([{ level: "info", fields: { state: "healthy" } }]);
});

it.each([
  [200, "healthy"],
  [201, "busy"],
  [501, "stressed"],
  [2_001, "overloaded"],
])("G-20: a log that takes %i ms makes its node %s", (logMs, state) => {
  const guard = new RequestGuard(LIMITS);
  guard.sample({ lagMs: 0, cpu: 0, memory: 0, queue: 0 }, 0 as Millis, logMs);
  expect(guard.view(0 as Millis)).toMatchObject({ state, logMs });
});

it.each([
  [0.7, "healthy"],
  [0.71, "busy"],
  [0.86, "stressed"],
  [0.96, "overloaded"],
])("G-20: a log whose queue is full to %f makes its node %s", (queue, state) => {
  const guard = new RequestGuard(LIMITS);
  guard.sample({ lagMs: 0, cpu: 0, memory: 0, queue }, 0 as Millis);
  expect(guard.view(0 as Millis).state).toBe(state);
});

it("knows the priority of every client request", () => {
  const importance: Record<Operation, Priority> = {
    cancel: "critical",
    status: "critical",
    submit: "high",
    steer: "high",
    upload: "high",
    watch: "normal",
    list: "low",
  };
  for (const operation of OPERATION_NAMES)
    expect(priorityOf(operation)).toBe(importance[operation]);
});

describe("BP-6: a node at CRITICAL", () => {
  const pressed = (lagMs: number) => ({ lagMs, cpu: 0, memory: 0, queue: 0 });
  const NEW_WORK: readonly Operation[] = ["submit", "upload"];

  function critical(): RequestGuard {
    const guard = new RequestGuard(LIMITS);
    const logs = [1, 2, 3].flatMap(() => guard.sample(pressed(2_500), 0 as Millis));
    expect(logs).toContainEqual({
      ...{ kind: "log", level: "warn", event: "degradation.changed" },
      fields: { from: "normal", to: "critical", lagMs: 2_500, health: 0 },
    });
    return guard;
  }

  it("rejects new work with a retry time, and finishes running work", () => {
    const guard = critical();
    // The detector sees only good samples from here on; the level waits for ten.
    for (let one = 0; one < 9; one++) guard.sample(pressed(0), 100_000 as Millis);
    expect(guard.view(100_000 as Millis).state).toBe("healthy");
    expect(guard.view(100_000 as Millis).degradation.level).toBe("critical");
    for (const operation of OPERATION_NAMES) {
      const refused = guard.admit(operation, null, 100_000 as Millis);
      if (!NEW_WORK.includes(operation)) expect(refused).toBeNull();
      else {
        expect(refused).toMatchObject({ reason: "overloaded" });
        expect(refused?.message).toContain("this node is critical");
        expect(refused?.retryAfterMs).toBeGreaterThan(0);
      }
    }
    guard.sample(pressed(0), 100_000 as Millis);
    expect(guard.admit("submit", null, 100_000 as Millis)).toBeNull();
  });

  it("triples the timeouts of others, and restores them when it has recovered", () => {
    const guard = critical();
    expect(guard.degraded.timeouts).toBe(3);
    for (let one = 0; one < 10; one++) guard.sample(pressed(0), 0 as Millis);
    expect(guard.degraded.timeouts).toBe(1);
    expect(guard.view(0 as Millis).degradation.entered).toMatchObject({ critical: 1, normal: 1 });
  });
});
