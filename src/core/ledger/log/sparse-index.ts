/**
 * Index of the records of one segment: one point per 64 KB, found by binary search, from which a reader continues
 * record by record. (SR-7) On disk beside the segment; a file that is missing, damaged or of another segment is
 * rebuilt.
 *
 *     "HSIX" · version u16 · reserved u16 · segment id u32 · count u32 · first lsn u64 · covered bytes u64 ·
 *     count x (lsn u64 · offset u32) · crc u32
 */

import { assert } from "../../base/assert.ts";
import { crc32 } from "../../base/crc32.ts";
import { getUint64, setUint64, viewOf } from "./record.ts";

const INDEX_SPACING_BYTES = 65_536;
const MAGIC = 0x5849_5348; // "HSIX", little-endian
const VERSION = 1;
const HEAD_BYTES = 32;
const POINT_BYTES = 12;

interface IndexPoint {
  readonly lsn: number;
  readonly offset: number;
}

export class SparseIndex {
  readonly segmentId: number;
  readonly firstLsn: number;
  readonly #points: IndexPoint[] = [];
  /** The offset after the last record known. */
  coveredBytes = 0;

  constructor(segmentId: number, firstLsn: number) {
    this.segmentId = segmentId;
    this.firstLsn = firstLsn;
  }

  get points(): readonly IndexPoint[] {
    return this.#points;
  }

  /** Notes the start of a record. Kept if the last point is far enough back. */
  note(lsn: number, offset: number): void {
    const last = this.#points.at(-1);
    if (last !== undefined && offset < last.offset + INDEX_SPACING_BYTES) return;
    assert(last === undefined || lsn > last.lsn, "points are noted in order");
    this.#points.push({ lsn, offset });
  }

  /** Drops the points noted from `offset` on. */
  cut(offset: number): void {
    while ((this.#points.at(-1)?.offset ?? -1) >= offset) this.#points.pop();
  }

  /** The last point at or before the LSN; null when it lies before the segment. */
  seek(lsn: number): IndexPoint | null {
    let low = 0;
    let high = this.#points.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#points[middle]?.lsn ?? 0) <= lsn) low = middle + 1;
      else high = middle;
    }
    return this.#points[low - 1] ?? null;
  }

  encode(): Uint8Array {
    const size = HEAD_BYTES + this.#points.length * POINT_BYTES + 4;
    const bytes = new Uint8Array(size);
    const view = viewOf(bytes);
    view.setUint32(0, MAGIC, true);
    view.setUint16(4, VERSION, true);
    view.setUint32(8, this.segmentId, true);
    view.setUint32(12, this.#points.length, true);
    setUint64(view, 16, this.firstLsn);
    setUint64(view, 24, this.coveredBytes);
    this.#points.forEach(({ lsn, offset }, index) => {
      setUint64(view, HEAD_BYTES + index * POINT_BYTES, lsn);
      view.setUint32(HEAD_BYTES + index * POINT_BYTES + 8, offset, true);
    });
    view.setUint32(size - 4, crc32(bytes, 0, size - 4), true);
    return bytes;
  }
}

/** Null: not an intact index. */
export function decodeSparseIndex(bytes: Uint8Array): SparseIndex | null {
  if (bytes.length < HEAD_BYTES + 4) return null;
  const view = viewOf(bytes);
  const count = view.getUint32(12, true);
  if (view.getUint32(0, true) !== MAGIC || view.getUint16(4, true) !== VERSION) return null;
  if (bytes.length !== HEAD_BYTES + count * POINT_BYTES + 4) return null;
  if (view.getUint32(bytes.length - 4, true) !== crc32(bytes, 0, bytes.length - 4)) return null;
  const index = new SparseIndex(view.getUint32(8, true), getUint64(view, 16));
  index.coveredBytes = getUint64(view, 24);
  for (let i = 0; i < count; i++) {
    const at = HEAD_BYTES + i * POINT_BYTES;
    const lsn = getUint64(view, at);
    if (lsn <= (index.points.at(-1)?.lsn ?? 0)) return null;
    index.note(lsn, view.getUint32(at + 8, true));
  }
  return index;
}

export function indexName(segmentId: number): string {
  return `segment_${String(segmentId).padStart(8, "0")}.idx`;
}
