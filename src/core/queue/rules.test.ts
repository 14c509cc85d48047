/** The small rules: placement, retries, node status, roles, payloads, settings. */

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Random } from "../base/random.ts";
import { heartbeatAges, nodeStatus } from "./node-status.ts";
import { encodePayload } from "./payload.ts";
import { canonicalJson, explainPlacement, type Placement, refusal } from "./placement.ts";
import { type Backoff, backoffProblem, retryDelayMs } from "./retry.ts";
import { bootState, nextRoleDeadline, stepRole } from "./role.ts";
import { defaultSettings, settingProblems } from "./settings.ts";

describe("placement", () => {
  const node = {
    nodeId: "a",
    executors: ["e", "f"],
    capabilities: { gpu: "nvidia", zones: ["x", "y"], big: true, mem: "16" },
  };
  it.each<[string, Placement | null, RegExp | undefined]>([
    ["nothing", null, undefined],
    ["an executor it has", { requires_executors: ["f"] }, undefined],
    ["an executor it lacks", { requires_executors: ["g"] }, /no executor "g"/],
    ["its own name", { allowed_nodes: ["a", "b"] }, undefined],
    ["other names", { allowed_nodes: ["b"] }, /not among allowed_nodes/],
    ["an empty list of nodes", { allowed_nodes: [] }, /not among allowed_nodes/],
    ["not being it", { forbidden_nodes: ["a"] }, /among forbidden_nodes/],
    ["a capability it has", { requires_capabilities: { gpu: "nvidia", big: true } }, undefined],
    ["one of several values", { requires_capabilities: { zones: "y" } }, undefined],
    ["a number that was given as text", { requires_capabilities: { mem: 16 } }, undefined],
    ["another value", { requires_capabilities: { gpu: "amd" } }, /gpu=amd \(it has nvidia\)/],
    ["a capability it lacks", { requires_capabilities: { tpu: 1 } }, /tpu=1 \(it has none\)/],
    ["a name of every object", { requires_capabilities: { constructor: "x" } }, /it has none/],
  ])("of a task that asks for %s (TQ-36)", (_, placement, why) => {
    const answer = refusal("e", placement, node);
    if (why === undefined) expect(answer).toBeUndefined();
    else expect(answer).toMatch(why);
  });

  it("explains to a person why a task waits", () => {
    expect(explainPlacement("e", null, [])).toBe("no node is there to run it");
    expect(explainPlacement("e", null, [node])).toBe("waits for a free slot on a");
    expect(explainPlacement("z", null, [node])).toBe('no node has the executor "z"');
  });

  it("serialises equal values as equal text, whatever the order of their keys", () => {
    expect(canonicalJson({ b: [1, { d: 1, c: null }], a: "x" })).toBe(
      '{"a":"x","b":[1,{"c":null,"d":1}]}',
    );
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(JSON.parse(canonicalJson(value))).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });
});

describe("retry delay", () => {
  it("is between zero and a ceiling that doubles up to the maximum (TQ-23)", () => {
    const random = new Random(1);
    const policy = { baseMs: 100, maxMs: 1_000 };
    for (const [attempt, ceiling] of [
      [1, 100],
      [2, 200],
      [3, 400],
      [5, 1_000],
      [90, 1_000],
    ] as const) {
      const delays = Array.from({ length: 300 }, () => retryDelayMs(policy, [], attempt, random));
      expect(Math.min(...delays)).toBeGreaterThanOrEqual(0);
      expect(Math.max(...delays)).toBeLessThan(ceiling);
      expect(Math.max(...delays)).toBeGreaterThan(ceiling * 0.9);
    }
  });

  const policy = { baseMs: 100, maxMs: 1_000 };
  const waits = (...said: (Backoff | null)[]) =>
    [1, 2, 3, 4, 90].map((failures) => retryDelayMs(policy, said, failures, new Random(2)));

  it.each<[Backoff, readonly number[]]>([
    [{ jitter: 0 }, [100, 200, 400, 800, 1_000]],
    [{ jitter: 0, base: 1, factor: 3, cap: 20 }, [1_000, 3_000, 9_000, 20_000, 20_000]],
    [{ jitter: 0, kind: "linear", base: 2, cap: 7 }, [2_000, 4_000, 6_000, 7_000, 7_000]],
    [{ jitter: 0, kind: "linear", factor: 0.5 }, [100, 150, 200, 250, 1_000]],
    [{ jitter: 0, kind: "constant", base: 60 }, [60_000, 60_000, 60_000, 60_000, 60_000]],
    [{ base: 0 }, [0, 0, 0, 0, 0]],
  ])("of %j grows as defined, with missing fields from the node", (said, expected) => {
    expect(waits(said)).toEqual(expected);
  });

  it("randomises the share of jitter, and uses the first backoff defined", () => {
    const random = new Random(3);
    const half = { kind: "constant", base: 1, jitter: 0.5 } as const;
    const delays = Array.from({ length: 300 }, () => retryDelayMs(policy, [half], 5, random));
    expect(Math.min(...delays)).toBeGreaterThanOrEqual(500);
    expect(Math.min(...delays)).toBeLessThan(550);
    expect(Math.max(...delays)).toBeGreaterThan(950);
    const fixed = (base: number) => ({ kind: "constant", base, jitter: 0 }) as const;
    expect(waits(null, fixed(2), fixed(3))[0]).toBe(2_000);
    expect(waits(null, null, fixed(3))[0]).toBe(3_000);
  });

  it.each<[Backoff, RegExp]>([
    [{ base: -1 }, /base is 0/],
    [{ base: Number.NaN }, /base is 0/],
    [{ base: 9, cap: 3 }, /cap must not be below base/],
    [{ factor: 0.5 }, /factor is 1/],
    [{ jitter: 2 }, /jitter is 0 to 1/],
    [{ kind: "odd" as "linear" }, /kind is one of/],
  ])("rejects %j", (said, problem) => {
    expect(backoffProblem(said)).toMatch(problem);
  });
});

