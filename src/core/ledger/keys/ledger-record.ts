/**
 * The records of a manager's idempotency ledger: payloads of WAL entries, big-endian, one layout for all three
 * types. The fixed part is followed by the fingerprint and, in a reservation, by the submission itself, so that
 * a restarted manager goes on without the client. (IDEM-18)
 *
 *     key length 4, key | job id length 4, job id | status 1 | created 8 | committed 8 | result length 4, result
 *     fingerprint 32 | submission length 4, submission
 *
 * Times are seconds of the Unix epoch as doubles; 0 is none.
 */

import { assert } from "../../base/assert.ts";
import { decodeUtf8, encodeUtf8 } from "../../base/bytes.ts";
import { FINGERPRINT_BYTES, type IdempotencyKey, isKey, KEY_BYTES_MAX } from "./key.ts";
import { ACK_BYTES_MAX, CREATED_BYTES_MAX, isJobId, JOB_ID_BYTES_MAX } from "./shard-entry.ts";

export type LedgerStatus = "pending" | "committed" | "rejected";

/** Record types of the WAL. */
export const LEDGER_RECORD_TYPE: Readonly<Record<LedgerStatus, number>> = {
  pending: 16,
  committed: 17,
  rejected: 18,
};

const STATUS_CODE: Readonly<Record<LedgerStatus, number>> = {
  pending: 1,
  committed: 2,
  rejected: 3,
};

/** The fixed part. */
export interface LedgerBase {
  readonly key: string;
  readonly jobId: string;
  readonly status: LedgerStatus;
  /** Wall milliseconds. */
  readonly createdAt: number;
  /** Null while pending. */
  readonly committedAt: number | null;
  readonly result: Uint8Array;
}

export interface LedgerRecord extends LedgerBase {
  readonly key: IdempotencyKey;
  readonly fingerprint: Uint8Array;
  /** Empty once it has ended. */
  readonly submission: Uint8Array;
}

export function encodeLedgerBase(base: LedgerBase): Uint8Array {
  const key = encodeUtf8(base.key);
  const jobId = encodeUtf8(base.jobId);
  const bytes = new Uint8Array(29 + key.length + jobId.length + base.result.length);
  const view = new DataView(bytes.buffer);
  let at = writeBlob(bytes, view, 0, key);
  at = writeBlob(bytes, view, at, jobId);
  view.setUint8(at, STATUS_CODE[base.status]);
  view.setFloat64(at + 1, base.createdAt / 1_000);
  view.setFloat64(at + 9, (base.committedAt ?? 0) / 1_000);
  at = writeBlob(bytes, view, at + 17, base.result);
  assert(at === bytes.length, "the layout adds up");
  return bytes;
}

export function encodeLedgerRecord(record: LedgerRecord): Uint8Array {
  assert(record.fingerprint.length === FINGERPRINT_BYTES, "a fingerprint has 32 bytes");
  const base = encodeLedgerBase(record);
  const bytes = new Uint8Array(base.length + FINGERPRINT_BYTES + 4 + record.submission.length);
  bytes.set(base);
  bytes.set(record.fingerprint, base.length);
  const view = new DataView(bytes.buffer);
  writeBlob(bytes, view, base.length + FINGERPRINT_BYTES, record.submission);
  return bytes;
}

function writeBlob(bytes: Uint8Array, view: DataView, at: number, blob: Uint8Array): number {
  view.setUint32(at, blob.length);
  bytes.set(blob, at + 4);
  return at + 4 + blob.length;
}

/** Null for anything that is not one whole record. */
export function decodeLedgerRecord(bytes: Uint8Array): LedgerRecord | null {
  const reader = new BlobReader(bytes);
  const base = readBase(reader);
  const fingerprint = reader.take(FINGERPRINT_BYTES);
  const submission = reader.blob(CREATED_BYTES_MAX);
  if (base === null || fingerprint === null || submission === null || !reader.atEnd) return null;
  if (!isKey(base.key) || !isJobId(base.jobId)) return null;
  if ((base.status === "pending") !== (base.committedAt === null)) return null;
  return { ...base, key: base.key, fingerprint, submission };
}

/** The fixed part alone, as the oldest format had it. */
export function decodeLedgerBase(bytes: Uint8Array): LedgerBase | null {
  const reader = new BlobReader(bytes);
  const base = readBase(reader);
  return reader.atEnd ? base : null;
}

function readBase(reader: BlobReader): LedgerBase | null {
  const key = reader.blob(KEY_BYTES_MAX);
  const jobId = reader.blob(JOB_ID_BYTES_MAX);
  const fixed = reader.take(17);
  const result = reader.blob(ACK_BYTES_MAX);
  if (key === null || jobId === null || fixed === null || result === null) return null;
  const view = new DataView(fixed.buffer, fixed.byteOffset, fixed.length);
  const code = view.getUint8(0);
  const status = code === 1 ? "pending" : code === 2 ? "committed" : code === 3 ? "rejected" : null;
  const createdAt = Math.round(view.getFloat64(1) * 1_000);
  const committedAt = Math.round(view.getFloat64(9) * 1_000);
  if (status === null || !isTime(createdAt) || !isTime(committedAt)) return null;
  return {
    key: decodeUtf8(key),
    jobId: decodeUtf8(jobId),
    status,
    createdAt,
    committedAt: committedAt === 0 ? null : committedAt,
    result,
  };
}

function isTime(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}

/** Blobs with four bytes of length; null, and nothing more, once anything is out of bounds. */
class BlobReader {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  #at = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  }

  get atEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  take(count: number): Uint8Array | null {
    if (this.#at + count > this.#bytes.length) {
      this.#at = Infinity;
      return null;
    }
    this.#at += count;
    return this.#bytes.subarray(this.#at - count, this.#at);
  }

  blob(lengthMax: number): Uint8Array | null {
    if (this.take(4) === null) return null;
    const length = this.#view.getUint32(this.#at - 4);
    return this.take(length > lengthMax ? Infinity : length);
  }
}
