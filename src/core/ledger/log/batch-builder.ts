/**
 * Encodes the records of one batch into pooled chunks, ready for one gathering write. A record is never split over
 * chunks; one larger than a chunk gets its own buffer. Chunks beyond the pool are counted and dropped when returned.
 * (BUF-1, BUF-4)
 */

import { assert } from "../../base/assert.ts";
import type { Crc32 } from "../../base/crc32.ts";
import { type BatchMark, encodeBatchMark } from "./control.ts";
import type { QueuedEntry } from "./entry-queue.ts";
import { encodeRecordInto, recordBytes, viewOf, type WalRecord } from "./record.ts";
import { RECORD_TYPES } from "./record-types.ts";
import { encodeSegmentHeader, type SegmentHeader } from "./segment.ts";

interface Chunk {
  readonly bytes: Uint8Array;
  readonly view: DataView;
  used: number;
}

export class ChunkPool {
  readonly #allocate: (bytes: number) => Uint8Array;
  readonly #chunkBytes: number;
  readonly #countMax: number;
  readonly #free: Chunk[] = [];
  /** Chunks made beyond the pool's size, and records too large for a chunk. */
  overflowCount = 0;
  #made = 0;

  constructor(chunkBytes: number, countMax: number, allocate: (bytes: number) => Uint8Array) {
    this.#chunkBytes = chunkBytes;
    this.#countMax = countMax;
    this.#allocate = allocate;
  }

  take(bytesMin: number): Chunk {
    if (bytesMin <= this.#chunkBytes) {
      const free = this.#free.pop();
      if (free !== undefined) {
        free.used = 0;
        return free;
      }
      this.#made++;
    }
    if (this.#made > this.#countMax || bytesMin > this.#chunkBytes) this.overflowCount++;
    const bytes = this.#allocate(Math.max(bytesMin, this.#chunkBytes));
    return { bytes, view: viewOf(bytes), used: 0 };
  }

  give(chunk: Chunk): void {
    if (chunk.bytes.length !== this.#chunkBytes) return;
    if (this.#free.length < this.#countMax) this.#free.push(chunk);
    else this.#made--;
  }
}

export interface Stamp {
  readonly wall: number;
  readonly logical: number;
}

interface BatchFrame {
  /** When the batch begins a segment. */
  readonly header: SegmentHeader | null;
  /** Carries the batch's offset; the offset of the BATCH record itself is filled in later. */
  readonly mark: BatchMark | null;
  readonly firstLsn: number;
  /** The clock for the BATCH of an empty batch. */
  readonly stamp: Stamp;
}

export class BatchBuilder {
  readonly #pool: ChunkPool;
  readonly #checksum: Crc32;
  readonly #chunks: Chunk[] = [];
  #bytes = 0;

  constructor(pool: ChunkPool, checksum: Crc32) {
    this.#pool = pool;
    this.#checksum = checksum;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** A whole batch: header, entries, BATCH. Returns the LSN after it. */
  batch(items: readonly QueuedEntry[], frame: BatchFrame): number {
    let lsn = frame.firstLsn;
    let { stamp } = frame;
    if (frame.header !== null) this.#raw(encodeSegmentHeader(frame.header));
    for (const { entry } of items) {
      const { type, payload, wall, logical } = entry;
      this.#record({ lsn: lsn++, wall, logical, type, payload });
      stamp = entry;
    }
    if (frame.mark === null) return lsn;
    const payload = encodeBatchMark({ ...frame.mark, offset: frame.mark.offset + this.#bytes });
    const { wall, logical } = stamp;
    const type = RECORD_TYPES.BATCH;
    this.#record({ lsn: lsn++, wall, logical, type, payload });
    return lsn;
  }

  #raw(bytes: Uint8Array): void {
    const chunk = this.#room(bytes.length);
    chunk.bytes.set(bytes, chunk.used);
    chunk.used += bytes.length;
    this.#bytes += bytes.length;
  }

  #record(record: WalRecord): void {
    const size = recordBytes(record.payload.length);
    const chunk = this.#room(size);
    chunk.used = encodeRecordInto(chunk, chunk.used, record, this.#checksum);
    this.#bytes += size;
  }

  /** The encoded bytes from `skip` on, as views. */
  views(skip = 0): readonly Uint8Array[] {
    const views: Uint8Array[] = [];
    let left = skip;
    for (const { bytes, used } of this.#chunks) {
      if (left < used) views.push(bytes.subarray(left, used));
      left = Math.max(0, left - used);
    }
    return views;
  }

  release(): void {
    for (const chunk of this.#chunks) this.#pool.give(chunk);
    this.#chunks.length = 0;
    this.#bytes = 0;
  }

  #room(bytes: number): Chunk {
    const last = this.#chunks.at(-1);
    if (last !== undefined && last.bytes.length - last.used >= bytes) return last;
    const chunk = this.#pool.take(bytes);
    assert(chunk.bytes.length >= bytes, "a chunk holds what it was taken for");
    this.#chunks.push(chunk);
    return chunk;
  }
}
