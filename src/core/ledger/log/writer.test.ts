import { describe, expect, it } from "vitest";
import { SEGMENT_HEADER_BYTES } from "./segment.ts";
import { WriterBench } from "./testing/bench.ts";
import type { WalEntry, WriterEffect } from "./writer-types.ts";

const entry = (text: string, more: Partial<WalEntry> = {}): WalEntry => ({
  type: 64,
  payload: new TextEncoder().encode(text),
  wall: 1_000,
  logical: 0,
  ...more,
});
const kinds = (effects: readonly WriterEffect[]) => effects.map(({ kind }) => kind);

/** Opened, its first segment made. */
function ready(config: ConstructorParameters<typeof WriterBench>[0] = {}): WriterBench {
  const bench = new WriterBench({ segmentBytes: 65_536, ...config });
  bench.tick();
  bench.complete("createSegment");
  bench.log.length = 0;
  return bench;
}

function appendMany(bench: WriterBench, count: number): void {
  for (let i = 0; i < count; i++) bench.append(entry(`entry ${i}`));
}

describe("group commit", () => {
  it("writes at once when idle, and acknowledges after the sync (WAL-3, WAL-5)", () => {
    const bench = ready();
    expect(bench.append(entry("a"))).toBe(1);
    expect(kinds(bench.tick())).toEqual(["opened", "write"]);
    bench.complete("write");
    expect(kinds(bench.log).slice(-2)).toEqual(["written", "sync"]);
    expect(bench.durableTicket).toBe(0);
    bench.complete("sync");
    expect(bench.durableTicket).toBe(1);
  });

  it("collects while a sync is under way, up to 100 entries", () => {
    const bench = ready();
    bench.append(entry("first"));
    bench.tick();
    bench.complete("write");
    appendMany(bench, 99);
    expect(kinds(bench.tick())).toEqual([]);
    bench.append(entry("the hundredth"));
    expect(kinds(bench.tick())).toEqual(["write"]);
    bench.complete("write");
    expect(bench.durableTicket).toBe(0);
    bench.complete("sync");
    expect(bench.durableTicket).toBe(1);
    expect(kinds(bench.log).at(-1)).toBe("sync");
    bench.complete("sync");
    expect(bench.durableTicket).toBe(101);
  });

  it("one sync covers every batch written before it began, and no other", () => {
    const bench = ready();
    bench.append(entry("first"));
    bench.tick();
    bench.complete("write");
    appendMany(bench, 250);
    bench.tick();
    bench.complete("write");
    bench.complete("write");
    bench.tick();
    bench.complete("sync");
    expect(bench.durableTicket).toBe(1);
    appendMany(bench, 100);
    bench.tick();
    bench.complete("sync");
    expect(bench.durableTicket).toBe(201);
  });

  it("closes a batch at its byte limit", () => {
    const bench = ready({ batchBytesMax: 1_000 });
    appendMany(bench, 1);
    bench.tick();
    bench.complete("write");
    bench.append(entry("x".repeat(980)));
    expect(kinds(bench.tick())).toEqual(["write"]);
  });

  it("counts the deadline from the first entry, however many follow (SW-3)", () => {
    const bench = ready();
    bench.append(entry("in flight"));
    bench.tick();
    bench.complete("write");
    for (const now of [5, 10, 14]) {
      bench.now = now;
      bench.append(entry(`at ${now}`));
      expect(kinds(bench.tick(now))).toEqual([]);
    }
    expect(bench.writer.nextDeadline()).toBe(15);
    expect(kinds(bench.tick(15))).toEqual(["write"]);
  });
});

describe("the queue", () => {
  it("is bounded in entries", () => {
    const bench = ready({ queueEntriesMax: 200 });
    for (let i = 1; i <= 200; i++) expect(bench.append(entry("x"))).toBe(i);
    expect(bench.append(entry("x"))).toBe("QUEUE_FULL");
  });

  it("is bounded in bytes, and still takes one entry larger than the bound", () => {
    const bench = ready({ queueBytesMax: 1_000, segmentBytes: 65_536 });
    expect(bench.append(entry("x".repeat(5_000)))).toBe(1);
    expect(bench.append(entry("y"))).toBe("QUEUE_FULL");
    bench.tick();
    expect(bench.append(entry("y"))).toBe(2);
  });

  it("refuses what is too large or of no known type before it has a number (WAL-11)", () => {
    const bench = ready({ payloadBytesMax: 100 });
    expect(bench.append(entry("x".repeat(101)))).toBe("TOO_LARGE");
    expect(bench.append(entry("x", { type: 99 }))).toBe("UNKNOWN_TYPE");
    expect(bench.append(entry("x", { type: 241 }))).toBe("UNKNOWN_TYPE");
    expect(bench.append(entry("x".repeat(100)))).toBe(1);
  });

  it("refuses an entry that no segment could hold", () => {
    const bench = ready({ segmentBytes: 1_024, payloadBytesMax: 10_000 });
    const largest = bench.writer.payloadBytesMax;
    expect(bench.append(entry("x".repeat(largest + 1)))).toBe("TOO_LARGE");
    bench.append(entry("x".repeat(largest)));
    bench.tick();
    bench.settle();
    expect(bench.durableTicket).toBe(1);
  });
});