describe("node status", () => {
  it("follows the age of the heartbeat (TQ-4)", () => {
    const ages = heartbeatAges(5_000);
    expect([0, 14_999, 15_000, 29_999, 30_000].map((age) => nodeStatus(age, ages))).toEqual([
      "healthy",
      "healthy",
      "stale",
      "stale",
      "dead",
    ]);
  });
});

describe("role", () => {
  const options = { role: "auto", leaseMs: 30_000, renewMs: 10_000 } as const;

  it("elects at boot, leads when it acquires the lease, works when another has it (TQ-1)", () => {
    const boot = bootState(options, 5);
    expect(nextRoleDeadline(boot)).toBe(5);
    expect(stepRole(options, boot, { kind: "held" }, 5)).toEqual({ kind: "working", tryAt: 2_505 });
    const leading = stepRole(options, boot, { kind: "acquired", epoch: 3, sentAt: 5 }, 9);
    expect(leading).toEqual({ kind: "leading", epoch: 3, renewAt: 10_005, trustedUntil: 27_005 });
  });

  it("counts trust from before the renewal was sent, and stops leading when it runs out", () => {
    let state = stepRole(
      options,
      bootState(options, 0),
      { kind: "acquired", epoch: 1, sentAt: 0 },
      1,
    );
    state = stepRole(options, state, { kind: "renewed", sentAt: 10_000 }, 15_000);
    expect(state).toMatchObject({ renewAt: 20_000, trustedUntil: 37_000 });
    state = stepRole(options, state, { kind: "renewalFailed" }, 30_000);
    expect(state).toMatchObject({ kind: "leading", renewAt: 32_500 });
    state = stepRole(options, state, { kind: "renewalFailed" }, 37_000);
    expect(state.kind).toBe("working");
  });

  it("steps down at once when its renewal is refused (TQ-3)", () => {
    const leading = stepRole(
      options,
      bootState(options, 0),
      { kind: "acquired", epoch: 1, sentAt: 0 },
      0,
    );
    expect(stepRole(options, leading, { kind: "renewalRefused" }, 100)).toEqual({
      kind: "working",
      tryAt: 2_600,
    });
  });

  it("never elects a worker or an observer", () => {
    expect(nextRoleDeadline(bootState({ ...options, role: "worker" }, 0))).toBeNull();
    expect(nextRoleDeadline(bootState({ ...options, role: "observer" }, 0))).toBeNull();
  });
});

describe("payload (TQ-14)", () => {
  it.each([
    ["a function", () => 1, /function/],
    ["a cycle", cycle(), /cannot be written as JSON/],
    ["NUL", { a: ["x\0"] }, /NUL/],
    ["half a pair", "\ud83d", /surrogate/],
    ["too much", "x".repeat(1_048_575), /the limit is 1048576/],
    ["too much in few characters", "€".repeat(400_000), /1200002 bytes/],
  ])("rejects %s", (_, value, message) => {
    const encoded = encodePayload(value, "input");
    expect(encoded.ok ? "" : encoded.problem).toMatch(message);
  });

  it("accepts text that only looks like an escape, whole pairs, and an empty payload", () => {
    expect(encodePayload("\\u0000", "input")).toEqual({ ok: true, text: '"\\\\u0000"' });
    expect(encodePayload("😀", "input").ok).toBe(true);
    expect(encodePayload(undefined, "input")).toEqual({ ok: true, text: "null" });
    expect(encodePayload("x".repeat(1_048_574), "input").ok).toBe(true);
  });
});

function cycle(): unknown {
  const value: { self?: unknown } = {};
  value.self = value;
  return value;
}

describe("settings", () => {
  it.each([
    [{}, undefined],
    // TQ-33
    [{ leaseCleanupMs: 30_000 }, /cleanup interval .* must be below the task lease/],
    [{ leaderRenewMs: 20_000 }, /renew at least twice per lease/],
    [{ taskLeaseMs: 0.5, leaseCleanupMs: 0.1 }, undefined],
    [{ maxParallel: 1.5 }, /whole number/],
    [{ pollIntervalMs: 0 }, /pollIntervalMs must be more than zero/],
    [{ retryMaxMs: 1 }, /longest retry delay/],
    [{ retentionMs: Number.NaN }, /retentionMs/],
  ])("with %o", (change, message) => {
    const problems = settingProblems({ ...defaultSettings, ...change }).join("; ");
    if (message === undefined) expect(problems).toBe("");
    else expect(problems).toMatch(message);
  });
});
