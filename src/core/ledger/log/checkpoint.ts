/**
 * A checkpoint file: a snapshot in slices, and how much of the log it covers. (CKPT-2) The content of a slice is opaque
 * here; decoding never executes anything.
 *
 *     "HSCP" · version u16 · header bytes u16 · id 16 · identity 8 · created u64 · local lsn u64 ·
 *     through lsn u64 · slices u64 · length u64 · 0 u32 · crc of the header u32, then the slices:
 *     length u32 · crc of what follows u32 · lsn u64 · bytes
 *
 * Each slice was taken at its own LSN: it has its part of the state as of all entries up to there. So recovery reads
 * the log from the first slice's LSN on, and skips what a slice has. One number tells how much of the log may be
 * removed: entries that no quorum has are in the state with their groups. (CKPT-1, CKPT-3)
 *
 * Version 1 had one slice without a head, and its checksum in the header.
 */

import { assert } from "../../base/assert.ts";
import { type Crc32, crc32 } from "../../base/crc32.ts";
import { hexOf } from "../../base/hex.ts";
import { type FileProblem, type FileWork, readWhole } from "./files.ts";
import { getUint64, setUint64, viewOf } from "./record.ts";

export interface CheckpointHeader {
  /** 32 hexadecimal digits. */
  readonly id: string;
  readonly identity: string;
  /** Wall clock, for people. */
  readonly createdAt: number;
  /** The first slice was taken here: no entry up to here is needed any more. */
  readonly localLsn: number;
  /** The last slice was taken here: the log must reach so far. */
  readonly throughLsn: number;
  readonly slices: number;
  /** All slices with their heads. */
  readonly bytes: number;
}

export interface CheckpointSlice {
  /** The payload covers all entries up to this LSN. */
  readonly lsn: number;
  readonly payload: Uint8Array;
}

export const CHECKPOINT_HEADER_BYTES = 80;
const CHECKPOINT_VERSION = 2;
const SLICE_HEAD_BYTES = 16;
const MAGIC = 0x5043_5348; // "HSCP", little-endian

export function encodeCheckpointHeader(header: CheckpointHeader): Uint8Array {
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
  setUint64(view, 48, header.throughLsn);
  setUint64(view, 56, header.slices);
  setUint64(view, 64, header.bytes);
  view.setUint32(76, crc32(bytes, 0, 76), true);
  return bytes;
}

export function encodeSlice(
  { lsn, payload }: CheckpointSlice,
  checksum: Crc32 = crc32,
): Uint8Array {
  const bytes = new Uint8Array(SLICE_HEAD_BYTES + payload.length);
  const view = viewOf(bytes);
  view.setUint32(0, payload.length, true);
  setUint64(view, 8, lsn);
  bytes.set(payload, SLICE_HEAD_BYTES);
  view.setUint32(4, checksum(bytes, 8, bytes.length), true);
  return bytes;
}

type Verdict<Value> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly problem: string };

interface DecodedHeader {
  readonly header: CheckpointHeader;
  /** Version 1 only: checksum of the single slice; null in later versions. */
  readonly wholeCrc: number | null;
}

function no(problem: string): { readonly ok: false; readonly problem: string } {
  return { ok: false, problem };
}

function decodeHeader(bytes: Uint8Array): Verdict<DecodedHeader> {
  if (bytes.length < CHECKPOINT_HEADER_BYTES) return no("shorter than a header");
  const view = viewOf(bytes);
  if (view.getUint32(0, true) !== MAGIC) return no("not a checkpoint");
  const version = view.getUint16(4, true);
  if (view.getUint32(76, true) !== crc32(bytes, 0, 76)) return no("damaged header");
  if (version !== CHECKPOINT_VERSION && version !== 1) {
    return no(`format version ${version}; this program reads version ${CHECKPOINT_VERSION}`);
  }
  const numbers = [32, 40, 48, 56, 64].map((at) => getUint64(view, at));
  const [createdAt = 0, localLsn = 0, through = 0, count = 0, length = 0] = numbers;
  if (!numbers.every(Number.isSafeInteger)) return no("a number is too large");
  const old = version === 1;
  const id = hexOf(bytes.subarray(8, 24));
  const identity = hexOf(bytes.subarray(24, 32));
  const [throughLsn, slices] = old ? [localLsn, 1] : [through, count];
  return {
    ok: true,
    value: {
      header: { id, identity, createdAt, localLsn, throughLsn, slices, bytes: length },
      wholeCrc: old ? view.getUint32(72, true) : null,
    },
  };
}

