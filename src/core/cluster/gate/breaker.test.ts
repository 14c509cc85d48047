import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { millis } from "../../base/brand.ts";
import {
  BREAKER_DEFAULTS,
  type BreakerEffect,
  type BreakerInput,
  CircuitBreaker,
} from "./breaker.ts";

const config = BREAKER_DEFAULTS;

class Bench {
  readonly breaker: CircuitBreaker<string>;
  now = 0;
  effects: BreakerEffect<string>[] = [];
  calls: number[] = [];

  constructor(changes: Partial<typeof config> = {}) {
    this.breaker = new CircuitBreaker({ ...config, ...changes });
  }

  step(input: BreakerInput<string>): this {
    const effects = this.breaker.step(input, millis(this.now));
    this.effects.push(...effects);
    for (const effect of effects) {
      if (effect.kind === "send" || effect.kind === "ping") this.calls.push(effect.call);
    }
    return this;
  }

  request(op: string, whenOpen: "queue" | "reject" = "queue"): this {
    return this.step({ kind: "request", op, whenOpen });
  }

  /** Completes the oldest call. */
  ok(): this {
    return this.step({ kind: "succeeded", call: this.calls.shift() ?? -1 });
  }

  fail(done = 0): this {
    return this.step({ kind: "failed", call: this.calls.shift() ?? -1, done });
  }

  advance(ms: number): this {
    const until = this.now + ms;
    for (;;) {
      const deadline = this.breaker.nextDeadline();
      if (deadline === null || deadline > until) break;
      this.now = Math.max(this.now, deadline);
      this.step({ kind: "tick" });
    }
    this.now = until;
    return this;
  }

  look(): string[] {
    const seen = this.effects.map(brief);
    this.effects = [];
    return seen;
  }

  get state(): string {
    return this.breaker.snapshot().state;
  }
}

function brief(effect: BreakerEffect<string>): string {
  switch (effect.kind) {
    case "send":
      return `send ${effect.ops.join(",")}`;
    case "ping":
      return "ping";
    case "rejected":
      return `rejected ${effect.op}: ${effect.reason}`;
    case "stateChanged":
      return `${effect.from} → ${effect.to} after ${effect.failures}`;
    case "replayed":
      return `replayed ${effect.count}`;
    default:
      return `${effect.kind} ${effect.op}`;
  }
}

const opened = (changes: Partial<typeof config> = {}): Bench => {
  const bench = new Bench(changes);
  for (let i = 1; i <= 5; i++) bench.request(`f${i}`).fail();
  bench.look();
  return bench;
};

describe("a closed circuit", () => {
  it("passes requests and opens at the fifth consecutive failure", () => {
    const bench = new Bench();
    for (let i = 1; i <= 4; i++) bench.request(`f${i}`).fail();
    expect(bench.state).toBe("CLOSED");
    bench.request("f5").fail();
    expect(bench.look().slice(-2)).toEqual(["send f5", "CLOSED → OPEN after 5"]);
  });

  it("resets the failure count with any success (CB-1)", () => {
    const bench = new Bench();
    for (let i = 0; i < 20; i++) {
      for (let k = 0; k < 4; k++) bench.request("f").fail();
      bench.request("ok").ok();
    }
    expect(bench.state).toBe("CLOSED");
  });

  it("limits the calls in flight", () => {
    const bench = new Bench({ inFlightMax: 2 }).request("a").request("b").request("c", "reject");
    expect(bench.look()).toEqual(["send a", "send b", "rejected c: BUSY"]);
  });
});

