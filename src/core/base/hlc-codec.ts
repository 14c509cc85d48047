/** A stamp on disk and on the wire: two u64, little-endian, 16 bytes. The name is stored elsewhere. */

import { assert } from "./assert.ts";
import type { HlcStamp } from "./hlc.ts";

export const HLC_STAMP_BYTES = 16;

const WORD = 2 ** 32;

export function encodeStamp(stamp: HlcStamp): Uint8Array {
  const bytes = new Uint8Array(HLC_STAMP_BYTES);
  putStamp(new DataView(bytes.buffer), 0, stamp);
  return bytes;
}

/** Writes 16 bytes at the offset of a larger record. */
export function putStamp(view: DataView, at: number, stamp: HlcStamp): void {
  putUint64(view, at, stamp.wallMs);
  putUint64(view, at + 8, stamp.logical);
}

/** Null when a number does not fit the safe integers: no clock of ours ever wrote it. */
export function getStamp(view: DataView, at: number): HlcStamp | null {
  const wallMs = getUint64(view, at);
  const logical = getUint64(view, at + 8);
  return wallMs === null || logical === null ? null : { wallMs, logical };
}

export function decodeStamp(bytes: Uint8Array): HlcStamp | null {
  if (bytes.length !== HLC_STAMP_BYTES) return null;
  return getStamp(new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), 0);
}

function putUint64(view: DataView, at: number, value: number): void {
  assert(Number.isSafeInteger(value) && value >= 0, "a stamp's number is a safe integer");
  view.setUint32(at, value % WORD, true);
  view.setUint32(at + 4, Math.floor(value / WORD), true);
}

function getUint64(view: DataView, at: number): number | null {
  const value = view.getUint32(at + 4, true) * WORD + view.getUint32(at, true);
  return Number.isSafeInteger(value) ? value : null;
}
