/**
 * A checkpoint file: a snapshot and how much of the log it stands for. (CKPT-2) What the snapshot holds
 * is its owner's affair; decoding never executes anything.
 *
 *     "HSCP" · version u16 · header bytes u16 · id 16 · identity 8 · created u64 · local lsn u64 ·
 *     regional lsn u64 · global lsn u64 · length u64 · crc of the payload u32 · crc of the header u32 · payload
 */

import { assert } from "../../base/assert.ts";
import { type Crc32, crc32 } from "../../base/crc32.ts";
import { getUint64, setUint64, viewOf } from "./record.ts";

export interface CheckpointHeader {
  /** 32 hexadecimal digits. */
  readonly id: string;
  readonly identity: string;
  /** Wall clock, for people. */
  readonly createdAt: number;
  /** The snapshot is the fold of all entries up to here, exactly. (CKPT-1) */
  readonly localLsn: number;
  /** Confirmed in the region and globally without a gap up to here. (CKPT-3) */
  readonly regionalLsn: number;
  readonly globalLsn: number;
}

type CheckpointVerdict =
  | { readonly ok: true; readonly header: CheckpointHeader; readonly payload: Uint8Array }
  | { readonly ok: false; readonly problem: string };

const CHECKPOINT_HEADER_BYTES = 80;
const CHECKPOINT_VERSION = 1;
const MAGIC = 0x5043_5348; // "HSCP", little-endian

export function encodeCheckpointHeader(
  header: CheckpointHeader,
  payload: Uint8Array,
  checksum: Crc32 = crc32,
): Uint8Array {
  assert(/^[0-9a-f]{32}$/.test(header.id), "a checkpoint id has 32 hexadecimal digits");
  const bytes = new Uint8Array(CHECKPOINT_HEADER_BYTES);
  const view = viewOf(bytes);
  view.setUint32(0, MAGIC, true);
  view.setUint16(4, CHECKPOINT_VERSION, true);
  view.setUint16(6, CHECKPOINT_HEADER_BYTES, true);
  bytes.set(fromHex(header.id), 8);
  bytes.set(fromHex(header.identity), 24);
  setUint64(view, 32, header.createdAt);
  setUint64(view, 40, header.localLsn);
  setUint64(view, 48, header.regionalLsn);
  setUint64(view, 56, header.globalLsn);
  setUint64(view, 64, payload.length);
  view.setUint32(72, checksum(payload, 0, payload.length), true);
  view.setUint32(76, crc32(bytes, 0, 76), true);
  return bytes;
}

export function decodeCheckpoint(bytes: Uint8Array, checksum: Crc32 = crc32): CheckpointVerdict {
  const no = (problem: string): CheckpointVerdict => ({ ok: false, problem });
  if (bytes.length < CHECKPOINT_HEADER_BYTES) return no("shorter than a header");
  const view = viewOf(bytes);
  if (view.getUint32(0, true) !== MAGIC) return no("not a checkpoint");
  const version = view.getUint16(4, true);
  if (view.getUint32(76, true) !== crc32(bytes, 0, 76)) return no("damaged header");
  if (version !== CHECKPOINT_VERSION) {
    return no(`format version ${version}; this program reads version ${CHECKPOINT_VERSION}`);
  }
  const numbers = [32, 40, 48, 56, 64].map((at) => getUint64(view, at));
  const [createdAt = 0, localLsn = 0, regionalLsn = 0, globalLsn = 0, length = 0] = numbers;
  if (!numbers.every(Number.isSafeInteger)) return no("a number is too large");
  if (bytes.length !== CHECKPOINT_HEADER_BYTES + length) return no("not as long as it says");
  if (view.getUint32(72, true) !== checksum(bytes, CHECKPOINT_HEADER_BYTES, bytes.length)) {
    return no("damaged payload");
  }
  const id = toHex(bytes.subarray(8, 24));
  const identity = toHex(bytes.subarray(24, 32));
  return {
    ok: true,
    header: { id, identity, createdAt, localLsn, regionalLsn, globalLsn },
    payload: bytes.subarray(CHECKPOINT_HEADER_BYTES),
  };
}

/**
 * How much of the log may go: what the oldest kept checkpoint covers, so that every kept one can still
 * be gone on from. (CKPT-4)
 */
export function safeLsn(kept: readonly CheckpointHeader[]): number {
  const [first, ...others] = kept;
  if (first === undefined) return 0;
  const oldest = others.reduce((a, b) => (b.localLsn < a.localLsn ? b : a), first);
  return Math.min(oldest.localLsn, oldest.globalLsn);
}

export const CHECKPOINT_DEFAULTS = {
  intervalEntries: 100_000,
  intervalMs: 300_000,
  keptMax: 3,
} as const;

/** Is a checkpoint due? Both count from the last one, the first from the start of the process. (CKPT-9) */
export function checkpointDue(
  since: { readonly entries: number; readonly ms: number },
  interval: { readonly intervalEntries: number; readonly intervalMs: number },
): boolean {
  if (since.entries === 0) return false;
  return since.entries >= interval.intervalEntries || since.ms >= interval.intervalMs;
}

const NAME = /^checkpoint_([0-9a-f]{32})\.ckpt$/;

export function checkpointName(id: string): string {
  return `checkpoint_${id}.ckpt`;
}

export function checkpointIdOf(name: string): string | null {
  return NAME.exec(name)?.[1] ?? null;
}

function fromHex(text: string): Uint8Array {
  const digits = text.match(/../g) ?? [];
  return Uint8Array.from(digits, (pair) => Number.parseInt(pair, 16));
}

function toHex(bytes: Uint8Array): string {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