describe("segments", () => {
  it("begins the next one only after the old one is synced (WAL-6)", () => {
    const bench = ready({ segmentBytes: 1_024 });
    appendMany(bench, 100);
    bench.tick();
    bench.settle();
    const order = bench.log.filter(({ kind }) => ["write", "sync", "sealed"].includes(kind));
    for (const [index, effect] of order.entries()) {
      if (effect.kind !== "write" || effect.offset !== 0 || effect.segmentId === 1) continue;
      expect(order[index - 1]).toMatchObject({ kind: "sealed", segmentId: effect.segmentId - 1 });
      expect(order[index - 2]).toMatchObject({ kind: "sync", segmentId: effect.segmentId - 1 });
    }
    const outcome = bench.recover();
    expect(outcome.found.size).toBe(100);
    expect(outcome.ok && outcome.segments.length).toBeGreaterThan(3);
  });

  it("continues in a new segment at opening when less than a tenth is free", () => {
    const bench = ready({ segmentBytes: 4_096 });
    bench.append(entry("x".repeat(3_600)));
    bench.tick();
    bench.settle();
    expect(bench.restart()).toBe(true);
    bench.append(entry("y"));
    bench.tick();
    bench.settle();
    expect(bench.log.filter(({ kind }) => kind === "opened").at(-1)).toMatchObject({
      segmentId: 2,
    });
  });
});

describe("failures", () => {
  it("a failed sync ends the log: nothing is acknowledged any more (WAL-14)", () => {
    const bench = ready();
    bench.append(entry("a"));
    bench.tick();
    bench.complete("write");
    bench.fail("sync", "EIO");
    expect(bench.log.at(-1)).toMatchObject({ kind: "failed", during: "sync", code: "EIO" });
    expect(bench.append(entry("b"))).toBe("FAILED");
    expect(bench.tick(100)).toEqual([]);
    expect(bench.durableTicket).toBe(0);
  });

  it("completes short writes (WAL-15)", () => {
    const bench = ready();
    appendMany(bench, 3);
    bench.tick();
    bench.shorten(10);
    bench.shorten(50);
    bench.settle();
    expect(bench.durableTicket).toBe(3);
    expect(bench.recover().found.size).toBe(3);
  });

  it("rejects a batch on a full disk, cuts its bytes, releases its numbers, and continues", () => {
    const bench = ready();
    bench.append(entry("kept"));
    bench.tick();
    bench.settle();
    const before = bench.writer.snapshot();
    appendMany(bench, 3);
    bench.tick();
    bench.fail("write", "ENOSPC", 60);
    expect(bench.rejected).toEqual(new Set([2, 3, 4]));
    expect(bench.log.at(-1)).toMatchObject({ kind: "truncate", offset: before.offset });
    expect(bench.writer.snapshot().nextLsn).toBe(before.nextLsn);
    bench.settle();
    bench.append(entry("after"));
    bench.tick(1_000);
    bench.settle();
    expect([...bench.recover().found.keys()]).toEqual([1, 3]);
  });

  it("a full disk may also make entries wait until there is space (fullDisk: wait)", () => {
    const bench = ready({ fullDisk: "wait" });
    appendMany(bench, 3);
    bench.tick();
    bench.fail("write", "ENOSPC", 60);
    bench.complete("truncate");
    expect(bench.writer.snapshot().stalled).toBe("ENOSPC");
    expect(bench.writer.nextDeadline()).toBe(250);
    bench.settle();
    expect(bench.durableTicket).toBe(3);
    expect(kinds(bench.log)).toContain("resumed");
    expect(bench.recover().found.size).toBe(3);
  });

  it("no space for the next segment hurts only when it is needed", () => {
    const bench = ready({ segmentBytes: 1_024 });
    bench.append(entry("x".repeat(500)));
    bench.tick();
    bench.complete("write");
    bench.complete("sync");
    bench.fail("createSegment", "ENOSPC");
    expect(bench.writer.snapshot().stalled).toBe(null);
    bench.append(entry("fits"));
    bench.tick();
    bench.complete("write");
    bench.complete("sync");
    expect(bench.durableTicket).toBe(2);
    bench.append(entry("x".repeat(500)));
    bench.tick(300);
    bench.fail("createSegment", "ENOSPC");
    expect(bench.rejected).toEqual(new Set([3]));
    bench.append(entry("y".repeat(500)));
    bench.tick(600);
    bench.settle();
    expect(bench.durableTicket).toBe(4);
  });
});

describe("flush and close", () => {
  it("flush is answered when everything before it is durable (SW-5)", () => {
    const bench = ready();
    appendMany(bench, 3);
    bench.step({ kind: "flush", id: 7 });
    expect(bench.flushed).toEqual([]);
    bench.complete("write");
    expect(bench.flushed).toEqual([]);
    bench.complete("sync");
    expect(bench.flushed).toEqual([7]);
    bench.step({ kind: "flush", id: 8 });
    expect(bench.flushed).toEqual([7, 8]);
  });

  it("close makes all that is queued durable, proves it, and refuses what comes later (WAL-19)", () => {
    const bench = ready();
    appendMany(bench, 250);
    bench.step({ kind: "close" });
    expect(bench.append(entry("late"))).toBe("SHUTDOWN");
    bench.settle();
    expect(bench.log.at(-1)).toEqual({ kind: "closed" });
    expect(bench.durableTicket).toBe(250);
    expect(bench.recover().found.size).toBe(250);
    // The last BATCH is alone and proves everything before it.
    const end = bench.writer.snapshot().offset;
    const file = bench.disk.segments()[0];
    if (file !== undefined) file.bytes[SEGMENT_HEADER_BYTES + 40] = 0xff;
    expect(bench.recover()).toMatchObject({ ok: false, refusal: { code: "WAL_CORRUPT" } });
    expect(end).toBeGreaterThan(0);
  });

  it("closing an unused log ends at once", () => {
    const bench = new WriterBench({ segmentBytes: 1_024 });
    expect(kinds(bench.step({ kind: "close" }))).toEqual(["closed"]);
  });
});
