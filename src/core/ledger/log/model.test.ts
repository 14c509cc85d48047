/**
 * The writer against a plain model in virtual time: a list of what was accepted. Whatever the order in
 * which I/O finishes, what is in the file is that list, and each rule of the single writer holds at each
 * step. (SW-1..9, CW-1..6)
 */

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { WalRules } from "./rules.ts";
import { WriterBench } from "./testing/bench.ts";
import type { WalEntry, WriterEffect } from "./writer-types.ts";

/** Another one searches elsewhere: `WAL_SEED=7 npx vitest run src/core/ledger/log/model.test.ts`. */
const SEED = Number(process.env["WAL_SEED"] ?? 1);

type Move =
  | {
      readonly kind: "append";
      readonly size: number;
      readonly count: number;
    }
  | { readonly kind: "finish"; readonly what: "write" | "sync" | "createSegment" | "truncate" }
  | { readonly kind: "pass"; readonly ms: number }
  | { readonly kind: "short"; readonly bytes: number }
  | { readonly kind: "full"; readonly bytes: number }
  | { readonly kind: "flush" };

const move: fc.Arbitrary<Move> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant("append" as const),
      size: fc.nat(200),
      count: fc.integer({ min: 1, max: 5 }),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant("finish" as const),
      what: fc.constantFrom("write", "sync", "createSegment", "truncate"),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("pass" as const), ms: fc.nat(12) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("short" as const), bytes: fc.nat(50) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("full" as const), bytes: fc.nat(50) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("flush" as const) }) },
);

const LIMITS = {
  segmentBytes: 2_048,
  batchEntriesMax: 8,
  batchBytesMax: 900,
  queueEntriesMax: 40,
  queueBytesMax: 4_000,
  unsyncedEntriesMax: 24,
  chunkBytes: 512,
};

class Model {
  readonly bench: WriterBench;
  readonly accepted: { readonly entry: WalEntry; readonly ticket: number; readonly at: number }[] =
    [];
  #number = 0;
  #flushId = 0;
  readonly flushes: { readonly id: number; readonly through: number }[] = [];

  constructor(fullDisk: "reject" | "wait", rules: Partial<WalRules> = {}) {
    this.bench = new WriterBench({ ...LIMITS, fullDisk }, rules);
    this.bench.tick();
  }

  make(next: Move): void {
    const { bench } = this;
    const writing = bench.pending.some(({ effect }) => effect.kind === "write");
    if (next.kind === "append") this.#append(next);
    else if (next.kind === "finish") bench.complete(next.what);
    else if (next.kind === "pass") this.#pass(next.ms);
    else if (next.kind === "short" && writing) bench.shorten(next.bytes);
    else if (next.kind === "full" && writing) bench.fail("write", "ENOSPC", next.bytes);
    else if (next.kind === "flush") {
      const id = ++this.#flushId;
      this.flushes.push({ id, through: this.accepted.at(-1)?.ticket ?? 0 });
      bench.step({ kind: "flush", id });
    }
    this.check();
  }

  #append({ size, count }: Extract<Move, { kind: "append" }>): void {
    for (let i = 0; i < count; i++) {
      const payload = new Uint8Array(size).fill(this.#number % 251);
      const entry: WalEntry = { type: 64, payload, wall: ++this.#number, logical: 0 };
      const ticket = this.bench.append(entry);
      if (typeof ticket === "number") this.accepted.push({ entry, ticket, at: this.bench.now });
    }
    this.bench.tick();
  }

  /** As a driver does: never past a deadline without a tick. */
  #pass(ms: number): void {
    const { bench } = this;
    const until = bench.now + ms;
    for (let i = 0; i < 100; i++) {
      const deadline = bench.writer.nextDeadline();
      if (deadline === null || deadline > until) break;
      bench.tick(Math.max(deadline, bench.now));
    }
    bench.now = until;
  }

  check(): void {
    const { bench } = this;
    const of = (kind: WriterEffect["kind"]) =>
      bench.pending.filter(({ effect }) => effect.kind === kind).length;
    for (const kind of ["write", "sync", "createSegment", "truncate"] as const) {
      expect(of(kind), `${kind}s at once`).toBeLessThanOrEqual(1);
    }
    if (of("truncate") > 0) expect(of("write") + of("sync"), "a cut is alone").toBe(0);
    const { queueEntries, durableTicket, lastTicket } = bench.writer.snapshot();
    // A batch that met a full disk may be back in a queue that was filled meanwhile.
    const room = LIMITS.queueEntriesMax + LIMITS.batchEntriesMax;
    expect(queueEntries).toBeLessThanOrEqual(room);
    expect(durableTicket).toBeLessThanOrEqual(lastTicket);
    this.#checkDeadlines();
  }

  /** No entry waits longer than the batch timeout while the writer is idle. (SW-3) */
  #checkDeadlines(): void {
    const { bench } = this;
    const deadline = bench.writer.nextDeadline();
    if (deadline === null || bench.writer.snapshot().stalled !== null) return;
    const waiting = bench.writer.snapshot().queueEntries;
    const oldest = this.accepted.at(-waiting);
    if (waiting === 0 || oldest === undefined || bench.rejected.size > 0) return;
    expect(deadline, "deadline").toBeLessThanOrEqual(oldest.at + bench.config.batchTimeoutMs);
  }

  /** At rest: the file holds exactly what was accepted and not rejected, in order. */
  finish(): void {
    const { bench } = this;
    bench.step({ kind: "close" });
    bench.settle();
    expect(bench.log.at(-1)?.kind).toBe("closed");
    const wanted = this.accepted.filter(({ ticket }) => !bench.rejected.has(ticket));
    const { found } = bench.recover();
    expect([...found.values()].map(({ wall }) => wall)).toEqual(
      wanted.map(({ entry }) => entry.wall),
    );
    expect(bench.durableTicket).toBeGreaterThanOrEqual(wanted.at(-1)?.ticket ?? 0);
    expect([...bench.flushed].sort((a, b) => a - b)).toEqual(this.flushes.map(({ id }) => id));
    checkBatches(bench.log);
  }
}

/** Writes go on where the last ended; durable places only go up. */
function checkBatches(log: readonly WriterEffect[]): void {
  let durable = 0;
  let ticket = 0;
  for (const effect of log) {
    if (effect.kind === "durable") {
      expect(effect.lsn).toBeGreaterThanOrEqual(durable);
      durable = effect.lsn;
    }
    if (effect.kind === "written") {
      expect(effect.firstTicket).toBeGreaterThan(ticket);
      expect(effect.count).toBeLessThanOrEqual(LIMITS.batchEntriesMax);
      ticket = effect.firstTicket + effect.count - 1;
    }
  }
}

function property(rules: Partial<WalRules> = {}) {
  return fc.property(
    fc.array(move, { maxLength: 120, size: "max" }),
    fc.constantFrom("reject" as const, "wait" as const),
    (moves, fullDisk) => {
      const model = new Model(fullDisk, rules);
      for (const next of moves) model.make(next);
      model.finish();
    },
  );
}

describe("the writer and its model", () => {
  it("agree, however I/O finishes", () => {
    fc.assert(property(), { numRuns: 300, seed: SEED });
  });

  it.each(["deadlineFromFirst", "shortWritesCompleted", "tailCutAfterFull"] as const)(
    "differ without the rule %s",
    (rule) => {
      expect(fc.check(property({ [rule]: false }), { numRuns: 500, seed: 1 }).failed).toBe(true);
    },
  );
});
