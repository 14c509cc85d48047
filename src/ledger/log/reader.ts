/**
 * Reads the records of a log for inspection, in order, from any LSN on; the sparse index tells where to begin.
 * Checksums and numbers are verified and nothing is skipped; only recovery can classify damage (a torn tail,
 * corruption), since that depends on the whole log. (SR-4, SR-7)
 */

import { type FileHandle, open } from "node:fs/promises";
import { join } from "node:path";
import { decodeWalRecord, type WalRecord } from "../../core/ledger/log/record.ts";
import {
  decodeSegmentHeader,
  isZero,
  SEGMENT_HEADER_BYTES,
  SEGMENT_VERSION,
} from "../../core/ledger/log/segment.ts";
import { SparseIndex } from "../../core/ledger/log/sparse-index.ts";
import { WalError } from "./errors.ts";
import { readDirectory, readIndex } from "./look.ts";

export interface SegmentInfo {
  readonly segmentId: number;
  readonly path: string;
  readonly firstLsn: number;
  readonly index: SparseIndex;
}

export interface ReadEntry extends WalRecord {
  readonly segmentId: number;
  /** The byte at which it begins. (SR-4) */
  readonly offset: number;
}

const CHUNK_BYTES = 1_048_576;

interface ListOptions {
  /** A log of another identity is refused. */
  readonly identity?: string;
  /** A segment with a damaged header is reported here and skipped, instead of rejecting the log. */
  readonly onDamaged?: (file: string) => void;
}

/** The segments that hold records, oldest first, with their stored indexes. */
export async function listSegments(
  path: string,
  options: ListOptions = {},
): Promise<readonly SegmentInfo[]> {
  const directory = await readDirectory(path);
  const segments: SegmentInfo[] = [];
  for (const { segmentId, name } of directory.segments) {
    const file = join(path, name);
    const verdict = decodeSegmentHeader(await readSegmentHead(file));
    if (verdict.kind === "unused") continue;
    if (verdict.kind === "damaged" && options.onDamaged !== undefined) {
      options.onDamaged(file);
      continue;
    }
    if (verdict.kind === "version") {
      const text = `${file} was written in version ${verdict.version}; this one reads ${SEGMENT_VERSION}`;
      throw new WalError("WAL_VERSION", text);
    }
    if (verdict.kind !== "header") {
      throw new WalError("WAL_FOREIGN", `${file} is no segment that can be read: ${verdict.kind}`);
    }
    const { firstLsn, identity } = verdict.header;
    if (options.identity !== undefined && identity !== options.identity) {
      throw new WalError("WAL_IDENTITY", `${file} belongs to another log (${identity})`);
    }
    const stored = await readIndex(path, segmentId);
    const index = stored?.firstLsn === firstLsn ? stored : new SparseIndex(segmentId, firstLsn);
    segments.push({ segmentId, path: file, firstLsn, index });
  }
  return segments;
}

export async function readSegmentHead(path: string): Promise<Uint8Array> {
  const file = await open(path, "r");
  try {
    return await readChunk(file, 0, SEGMENT_HEADER_BYTES);
  } finally {
    await file.close();
  }
}

/** Records from `from` to `to`, both included. Throws a `WalError` at the first place that does not check. */
export async function* readRecords(
  segments: readonly SegmentInfo[],
  { from, to = Number.MAX_SAFE_INTEGER }: { readonly from: number; readonly to?: number },
): AsyncGenerator<ReadEntry> {
  const [oldest] = segments;
  if (oldest === undefined) return;
  if (from < oldest.firstLsn) {
    const text = `LSN ${from} was compacted away; the log begins at ${oldest.firstLsn}`;
    throw new WalError("WAL_COMPACTED", text);
  }
  for (const [at, segment] of segments.entries()) {
    if (segment.firstLsn > to) return;
    const next = segments[at + 1];
    if (next !== undefined && next.firstLsn <= from) continue;
    const last = Math.min(to, (next?.firstLsn ?? Number.POSITIVE_INFINITY) - 1);
    for await (const entry of readSegment(segment, from, last, next === undefined)) {
      if (entry.lsn >= from) yield entry;
    }
  }
}

/** The records of one segment up to LSN `last`, beginning at or somewhat before `from`. */
async function* readSegment(
  { segmentId, path, firstLsn, index }: SegmentInfo,
  from: number,
  last: number,
  mayEnd: boolean,
): AsyncGenerator<ReadEntry> {
  const point = index.seek(from);
  let offset = point?.offset ?? SEGMENT_HEADER_BYTES;
  let expected = point?.lsn ?? firstLsn;
  /** Bytes read, from `offset` on. */
  let ahead: Buffer = Buffer.alloc(0);
  const damage = (problem: string): WalError =>
    new WalError("WAL_CORRUPT", `${path} at ${offset}: ${problem}`);
  const file = await open(path, "r");
  try {
    while (expected <= last) {
      const decoded = decodeWalRecord(ahead);
      if (decoded.ok) {
        const { record, bytes } = decoded;
        if (record.lsn !== expected) {
          throw damage(`holds LSN ${record.lsn} where ${expected} should be`);
        }
        yield { ...record, segmentId, offset };
        expected++;
        offset += bytes;
        ahead = ahead.subarray(bytes);
        continue;
      }
      const cut = decoded.problem.endsWith("truncated");
      const more = cut ? await readChunk(file, offset + ahead.length, CHUNK_BYTES) : null;
      if (more !== null && more.length > 0) {
        ahead = Buffer.concat([ahead, more]);
        continue;
      }
      // Behind the last record there are zeros up to the end of the file.
      if (mayEnd && isZero(ahead, 0, ahead.length)) return;
      throw damage(cut ? "the file ends inside a record" : decoded.problem);
    }
  } finally {
    await file.close();
  }
}

async function readChunk(file: FileHandle, position: number, bytesMax: number): Promise<Buffer> {
  const chunk = Buffer.alloc(bytesMax);
  const { bytesRead } = await file.read(chunk, 0, bytesMax, position);
  return chunk.subarray(0, bytesRead);
}
