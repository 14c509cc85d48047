import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { encodeUtf8 } from "../../base/bytes.ts";
import { IDEMPOTENCY_PROFILES, type IdempotencyConfig } from "./config.ts";
import type { SubmissionAnswer } from "./decide.ts";
import { GateCache, type GateEffect } from "./gate-cache.ts";
import { IDEMPOTENCY_RULES } from "./rules.ts";
import { sampleKey, samplePrint } from "./testing/samples.ts";

const config = IDEMPOTENCY_PROFILES.production.gate;

/** A cache with its clients, recording what was forwarded and which answer each client got. */
class Gate {
  readonly cache: GateCache<string>;
  readonly answers = new Map<string, SubmissionAnswer>();
  readonly tokens = new Map<number, number>();
  now = 0;

  constructor(extra: Partial<IdempotencyConfig> = {}, rules = IDEMPOTENCY_RULES) {
    this.cache = new GateCache({ ...config, ...extra }, rules);
  }

  run(effects: readonly GateEffect<string>[], sequence = -1): void {
    for (const effect of effects) {
      if (effect.kind === "forward") this.tokens.set(sequence, effect.token);
      else {
        expect(this.answers.has(effect.waiter), `${effect.waiter} is answered once`).toBe(false);
        this.answers.set(effect.waiter, effect.answer);
      }
    }
  }

  /** True when the request is to be forwarded. */
  check(sequence: number, waiter: string, body = `body ${sequence}`): boolean {
    const before = this.tokens.get(sequence);
    const key = sampleKey(sequence);
    this.run(this.cache.check(key, samplePrint(body), waiter, this.now), sequence);
    return this.tokens.get(sequence) !== before;
  }

  settle(sequence: number, answer: SubmissionAnswer = accept(`job-${sequence}`)): void {
    const token = this.tokens.get(sequence) ?? -1;
    this.run(this.cache.settle(sampleKey(sequence), token, answer, this.now));
  }

  tick(ms: number): void {
    this.now += ms;
    this.run(this.cache.tick(this.now));
  }
}

function accept(jobId: string): SubmissionAnswer {
  return { kind: "accepted", jobId, ack: encodeUtf8(`ack ${jobId}`), duplicate: false };
}

const refused: SubmissionAnswer = { kind: "rejected", result: encodeUtf8("no"), duplicate: false };
const retry: SubmissionAnswer = { kind: "retry", why: "pending" };

