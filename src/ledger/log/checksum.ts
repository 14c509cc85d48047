/** `zlib.crc32` from some length on; below it our own is faster, for it needs no view and no crossing. */

import { crc32 as zlibCrc32 } from "node:zlib";
import { crc32 } from "../../core/base/crc32.ts";

/** Measured on Node 20: at about this size the two take the same time. */
const NATIVE_BYTES_MIN = 256;

export function checksum(bytes: Uint8Array, start: number, end: number): number {
  if (end - start < NATIVE_BYTES_MIN) return crc32(bytes, start, end);
  return zlibCrc32(bytes.subarray(start, end));
}
