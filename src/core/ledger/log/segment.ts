/**
 * A segment is a file of fixed size, zero-filled before use: a header, records, then zeros. (WAL-18)
 *
 *     0        4         6              8            12          20           28     32
 *     ├ "HSWL" ┼ version ┼ header bytes ┼ segment id ┼ identity ─┼ first lsn ─┼ crc ─┤ records …
 *
 * A header is written together with the segment's first batch, so a file whose first 32 bytes are zero has been
 * prepared and never used. The header lies in one sector: a crash leaves it complete, absent or, after a short write,
 * partial; anything else there was not written by us or is corrupt. `identity` is a digest of the cluster's and the
 * node's name: a log moved to another node is rejected. A zero identity fits every node.
 */

import { assert } from "../../base/assert.ts";
import { encodeUtf8 } from "../../base/bytes.ts";
import { crc32 } from "../../base/crc32.ts";
import { hexOf } from "../../base/hex.ts";
import { sha256 } from "../../base/sha256.ts";
import { getUint64, setUint64, viewOf } from "./record.ts";

export const SEGMENT_HEADER_BYTES = 32;
export const SEGMENT_VERSION = 1;
const MAGIC = 0x4c57_5348; // "HSWL", little-endian

export interface SegmentHeader {
  readonly segmentId: number;
  /** 16 hexadecimal digits. */
  readonly identity: string;
  readonly firstLsn: number;
}

type HeaderVerdict =
  | { readonly kind: "header"; readonly header: SegmentHeader }
  /** Prepared and never used, or shorter than a header: a crash during creation. */
  | { readonly kind: "unused" }
  | { readonly kind: "version"; readonly version: number }
  /** Not ours: another magic. */
  | { readonly kind: "foreign" }
  /** Ours, and damaged. */
  | { readonly kind: "damaged" };

export const ANY_IDENTITY = "0000000000000000";

/** Identity that binds a log to one node of one cluster. */
export function identityOf(cluster: string, node: string): string {
  const digest = sha256(encodeUtf8(`hyperscale wal\n${cluster}\n${node}`)).subarray(0, 8);
  return hexOf(digest);
}

export function encodeSegmentHeader(header: SegmentHeader): Uint8Array {
  assert(header.segmentId >= 1 && header.segmentId < 2 ** 32, "segments count from 1");
  assert(/^[0-9a-f]{16}$/.test(header.identity), "an identity has 16 hexadecimal digits");
  const bytes = new Uint8Array(SEGMENT_HEADER_BYTES);
  const view = viewOf(bytes);
  view.setUint32(0, MAGIC, true);
  view.setUint16(4, SEGMENT_VERSION, true);
  view.setUint16(6, SEGMENT_HEADER_BYTES, true);
  view.setUint32(8, header.segmentId, true);
  for (let i = 0; i < 8; i++) {
    bytes[12 + i] = Number.parseInt(header.identity.slice(2 * i, 2 * i + 2), 16);
  }
  setUint64(view, 20, header.firstLsn);
  view.setUint32(28, crc32(bytes, 0, 28), true);
  return bytes;
}

export function decodeSegmentHeader(bytes: Uint8Array): HeaderVerdict {
  if (bytes.length < SEGMENT_HEADER_BYTES || isZero(bytes, 0, SEGMENT_HEADER_BYTES)) {
    return { kind: "unused" };
  }
  const view = viewOf(bytes);
  if (view.getUint32(0, true) !== MAGIC) return { kind: "foreign" };
  const sound = view.getUint32(28, true) === crc32(bytes, 0, 28);
  const version = view.getUint16(4, true);
  // A later version may keep its checksum elsewhere, so a version is believed when it is not ours and
  // one bit cannot have made it: a flipped bit of ours is damage.
  if (version !== SEGMENT_VERSION && (sound || !isPowerOfTwo(version ^ SEGMENT_VERSION))) {
    return { kind: "version", version };
  }
  const firstLsn = getUint64(view, 20);
  if (!sound || !Number.isSafeInteger(firstLsn)) return { kind: "damaged" };
  const identity = hexOf(bytes.subarray(12, 20));
  return {
    kind: "header",
    header: { segmentId: view.getUint32(8, true), identity, firstLsn },
  };
}

/** True: a write of `header` stopped after some of its bytes. An identity of anyone fits any. */
export function isHeaderBegun(bytes: Uint8Array, header: SegmentHeader): boolean {
  const found = new Uint8Array(SEGMENT_HEADER_BYTES);
  found.set(bytes.subarray(0, SEGMENT_HEADER_BYTES));
  const anyone = header.identity === ANY_IDENTITY;
  const identity = anyone ? hexOf(found.subarray(12, 20)) : header.identity;
  const whole = encodeSegmentHeader({ ...header, identity });
  const length = found.findLastIndex((byte) => byte !== 0) + 1;
  return found.subarray(0, length).every((byte, index) => byte === whole[index]);
}

function isPowerOfTwo(value: number): boolean {
  return value > 0 && (value & (value - 1)) === 0;
}

const NAME = /^segment_(\d{8})\.wal$/;

export function segmentName(segmentId: number): string {
  return `segment_${String(segmentId).padStart(8, "0")}.wal`;
}

export function segmentIdOf(name: string): number | null {
  const digits = NAME.exec(name)?.[1];
  return digits === undefined || Number(digits) === 0 ? null : Number(digits);
}

/** Compares whole machine words: the empty rest of a segment is 64 MB at worst. */
export function isZero(bytes: Uint8Array, start: number, end: number): boolean {
  return firstNonZero(bytes, start, end) === end;
}

/** The offset of the first byte that is not zero, or `end`. */
export function firstNonZero(bytes: Uint8Array, start: number, end: number): number {
  let at = start;
  while (at < end && (bytes.byteOffset + at) % 4 !== 0) {
    if (bytes[at] !== 0) return at;
    at++;
  }
  if (at === end) return end;
  const words = new Int32Array(bytes.buffer, bytes.byteOffset + at, Math.max(0, (end - at) >> 2));
  let word = 0;
  while (word < words.length && words[word] === 0) word++;
  for (at += word * 4; at < end; at++) if (bytes[at] !== 0) return at;
  return end;
}