describe("the gate cache", () => {
  // IDEM-9, IDEM-10
  it("forwards the first of one hundred requests and answers all with its result", () => {
    const gate = new Gate();
    const forwarded = Array.from({ length: 100 }, (_, i) => gate.check(1, `c${i}`));
    expect(forwarded.filter(Boolean)).toHaveLength(1);
    gate.settle(1);
    expect(gate.answers.size).toBe(100);
    expect(gate.answers.get("c0")).toEqual(accept("job-1"));
    for (let i = 1; i < 100; i++) {
      expect(gate.answers.get(`c${i}`)).toEqual({ ...accept("job-1"), duplicate: true });
    }
  });

  it("answers later duplicates at once, accepted and rejected alike (IDEM-14)", () => {
    const gate = new Gate();
    gate.check(1, "a");
    gate.settle(1);
    gate.check(2, "b");
    gate.settle(2, refused);
    expect([gate.check(1, "a again"), gate.check(2, "b again")]).toEqual([false, false]);
    expect(gate.answers.get("a again")).toEqual({ ...accept("job-1"), duplicate: true });
    expect(gate.answers.get("b again")).toEqual({ ...refused, duplicate: true });
  });

  it("keeps no RETRY: the next request is forwarded again (IDEM-13)", () => {
    const gate = new Gate();
    gate.check(1, "a");
    gate.check(1, "b");
    gate.settle(1, retry);
    expect([...gate.answers.values()]).toEqual([retry, retry]);
    expect(gate.check(1, "c")).toBe(true);
  });

  it("forgets a request that could not be forwarded and lets all ask again (IDEM-12)", () => {
    const gate = new Gate();
    gate.check(1, "a");
    gate.check(1, "b");
    gate.run(gate.cache.fail(sampleKey(1), gate.tokens.get(1) ?? 0, "connection refused"));
    expect([...gate.answers.values()].map(({ kind }) => kind)).toEqual(["retry", "retry"]);
    expect(gate.cache.get(sampleKey(1))).toBeNull();
  });

  it("never answers another submission with the cached result (IDEM-5)", () => {
    const gate = new Gate();
    gate.check(1, "a");
    gate.check(1, "waits", "another body");
    gate.settle(1);
    gate.check(1, "late", "another body");
    expect([gate.answers.get("waits"), gate.answers.get("late")]).toEqual([
      { kind: "keyReused" },
      { kind: "keyReused" },
    ]);
  });

  it("stores nothing of an answer that its key is another's", () => {
    const gate = new Gate();
    gate.check(1, "a");
    gate.check(1, "b");
    gate.settle(1, { kind: "keyReused" });
    expect(gate.answers.get("a")).toEqual({ kind: "keyReused" });
    expect(gate.answers.get("b")).toMatchObject({ kind: "retry" });
    expect(gate.cache.get(sampleKey(1))).toBeNull();
  });

  it("ends each wait on its own time, and the others go on", () => {
    const gate = new Gate();
    gate.check(1, "first");
    gate.tick(10_000);
    gate.check(1, "second");
    gate.tick(config.pendingWaitTimeoutMs - 10_000);
    expect([...gate.answers.keys()]).toEqual(["first"]);
    gate.settle(1);
    expect(gate.answers.get("first")).toMatchObject({ kind: "retry" });
    expect(gate.answers.get("second")).toMatchObject({ kind: "accepted", duplicate: true });
    expect(gate.cache.stats().pendingTimeouts).toBe(1);
  });

  it("expires each status by its own time, on the edge and not before (IDEM-15)", () => {
    const gate = new Gate();
    gate.check(1, "a");
    gate.settle(1);
    gate.check(2, "b");
    gate.settle(2, refused);
    gate.check(3, "c");
    const statuses = () => [1, 2, 3].map((i) => gate.cache.get(sampleKey(i)));
    gate.tick(59_999);
    expect(statuses()).toEqual(["committed", "rejected", "pending"]);
    gate.tick(1);
    expect(statuses()).toEqual(["committed", null, null]);
    gate.tick(config.committedTtlMs - 60_001);
    expect(statuses()[0]).toBe("committed");
    expect(gate.cache.nextDeadline()).toBe(config.committedTtlMs);
    gate.tick(1);
    expect([statuses()[0], gate.cache.nextDeadline()]).toEqual([null, null]);
  });

  it("ignores an answer to a request it has dropped since, also when the key is back", () => {
    const gate = new Gate();
    gate.check(1, "a");
    const old = gate.tokens.get(1) ?? 0;
    gate.tick(config.pendingTtlMs);
    gate.check(1, "b", "another body");
    expect(gate.cache.settle(sampleKey(1), old, accept("old"), gate.now)).toEqual([]);
    expect(gate.cache.get(sampleKey(1))).toBe("pending");
  });

  // IDEM-11
  it("evicts settled entries first, least recently used first, then the oldest request", () => {
    const gate = new Gate({ entriesMax: 3 });
    gate.check(1, "waits");
    for (const i of [2, 3]) {
      gate.check(i, `c${i}`);
      gate.settle(i);
    }
    gate.check(2, "touch");
    gate.check(4, "c4");
    expect([1, 2, 3, 4].map((i) => gate.cache.get(sampleKey(i)))).toEqual([
      "pending",
      "committed",
      null,
      "pending",
    ]);
    gate.check(5, "c5");
    gate.check(6, "c6");
    expect(gate.answers.get("waits")).toMatchObject({ kind: "retry" });
    expect(gate.cache.stats()).toMatchObject({ entries: 3, pending: 3, evictions: 3 });
  });

  it("stays within its bound at ten times the load", () => {
    const gate = new Gate({ entriesMax: 500 });
    let most = 0;
    for (let i = 0; i < 5_000; i++) {
      gate.check(i, `c${i}`);
      if (i % 3 > 0) gate.settle(i, i % 3 === 1 ? accept(`job-${i}`) : refused);
      expect(gate.cache.stats().entries).toBeLessThanOrEqual(500);
      most = Math.max(most, gate.cache.bytes);
    }
    expect(most).toBeLessThan(500 * 400 + 65_536);
    expect(gate.cache.stats().waiters).toBeLessThanOrEqual(500);
  });

  it("answers duplicates with retry when waiting is switched off", () => {
    const gate = new Gate({ waitForPending: false });
    gate.check(1, "a");
    gate.check(1, "b");
    expect(gate.answers.get("b")).toMatchObject({ kind: "retry" });
  });

  it("answers all waiters when it closes", () => {
    const gate = new Gate();
    for (let i = 0; i < 10; i++) gate.check(i % 3, `c${i}`);
    gate.run(gate.cache.close());
    expect(gate.answers.size).toBe(10);
    expect(gate.cache.stats()).toMatchObject({ entries: 0, waiters: 0 });
  });

  it("with the rule broken, keeps a RETRY as a rejection", () => {
    const gate = new Gate({}, { ...IDEMPOTENCY_RULES, retryNeverCached: false });
    gate.check(1, "a");
    gate.settle(1, retry);
    expect(gate.check(1, "b")).toBe(false);
  });

  it("answers everybody exactly once and forgets all waits, whatever happens in which order", () => {
    const step = fc.record({
      what: fc.constantFrom("check", "check", "check", "settle", "reject", "retry", "fail", "tick"),
      sequence: fc.nat(6),
      ms: fc.nat(40_000),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
        const gate = new Gate({ entriesMax: 4 });
        let clients = 0;
        for (const { what, sequence, ms } of steps) {
          if (what === "check") gate.check(sequence, `c${clients++}`);
          else if (what === "settle") gate.settle(sequence);
          else if (what === "reject") gate.settle(sequence, refused);
          else if (what === "retry") gate.settle(sequence, retry);
          else if (what === "tick") gate.tick(ms);
          else {
            const token = gate.tokens.get(sequence) ?? -1;
            gate.run(gate.cache.fail(sampleKey(sequence), token, "reset"));
          }
          expect(gate.cache.stats().waiters).toBe(clients - gate.answers.size);
        }
        gate.tick(config.pendingWaitTimeoutMs);
        expect(gate.answers.size).toBe(clients);
        const jobs = [...gate.answers.values()].filter(({ kind }) => kind === "accepted");
        expect(jobs.length).toBeLessThanOrEqual(clients);
      }),
      { numRuns: 300, seed: 21 },
    );
  });
});
