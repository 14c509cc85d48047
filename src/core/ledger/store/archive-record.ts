/**
 * The files of the archive: one per day, append-only; a further one where the first cannot be used.
 *
 *     archive_20260131.log    "HSAR" · version u16 · 0 u16, then records
 *     record                  bytes u32 · crc u32 · varint archivedAt · text job · state of the job
 */

import { ByteReader, ByteWriter } from "../../base/bytes.ts";
import { civilDate } from "../../base/civil.ts";
import type { Crc32 } from "../../base/crc32.ts";
import type { JobState } from "../job/job-state.ts";
import { JOB_ID_BYTES_MAX, JOB_STATE_BYTES_MAX } from "../job/limits.ts";
import { decodeJobState } from "../job/state-codec.ts";

export const ARCHIVE_HEADER = Uint8Array.of(0x48, 0x53, 0x41, 0x52, 1, 0, 0, 0); // "HSAR", version 1
const RECORD_HEAD_BYTES = 8;
const RECORD_BYTES_MAX = JOB_STATE_BYTES_MAX + 256;
const DAY_MS = 86_400_000;
const NAME = /^archive_(\d{8})(?:_\d{1,6})?\.log$/;

interface ArchivedJob {
  readonly jobId: string;
  readonly state: JobState;
  /** Size of the record. */
  readonly bytes: number;
}

export function encodeArchived(
  jobId: string,
  state: Uint8Array,
  wall: number,
  checksum: Crc32,
): Uint8Array {
  const out = new ByteWriter(state.length + 128);
  out.raw(new Uint8Array(RECORD_HEAD_BYTES));
  out.varint(Math.floor(wall));
  out.text(jobId);
  out.bytes(state);
  const record = out.take();
  const view = new DataView(record.buffer, record.byteOffset);
  view.setUint32(0, record.length - RECORD_HEAD_BYTES, true);
  view.setUint32(4, checksum(record, RECORD_HEAD_BYTES, record.length), true);
  return record;
}

/** The record at `at`; "more": it reaches beyond what has been read; null: this is no record. */
export function decodeArchived(
  bytes: Uint8Array,
  at: number,
  checksum: Crc32,
): ArchivedJob | "more" | null {
  if (bytes.length - at < RECORD_HEAD_BYTES) return "more";
  const view = new DataView(bytes.buffer, bytes.byteOffset + at);
  const length = view.getUint32(0, true);
  if (length > RECORD_BYTES_MAX) return null;
  const start = at + RECORD_HEAD_BYTES;
  if (start + length > bytes.length) return "more";
  if (checksum(bytes, start, start + length) !== view.getUint32(4, true)) return null;
  const from = new ByteReader(bytes.subarray(start, start + length));
  from.varint();
  const jobId = from.text(JOB_ID_BYTES_MAX);
  const decoded = decodeJobState(from.bytes(JOB_STATE_BYTES_MAX));
  if (from.failed || !decoded.ok) return null;
  return { jobId, state: decoded.value, bytes: RECORD_HEAD_BYTES + length };
}

/** A day has further files where the first one cannot be used. */
export function archiveName(day: string, number: number): string {
  return number === 1 ? `archive_${day}.log` : `archive_${day}_${number}.log`;
}

export function archiveDayOf(name: string): string | null {
  return NAME.exec(name)?.[1] ?? null;
}

/** Such as "20260131", in UTC. */
export function dayText(wallMs: number): string {
  const { year, month, dayOfMonth } = civilDate(Math.floor(Math.max(0, wallMs) / DAY_MS));
  const two = (value: number): string => String(value).padStart(2, "0");
  return `${String(year).padStart(4, "0")}${two(month)}${two(dayOfMonth)}`;
}
