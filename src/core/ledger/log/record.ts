/**
 * One record of the log, little-endian.
 *
 *     0        4         8      16          24          32      33     34
 *     ├ crc32 ─┼ length ─┼ lsn ─┼ wall ms ──┼ logical ──┼ zero ─┼ type ┼ payload …
 *
 * The checksum covers everything after itself, so a record moved, cut or changed in one bit does not
 * check; thirty zero bytes do not either (their checksum is not zero), so an empty area is never a
 * record. A payload may be empty: the end of the data is an empty area, not a length of zero. (WAL-10)
 *
 * Byte 32 is reserved: it is written as zero, and a record with anything else there does not check.
 */

import { assert } from "../../base/assert.ts";
import { type Crc32, crc32 } from "../../base/crc32.ts";

export const RECORD_HEADER_BYTES = 34;

const RESERVED_AT = 32;

export interface WalRecord {
  readonly lsn: number;
  /** The hybrid clock's two halves, without the node: all records are of the log's own node. */
  readonly wall: number;
  readonly logical: number;
  readonly type: number;
  readonly payload: Uint8Array;
}

export type RecordProblem =
  | "header-truncated"
  | "payload-too-long"
  | "payload-truncated"
  | "crc-mismatch"
  | "number-too-large"
  | "reserved-not-zero";

type DecodedRecord =
  | { readonly ok: true; readonly record: WalRecord; readonly bytes: number }
  | { readonly ok: false; readonly problem: RecordProblem };

export function recordBytes(payloadLength: number): number {
  return RECORD_HEADER_BYTES + payloadLength;
}

/** Writes a record at `at`; the payload is copied. Returns the offset after it. */
export function encodeRecordInto(
  target: { readonly bytes: Uint8Array; readonly view: DataView },
  at: number,
  record: WalRecord,
  checksum: Crc32 = crc32,
): number {
  const { bytes, view } = target;
  const { payload } = record;
  const end = at + RECORD_HEADER_BYTES + payload.length;
  assert(end <= bytes.length, "a record fits where it is written");
  view.setUint32(at + 4, payload.length, true);
  setUint64(view, at + 8, record.lsn);
  setUint64(view, at + 16, record.wall);
  setUint64(view, at + 24, record.logical);
  view.setUint8(at + RESERVED_AT, 0);
  view.setUint8(at + 33, record.type);
  bytes.set(payload, at + RECORD_HEADER_BYTES);
  view.setUint32(at, checksum(bytes, at + 4, end), true);
  return end;
}

/** The record at `at`, its payload a view. `end` bounds what may be read. */
export function decodeWalRecord(
  bytes: Uint8Array,
  at = 0,
  end = bytes.length,
  payloadBytesMax = 16_777_216,
): DecodedRecord {
  if (end - at < RECORD_HEADER_BYTES) return { ok: false, problem: "header-truncated" };
  const view = viewOf(bytes);
  const length = view.getUint32(at + 4, true);
  if (length > payloadBytesMax) return { ok: false, problem: "payload-too-long" };
  const after = at + RECORD_HEADER_BYTES + length;
  if (after > end) return { ok: false, problem: "payload-truncated" };
  if (view.getUint32(at, true) !== crc32(bytes, at + 4, after)) {
    return { ok: false, problem: "crc-mismatch" };
  }
  const record = readRecord(view, bytes, at, after);
  const problem = fieldProblem(view, at, record);
  return problem === null ? { ok: true, record, bytes: after - at } : { ok: false, problem };
}

/** Returns what is wrong with the fields of a record whose checksum matches, or null. */
export function fieldProblem(view: DataView, at: number, record: WalRecord): RecordProblem | null {
  if (view.getUint8(at + RESERVED_AT) !== 0) return "reserved-not-zero";
  const { lsn, wall, logical } = record;
  const safe = [lsn, wall, logical].every(Number.isSafeInteger);
  return safe ? null : "number-too-large";
}

/** The fields of a record that has been checked. */
export function readRecord(
  view: DataView,
  bytes: Uint8Array,
  at: number,
  after: number,
): WalRecord {
  return {
    lsn: getUint64(view, at + 8),
    wall: getUint64(view, at + 16),
    logical: getUint64(view, at + 24),
    type: view.getUint8(at + 33),
    payload: bytes.subarray(at + RECORD_HEADER_BYTES, after),
  };
}

export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

const HIGH = 2 ** 32;

export function setUint64(view: DataView, at: number, value: number): void {
  assert(Number.isSafeInteger(value) && value >= 0, "a number on disk is a safe integer");
  view.setUint32(at, value % HIGH, true);
  view.setUint32(at + 4, Math.floor(value / HIGH), true);
}

/** Not a safe integer when the bytes hold more than 2^53: the caller refuses it. */
export function getUint64(view: DataView, at: number): number {
  return view.getUint32(at, true) + view.getUint32(at + 4, true) * HIGH;
}