interface ReadOptions {
  readonly checksum?: Crc32;
  /** Each intact slice, in order; one that is damaged may follow. */
  readonly onSlice?: (slice: CheckpointSlice) => void;
}

/** Reads a checkpoint slice by slice. Returns a text if it is damaged. */
export function* readCheckpoint(
  path: string,
  fileBytes: number,
  options: ReadOptions = {},
): FileWork<CheckpointHeader | string> {
  const found = yield* readSlices(path, fileBytes, options);
  yield { kind: "release", path };
  return typeof found === "object" && "ok" in found ? `cannot be read: ${found.message}` : found;
}

function* readSlices(
  path: string,
  fileBytes: number,
  { checksum = crc32, onSlice = () => {} }: ReadOptions,
): FileWork<CheckpointHeader | string | FileProblem> {
  const decoded = yield* readHeader(path);
  if ("message" in decoded) return decoded;
  if (!decoded.ok) return decoded.problem;
  const { header, wholeCrc } = decoded.value;
  const end = CHECKPOINT_HEADER_BYTES + header.bytes;
  if (fileBytes !== end) return "not as long as it says";
  let at = CHECKPOINT_HEADER_BYTES;
  let lsn = header.localLsn;
  for (let count = 0; count < header.slices; count++) {
    const length =
      wholeCrc === null ? yield* sliceLength(path, at, end) : header.bytes + SLICE_HEAD_BYTES;
    if (length === null) return "damaged payload";
    if (typeof length === "object") return length;
    const bytes = new Uint8Array(length);
    const from = wholeCrc === null ? 0 : SLICE_HEAD_BYTES;
    const got = yield* readWhole(path, at, bytes.subarray(from));
    if (typeof got !== "number") return got;
    const slice = decodeSlice(bytes, header, wholeCrc, checksum);
    if (slice === null || slice.lsn < lsn) return "damaged payload";
    ({ lsn } = slice);
    at += length - from;
    onSlice(slice);
    // A slice is decoded at once; the next one is for another turn.
    yield { kind: "turn" };
  }
  return at === end && lsn === header.throughLsn ? header : "damaged payload";
}

function* readHeader(path: string): FileWork<Verdict<DecodedHeader> | FileProblem> {
  const head = new Uint8Array(CHECKPOINT_HEADER_BYTES);
  const read = yield* readWhole(path, 0, head);
  return typeof read === "number" ? decodeHeader(head.subarray(0, read)) : read;
}

/** Reads the LSN that a checkpoint covers; 0 if it cannot be read. */
export function* readCoveredLsn(path: string): FileWork<number> {
  const decoded = yield* readHeader(path);
  yield { kind: "release", path };
  return decoded.ok ? decoded.value.header.localLsn : 0;
}

/** With its head; null: it does not fit. */
function* sliceLength(
  path: string,
  at: number,
  end: number,
): FileWork<number | null | FileProblem> {
  const head = new Uint8Array(4);
  const got = yield* readWhole(path, at, head);
  if (typeof got !== "number") return got;
  const length = SLICE_HEAD_BYTES + viewOf(head).getUint32(0, true);
  return got < head.length || at + length > end ? null : length;
}

function decodeSlice(
  bytes: Uint8Array,
  { localLsn }: CheckpointHeader,
  wholeCrc: number | null,
  checksum: Crc32,
): CheckpointSlice | null {
  const view = viewOf(bytes);
  const payload = bytes.subarray(SLICE_HEAD_BYTES);
  if (wholeCrc !== null) {
    const sound = wholeCrc === checksum(bytes, SLICE_HEAD_BYTES, bytes.length);
    return sound ? { lsn: localLsn, payload } : null;
  }
  if (view.getUint32(4, true) !== checksum(bytes, 8, bytes.length)) return null;
  const lsn = getUint64(view, 8);
  return Number.isSafeInteger(lsn) ? { lsn, payload } : null;
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
