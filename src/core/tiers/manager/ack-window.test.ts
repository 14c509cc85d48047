import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { millis } from "../../base/brand.ts";
import { nodeId } from "../../base/ids.ts";
import { JOB } from "../../ledger/job/testing/events.ts";
import {
  ACK_WINDOW_DEFAULTS,
  type AckWindowEffect,
  type AckWindowInput,
  AckWindows,
} from "./ack-window.ts";

const config = ACK_WINDOW_DEFAULTS;
const W = nodeId("worker-1");

class Bench {
  readonly windows: AckWindows;
  now = 0;
  effects: AckWindowEffect[] = [];

  constructor(changes: Partial<typeof config> = {}) {
    this.windows = new AckWindows({ ...config, ...changes });
  }

  step(input: AckWindowInput): this {
    this.effects.push(...this.windows.step(input, millis(this.now)));
    return this;
  }

  start(workflowId = "w", attempt = 1): this {
    return this.step({ kind: "start", workflowId, jobId: JOB, workerId: W, attempt });
  }

  hear(what: "progress" | "completion" | "error" = "progress", attempt = 1): this {
    return this.step({ kind: "communication", workflowId: "w", attempt, what });
  }

  healthy(healthy: boolean): this {
    const asked = this.effects.findLast((it) => it.kind === "checkHealth");
    if (asked?.kind !== "checkHealth") throw new Error("no health check was asked for");
    return this.step({ kind: "health", workflowId: "w", check: asked.check, healthy });
  }

  advance(ms: number): this {
    const until = this.now + ms;
    for (;;) {
      const deadline = this.windows.nextDeadline();
      if (deadline === null || deadline > until) break;
      this.now = Math.max(this.now, deadline);
      this.step({ kind: "tick" });
    }
    this.now = until;
    return this;
  }

  get state(): string | undefined {
    return this.windows.windowOf("w")?.state;
  }

  get kinds(): string[] {
    return this.effects.map(({ kind }) => kind);
  }
}

const expired = (): Bench => new Bench().start().advance(5_000);
const extended = (): Bench => expired().healthy(true);

describe("an acknowledgement window", () => {
  it("waits from the moment of dispatch, without any effect that could block (ACKW-1)", () => {
    const bench = new Bench().start();
    expect([bench.state, bench.kinds]).toEqual(["AWAITING_ACK", []]);
    expect(bench.windows.nextDeadline()).toBe(5_000);
  });

  it.each(["progress", "completion", "error"] as const)("is confirmed by %s", (what) => {
    for (const bench of [new Bench().start(), extended(), expired()]) {
      bench.effects = [];
      bench.hear(what);
      expect(bench.state).toBe("CONFIRMED");
      expect(bench.effects).toEqual([{ kind: "confirmed", workflowId: "w", what }]);
      expect(bench.windows.sizes.timers).toBe(0);
    }
  });

  it("expires at 5 s, not before, and asks for the worker's health", () => {
    expect(new Bench().start().advance(4_999).state).toBe("AWAITING_ACK");
    const bench = expired();
    expect([bench.state, bench.kinds]).toEqual(["WINDOW_EXPIRED", ["checkHealth"]]);
  });

  it("is extended for a healthy worker by the extension's own length (ACKW-4)", () => {
    const bench = new Bench({ extensionMs: 700 }).start().advance(5_000).healthy(true);
    expect(bench.state).toBe("EXTEND_WINDOW");
    expect(bench.windows.nextDeadline()).toBe(5_700);
  });

  it("is given up for an unhealthy worker: first the attempt, then the cancel, then the dispatch", () => {
    const bench = expired().healthy(false);
    expect(bench.state).toBe("RESCHEDULE");
    expect(bench.effects.slice(1)).toEqual([
      { kind: "advanceAttempt", workflowId: "w", attempt: 2 },
      { kind: "cancelWorker", workflowId: "w", workerId: W },
      {
        kind: "reschedule",
        workflowId: "w",
        jobId: JOB,
        attempt: 2,
        why: "the worker is unhealthy",
      },
    ]);
    expect(bench.windows.workflowsToReschedule()).toHaveLength(1);
  });

  it("is given up after three extensions, 20 s in all, healthy or not", () => {
    const bench = new Bench().start();
    for (let i = 0; i < 3; i++) bench.advance(5_000).healthy(true);
    expect([bench.now, bench.state]).toEqual([15_000, "EXTEND_WINDOW"]);
    bench.advance(4_999);
    expect(bench.state).toBe("EXTEND_WINDOW");
    bench.advance(1);
    expect([bench.now, bench.state]).toEqual([20_000, "RESCHEDULE"]);
    expect(bench.kinds.filter((it) => it === "checkHealth")).toHaveLength(3);
  });

  it("without health checks goes straight to rescheduling (ACKW-5)", () => {
    const bench = new Bench({ healthCheckOnExpire: false }).start().advance(5_000);
    expect([bench.state, bench.kinds[0]]).toEqual(["RESCHEDULE", "advanceAttempt"]);
  });

  it("takes silence of the health check for ill health", () => {
    expect(expired().advance(config.healthCheckTimeoutMs).state).toBe("RESCHEDULE");
  });
});

