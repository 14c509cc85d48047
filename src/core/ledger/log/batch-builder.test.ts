import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { crc32 } from "../../base/crc32.ts";
import { BatchBuilder, ChunkPool } from "./batch-builder.ts";
import type { QueuedEntry } from "./entry-queue.ts";
import { recordBytes } from "./record.ts";
import { encodeWalRecord } from "./testing/encode-record.ts";

const CHUNK_BYTES = 1_000;
const STAMP = { wall: 7, logical: 1 };

class Bench {
  readonly allocated: Uint8Array[] = [];
  readonly pool: ChunkPool;

  constructor(countMax = 3) {
    this.pool = new ChunkPool(CHUNK_BYTES, countMax, (bytes) => {
      const made = new Uint8Array(bytes);
      this.allocated.push(made);
      return made;
    });
  }

  /** A batch of entries of these sizes. */
  build(sizes: readonly number[], firstLsn = 1): BatchBuilder {
    const builder = new BatchBuilder(this.pool, crc32);
    const items = sizes.map((size) => queued(size));
    builder.batch(items, { header: null, mark: null, firstLsn, stamp: STAMP });
    return builder;
  }
}

function queued(size: number): QueuedEntry {
  const entry = { type: 64, payload: new Uint8Array(size).fill(size), ...STAMP };
  return { entry, ticket: 0, bytes: recordBytes(size) } as unknown as QueuedEntry;
}

const joined = (views: readonly Uint8Array[]): Uint8Array =>
  Uint8Array.from(views.flatMap((view) => [...view]));

describe("the buffers of a batch", () => {
  const sizes = fc.array(fc.integer({ min: 0, max: 1_500 }), { minLength: 1, maxLength: 20 });

  it("are handed on as they are, and hold what one record after the other is (BUF-4)", () => {
    fc.assert(
      fc.property(sizes, fc.nat(3_000), (all, skip) => {
        const bench = new Bench();
        const builder = bench.build(all);
        const reference = joined(
          all.map((size, at) =>
            encodeWalRecord({
              lsn: 1 + at,
              type: 64,
              payload: new Uint8Array(size).fill(size),
              ...STAMP,
            }),
          ),
        );
        expect(joined(builder.views())).toEqual(reference);
        expect(joined(builder.views(skip))).toEqual(reference.subarray(skip));
        for (const { buffer } of builder.views())
          expect(bench.allocated.some((made) => made.buffer === buffer)).toBe(true);
      }),
      { numRuns: 50 },
    );
  });

  it("come from a pool that makes nothing new once it has what it needs (BUF-1)", () => {
    const bench = new Bench();
    for (let turn = 0; turn < 100; turn++) bench.build([400, 400, 400, 400], turn + 1).release();
    expect([bench.allocated.length, bench.pool.overflowCount]).toEqual([2, 0]);
  });

  it("are exclusive while in use, and clean afterwards (BUF-1)", () => {
    const bench = new Bench();
    const first = bench.build([100]);
    const before = joined(first.views());
    const second = bench.build([200]);
    expect(joined(first.views())).toEqual(before);
    first.release();
    expect(first.views()).toEqual([]);
    expect(joined(bench.build([50]).views())).toHaveLength(recordBytes(50));
    expect(joined(second.views())).toHaveLength(recordBytes(200));
  });

  it("beyond the pool, or for a larger record, are counted and dropped afterwards (BUF-1)", () => {
    const bench = new Bench(2);
    const open = [0, 1, 2, 3].map(() => bench.build([900]));
    expect([bench.allocated.length, bench.pool.overflowCount]).toEqual([4, 2]);
    for (const builder of open) builder.release();
    bench.build([5_000]).release();
    expect([bench.allocated.length, bench.pool.overflowCount]).toEqual([5, 3]);
    // Two buffers are left: two batches reuse them, a third allocates a new one.
    const again = [0, 1].map(() => bench.build([900]));
    expect(bench.allocated).toHaveLength(5);
    bench.build([900]);
    expect(bench.allocated).toHaveLength(6);
    expect(again).toHaveLength(2);
  });
});
