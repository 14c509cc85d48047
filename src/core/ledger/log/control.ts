/**
 * The record the log writes about itself.
 *
 * BATCH ends each group commit. It records what was durable before the batch was written: when damage is found at
 * record k and a BATCH with `syncedLsn >= k` lies anywhere behind it, k had been acknowledged and the damage is
 * corruption; without such proof the damaged rest is a batch whose sync never finished. (WAL-13) It also names its own
 * position, so that a copy of log bytes inside a payload is never mistaken for a proof.
 *
 *     syncedLsn u64 · firstLsn u64 · segment id u32 · offset u32
 */

import { type Crc32, crc32 } from "../../base/crc32.ts";
import { getUint64, RECORD_HEADER_BYTES, setUint64, viewOf } from "./record.ts";
import { RECORD_TYPES } from "./record-types.ts";
import { firstNonZero } from "./segment.ts";

export interface BatchMark {
  /** The highest LSN that was durable before this batch was written. */
  readonly syncedLsn: number;
  /** The first LSN of the batch; its own when the batch is empty. */
  readonly firstLsn: number;
  readonly segmentId: number;
  /** Where the BATCH record itself begins. */
  readonly offset: number;
}

const BATCH_PAYLOAD_BYTES = 24;
export const BATCH_RECORD_BYTES = RECORD_HEADER_BYTES + BATCH_PAYLOAD_BYTES;

export function encodeBatchMark(mark: BatchMark): Uint8Array {
  const bytes = new Uint8Array(BATCH_PAYLOAD_BYTES);
  const view = viewOf(bytes);
  setUint64(view, 0, mark.syncedLsn);
  setUint64(view, 8, mark.firstLsn);
  view.setUint32(16, mark.segmentId, true);
  view.setUint32(20, mark.offset, true);
  return bytes;
}

export function decodeBatchMark(payload: Uint8Array): BatchMark | null {
  if (payload.length !== BATCH_PAYLOAD_BYTES) return null;
  const view = viewOf(payload);
  const syncedLsn = getUint64(view, 0);
  const firstLsn = getUint64(view, 8);
  if (!Number.isSafeInteger(syncedLsn) || !Number.isSafeInteger(firstLsn)) return null;
  return {
    syncedLsn,
    firstLsn,
    segmentId: view.getUint32(16, true),
    offset: view.getUint32(20, true),
  };
}

/** The highest LSN that any intact BATCH in `bytes[start, end)` of this segment proves durable; 0 for none. */
export function provenLsn(
  bytes: Uint8Array,
  range: { readonly segmentId: number; readonly start: number; readonly end: number },
  checksum: Crc32 = crc32,
): number {
  let proven = 0;
  const view = viewOf(bytes);
  const last = range.end - BATCH_RECORD_BYTES;
  for (let at = range.start; at <= last; at++) {
    if (bytes[at + 33] !== RECORD_TYPES.BATCH) {
      // Nothing but zeros ahead: nothing can begin before the next byte that is not.
      if (bytes[at + 33] === 0 && (at & 63) === 0 && bytes[at] === 0) {
        at = Math.max(at, firstNonZero(bytes, at, range.end) - RECORD_HEADER_BYTES);
      }
      continue;
    }
    if (view.getUint32(at + 4, true) !== BATCH_PAYLOAD_BYTES) continue;
    if (view.getUint32(at, true) !== checksum(bytes, at + 4, at + BATCH_RECORD_BYTES)) continue;
    const payload = bytes.subarray(at + RECORD_HEADER_BYTES, at + BATCH_RECORD_BYTES);
    const mark = decodeBatchMark(payload);
    if (mark === null || mark.segmentId !== range.segmentId || mark.offset !== at) continue;
    proven = Math.max(proven, mark.syncedLsn);
  }
  return proven;
}
