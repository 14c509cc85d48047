/**
 * A small durable record: two copies, written one after the other, each synced before the next begins and both before
 * anything relies on it. A crash tears at most the copy being written, and the other still has the previous record; a
 * corrupt copy is ignored in favour of the intact one. The newest copy whose checksum matches wins. The bytes are
 * defined here; `two-copies.ts` has the order of reads and writes.
 *
 *     copy = magic(4) · generation(8) · length(4) · payload · crc32(4)
 */

import { assert } from "./assert.ts";
import { crc32 } from "./crc32.ts";

const RECORD_PAYLOAD_BYTES_MAX = 256;
/** Magic, generation, length. */
export const RECORD_HEAD_BYTES = 16;
const TAIL_BYTES = 4;
const MAGIC = 0x48_53_52_31; // "HSR1"
/** Both copies of a record live in one region, a sector apart. */
export const RECORD_COPY_BYTES = 512;

export interface DurableRecord {
  readonly generation: number;
  readonly payload: Uint8Array;
}

export function encodeRecord(record: DurableRecord): Uint8Array {
  const { generation, payload } = record;
  assert(payload.length <= RECORD_PAYLOAD_BYTES_MAX, "a durable record fits its limit");
  assert(Number.isSafeInteger(generation) && generation >= 0, "a generation counts up");
  const bytes = new Uint8Array(RECORD_HEAD_BYTES + payload.length + TAIL_BYTES);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, MAGIC);
  view.setUint32(4, Math.floor(generation / 2 ** 32));
  view.setUint32(8, generation % 2 ** 32);
  view.setUint32(12, payload.length);
  bytes.set(payload, RECORD_HEAD_BYTES);
  view.setUint32(
    RECORD_HEAD_BYTES + payload.length,
    crc32(bytes, 0, RECORD_HEAD_BYTES + payload.length),
  );
  return bytes;
}

/** The record, or null when these bytes are not a whole, intact copy. */
export function decodeRecord(bytes: Uint8Array): DurableRecord | null {
  if (bytes.length < RECORD_HEAD_BYTES + TAIL_BYTES) return null;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (view.getUint32(0) !== MAGIC) return null;
  const length = view.getUint32(12);
  if (length > RECORD_PAYLOAD_BYTES_MAX || RECORD_HEAD_BYTES + length + TAIL_BYTES > bytes.length) {
    return null;
  }
  if (view.getUint32(RECORD_HEAD_BYTES + length) !== crc32(bytes, 0, RECORD_HEAD_BYTES + length))
    return null;
  const generation = view.getUint32(4) * 2 ** 32 + view.getUint32(8);
  if (!Number.isSafeInteger(generation)) return null;
  return {
    generation,
    payload: bytes.slice(RECORD_HEAD_BYTES, RECORD_HEAD_BYTES + length),
  };
}

/** The newest intact copy of a region, or null when there is none. */
export function recoverRecord(region: Uint8Array | null): DurableRecord | null {
  if (region === null) return null;
  const first = decodeRecord(region.subarray(0, RECORD_COPY_BYTES));
  const second = decodeRecord(region.subarray(RECORD_COPY_BYTES));
  if (first === null || second === null) return first ?? second;
  return first.generation >= second.generation ? first : second;
}