describe("an open circuit", () => {
  it("queues or rejects as the caller chooses, never both, and sends nothing (CB-2)", () => {
    const bench = opened().request("q").request("r", "reject");
    expect(bench.look()).toEqual(["queued q", "rejected r: CIRCUIT_OPEN"]);
    expect(bench.breaker.snapshot().queued).toBe(1);
  });

  it("has a bounded queue and rejects when it is full (CB-3)", () => {
    const bench = opened({ queueMax: 2 }).request("a").request("b").request("c");
    expect(bench.look()).toEqual(["queued a", "queued b", "rejected c: QUEUE_FULL"]);
  });

  it("expires an entry after 60 s without sending it", () => {
    const bench = opened({ openTimeoutMs: 300_000 }).request("old").advance(59_999);
    expect(bench.look()).toEqual(["queued old"]);
    expect(bench.advance(1).look()).toEqual(["expired old"]);
    expect(bench.breaker.snapshot().queued).toBe(0);
  });

  it("probes by itself 30 s after the last failure, without traffic (CB-5)", () => {
    const bench = opened().advance(29_999);
    expect(bench.look()).toEqual([]);
    expect(bench.advance(1).look()).toEqual(["OPEN → HALF_OPEN after 5", "ping"]);
  });

  it("becomes half open with the next request after the timeout, which is then the probe", () => {
    const bench = opened();
    bench.now = 30_000;
    expect(bench.request("p").look()).toEqual(["OPEN → HALF_OPEN after 5", "send p"]);
    expect(bench.request("q").request("r", "reject").look()).toEqual([
      "queued q",
      "rejected r: CIRCUIT_OPEN",
    ]);
  });

  it("ignores results of calls from before it opened (CB-1)", () => {
    const bench = new Bench();
    for (let i = 0; i < 8; i++) bench.request(`${i}`);
    for (let i = 0; i < 5; i++) bench.fail();
    bench.now = 10_000;
    bench.ok().fail().fail();
    expect(bench.state).toBe("OPEN");
    expect(bench.breaker.nextDeadline()).toBe(30_000);
  });
});

describe("a half open circuit", () => {
  it("closes after three probes, one at a time from the head of the queue, then replays in order", () => {
    const bench = opened();
    for (const op of ["a", "b", "c", "d", "e"]) bench.request(op);
    bench.look();
    expect(bench.advance(30_000).look()).toEqual(["OPEN → HALF_OPEN after 5", "send a"]);
    expect(bench.ok().look()).toEqual(["delivered a", "send b"]);
    expect(bench.ok().look()).toEqual(["delivered b", "send c"]);
    expect(bench.ok().look()).toEqual(["delivered c", "HALF_OPEN → CLOSED after 0", "send d,e"]);
    // New requests queue behind waiting ones.
    expect(bench.request("f").look()).toEqual(["queued f"]);
    expect(bench.ok().look()).toEqual(["delivered d", "delivered e", "send f"]);
    expect(bench.ok().look()).toEqual(["delivered f", "replayed 6"]);
    expect(bench.request("g").look()).toEqual(["send g"]);
  });

  it("opens again at the first failed probe, returns the entry to the head and restarts the timer", () => {
    const bench = opened().request("a").request("b").advance(30_000).ok();
    bench.look();
    bench.now = 31_000;
    expect(bench.fail().look()).toEqual(["HALF_OPEN → OPEN after 1"]);
    expect(bench.breaker.nextDeadline()).toBe(60_000);
    bench.request("c").look();
    expect(bench.advance(30_000).look()).toEqual([
      "expired b",
      "OPEN → HALF_OPEN after 1",
      "send c",
    ]);
  });

  it("closes on pings when nothing is queued", () => {
    const bench = opened().advance(30_000).ok().ok();
    expect(bench.look()).toEqual(["OPEN → HALF_OPEN after 5", "ping", "ping", "ping"]);
    expect(bench.ok().look()).toEqual(["HALF_OPEN → CLOSED after 0"]);
  });
});

describe("replay", () => {
  const closedWithQueue = (): Bench => {
    const bench = opened({ queueTimeoutMs: 600_000, replayBatchMax: 3 });
    for (const op of ["a", "b", "c", "d", "e", "f", "g"]) bench.request(op);
    bench.advance(30_000).ok().ok().ok();
    bench.look();
    return bench;
  };

  it("returns the failed rest of a batch to the head, and stops when the breaker opens (CB-4)", () => {
    const bench = closedWithQueue();
    expect(bench.fail(1).look()).toEqual(["delivered d", "send e,f,g"]);
    expect(bench.fail().fail().fail().look()).toEqual(["send e,f,g", "send e,f,g", "send e,f,g"]);
    expect(bench.fail().look()).toEqual(["CLOSED → OPEN after 5"]);
    expect(bench.breaker.snapshot().queued).toBe(3);
    expect(bench.advance(30_000).look()).toContain("send e");
  });

  it("drains 1,000 operations over a 300 ms link well within 60 s (CB-7)", () => {
    const bench = opened();
    bench.advance(25_000);
    for (let at = 0; at < 1_000; at++) bench.request(`op${at}`);
    bench.advance(5_000);
    const since = bench.now;
    const delivered: string[] = [];
    while (bench.breaker.snapshot().queued > 0 && bench.now < since + 60_000) {
      bench.now += 300;
      bench.ok();
      for (const effect of bench.effects)
        if (effect.kind === "delivered") delivered.push(effect.op);
      bench.effects = [];
    }
    expect(delivered).toEqual(Array.from({ length: 1_000 }, (_, at) => `op${at}`));
    expect(bench.now - since).toBeLessThan(10_000);
  });
});