describe("races", () => {
  it("a word that lands during the health check stands, whatever the check says (ACKW-3)", () => {
    for (const verdict of [true, false]) {
      const bench = expired().hear().healthy(verdict).advance(60_000);
      expect(bench.state).toBe("CONFIRMED");
      expect(bench.kinds).toEqual(["checkHealth", "confirmed"]);
    }
  });

  it("a check that returns after the window was removed, or started anew, is passed over", () => {
    const gone = expired().step({ kind: "complete", workflowId: "w" }).healthy(false);
    expect(gone.kinds).toEqual(["checkHealth"]);
    const anew = expired().start("w", 2).healthy(false);
    expect(anew.state).toBe("AWAITING_ACK");
  });

  it("an answer that comes twice counts once", () => {
    expect(extended().healthy(true).healthy(false).state).toBe("EXTEND_WINDOW");
  });

  it("words of a given-up attempt neither confirm nor revive (ACKW-6)", () => {
    const bench = expired().healthy(false).hear("completion");
    expect([bench.state, bench.kinds.at(-1)]).toEqual(["RESCHEDULE", "stale"]);
    bench.start("w", 2).hear("completion", 1);
    expect([bench.state, bench.kinds.at(-1)]).toEqual(["AWAITING_ACK", "stale"]);
    expect(bench.hear("progress", 2).state).toBe("CONFIRMED");
  });

  it("words for a window that is gone are confirmed (ACKW-2)", () => {
    expect(new Bench().hear().kinds).toEqual(["confirmed"]);
  });

  it("an attempt that is not newer does not replace a window", () => {
    const bench = new Bench().start("w", 3).start("w", 3).start("w", 2);
    expect(bench.kinds).toEqual(["refused", "refused"]);
    expect(bench.windows.windowOf("w")?.attempt).toBe(3);
  });
});

describe("leaks (ACKW-7)", () => {
  it("100,000 windows opened and closed leave no window, timer or job", () => {
    const bench = new Bench();
    for (let at = 0; at < 100_000; at++) bench.start(`w${at}`);
    expect(bench.windows.sizes).toEqual({ windows: 100_000, timers: 100_000, jobs: 1 });
    for (let at = 0; at < 100_000; at++) bench.step({ kind: "complete", workflowId: `w${at}` });
    expect(bench.windows.sizes).toEqual({ windows: 0, timers: 0, jobs: 0 });
    expect(bench.windows.nextDeadline()).toBeNull();
  });

  it("the end of a job removes its windows, and more than the bound are refused", () => {
    const bench = new Bench({ windowsMax: 2 }).start("a").start("b").start("c");
    expect(bench.kinds).toEqual(["refused"]);
    bench.step({ kind: "jobEnded", jobId: JOB });
    expect(bench.windows.sizes).toEqual({ windows: 0, timers: 0, jobs: 0 });
  });

  it("in any order of inputs a timer exists exactly for windows that still wait", () => {
    const move = fc.constantFrom("hear", "healthy", "ill", "wait", "complete", "restart");
    fc.assert(
      fc.property(fc.array(move, { maxLength: 30 }), (moves) => {
        const bench = new Bench().start();
        let attempt = 1;
        for (const one of moves) {
          const checked = bench.kinds.includes("checkHealth");
          if (one === "hear") bench.hear("progress", attempt);
          else if (one === "wait") bench.advance(2_500);
          else if (one === "complete") bench.step({ kind: "complete", workflowId: "w" });
          else if (one === "restart") bench.start("w", ++attempt);
          else if (checked) bench.healthy(one === "healthy");
          const waits = ["AWAITING_ACK", "WINDOW_EXPIRED", "EXTEND_WINDOW"];
          expect(bench.windows.sizes.timers).toBe(waits.includes(bench.state ?? "") ? 1 : 0);
        }
      }),
      { numRuns: 300 },
    );
  });
});