describe("arbitrary traffic and failures", () => {
  const move = fc.constantFrom("queue", "queue", "reject", "ok", "fail", "wait", "long");

  it("give each request one outcome, and deliver queued ones in order (CB-2, CB-4)", () => {
    fc.assert(
      fc.property(fc.array(move, { maxLength: 120 }), (moves) => {
        const bench = new Bench({ queueMax: 8, replayBatchMax: 3 });
        let made = 0;
        for (const one of moves) {
          if (one === "queue" || one === "reject") bench.request(`${++made}`, one);
          else if (one === "ok") bench.ok();
          else if (one === "fail") bench.fail();
          else bench.advance(one === "wait" ? 1_000 : 31_000);
          expect(bench.breaker.snapshot().queued).toBeLessThanOrEqual(8);
        }
        const queued = new Set<string>();
        const outcomes: string[] = [];
        const ended: string[] = [];
        const delivered: number[] = [];
        for (const effect of bench.effects) {
          if (effect.kind === "queued") queued.add(effect.op);
          if (effect.kind === "queued" || effect.kind === "rejected") outcomes.push(effect.op);
          if (effect.kind === "send") {
            for (const op of effect.ops) if (!queued.has(op)) outcomes.push(op);
          }
          if (effect.kind === "delivered") delivered.push(Number(effect.op));
          if (effect.kind === "delivered" || effect.kind === "expired") ended.push(effect.op);
        }
        expect(outcomes).toEqual([...new Set(outcomes)]);
        expect(outcomes).toHaveLength(made);
        expect(ended).toEqual([...new Set(ended)]);
        expect(delivered).toEqual([...delivered].sort((a, b) => a - b));
        // No queued operation is lost: it completed, is queued, or is in flight.
        expect(queued.size).toBe(ended.length + bench.breaker.snapshot().queued);
      }),
      { numRuns: 500 },
    );
  });

  it("lose no accepted operation over restarts, because the ledger is the record (CB-6)", () => {
    const fate = fc.constantFrom("accept", "ok", "fail", "long", "restart");
    fc.assert(
      fc.property(fc.array(fate, { maxLength: 80 }), (moves) => {
        const ledger = new Map<string, "accepted" | "delivered">();
        let bench = new Bench();
        const direct = new Map<number, string>();
        const sendAgain = (): void => {
          for (const [op, state] of ledger) if (state === "accepted") bench.request(op);
        };
        const note = (): void => {
          const effects = bench.effects.splice(0);
          for (const effect of effects) {
            if (effect.kind === "send" && effect.ops.length === 1) {
              direct.set(effect.call, effect.ops[0] as string);
            }
            if (effect.kind === "delivered") ledger.set(effect.op, "delivered");
            if (effect.kind === "expired") bench.request(effect.op);
          }
        };
        for (const one of moves) {
          if (one === "accept") {
            const op = `op${ledger.size}`;
            ledger.set(op, "accepted");
            bench.request(op);
          } else if (one === "restart") {
            bench = new Bench();
            direct.clear();
            sendAgain();
          } else if (one === "long") bench.advance(31_000);
          else if (one === "ok") {
            const op = direct.get(bench.calls[0] ?? -1);
            if (op !== undefined) ledger.set(op, "delivered");
            bench.ok();
          } else {
            // The sender of a failed direct request retries from its ledger.
            const op = direct.get(bench.calls[0] ?? -1);
            bench.fail();
            if (op !== undefined && ledger.get(op) === "accepted") bench.request(op);
          }
          note();
        }
        // Everything succeeds from now on.
        for (let i = 0; i < 400 && bench.calls.length + bench.breaker.snapshot().queued > 0; i++) {
          const op = direct.get(bench.calls[0] ?? -1);
          if (op !== undefined) ledger.set(op, "delivered");
          if (bench.calls.length > 0) bench.ok();
          else bench.advance(31_000);
          note();
        }
        expect([...ledger.values()].filter((state) => state !== "delivered")).toEqual([]);
      }),
      { numRuns: 200 },
    );
  });
});
