/**
 * The answer to a submission. What is stored with a key is the part that every retry must be told alike; the
 * rest (who leads now, whether this was a duplicate) is added when it is told. (IDEM-14)
 */

import { assertNever } from "../../base/assert.ts";
import { ByteReader, ByteWriter } from "../../base/bytes.ts";
import type { SubmissionAnswer } from "./decide.ts";
import { KEY_FORMAT_ERROR } from "./key.ts";

/** Fixed once, by whoever decided. */
export interface StoredAck {
  readonly accepted: boolean;
  readonly error: string | null;
  readonly queuedPosition: number;
  readonly protocolMajor: number;
  readonly protocolMinor: number;
  readonly capabilities: string;
}

/** What the client gets. */
export interface JobAck extends StoredAck {
  readonly jobId: string;
  readonly leaderAddress: string | null;
  readonly idempotencyKey: string;
  readonly wasDuplicate: boolean;
  readonly originalJobId: string;
  /** True: nothing is decided, send the same again. Tells that from a refusal. */
  readonly retry: boolean;
}

export const ERROR_BYTES_MAX = 1_024;
export const CAPABILITIES_BYTES_MAX = 512;
export const KEY_REUSED_ERROR =
  "KEY_REUSED: this idempotency key belongs to another submission; take a new key for a new request";
const STORED_VERSION = 1;

export const ACCEPTED: StoredAck = {
  accepted: true,
  error: null,
  queuedPosition: 0,
  protocolMajor: 1,
  protocolMinor: 0,
  capabilities: "",
};

export function encodeStoredAck(ack: StoredAck): Uint8Array {
  const writer = new ByteWriter(32);
  writer.uint8(STORED_VERSION);
  writer.uint8((ack.accepted ? 1 : 0) | (ack.error === null ? 0 : 2));
  if (ack.error !== null) writer.text(ack.error);
  writer.varint(ack.queuedPosition);
  writer.varint(ack.protocolMajor);
  writer.varint(ack.protocolMinor);
  writer.text(ack.capabilities);
  return writer.take();
}

/** Null for anything else. */
export function decodeStoredAck(bytes: Uint8Array): StoredAck | null {
  const reader = new ByteReader(bytes);
  if (reader.uint8() !== STORED_VERSION) return null;
  const flags = reader.uint8();
  if (flags > 3) return null;
  const ack: StoredAck = {
    accepted: (flags & 1) !== 0,
    error: (flags & 2) === 0 ? null : reader.text(ERROR_BYTES_MAX),
    queuedPosition: reader.varint(),
    protocolMajor: reader.varint(),
    protocolMinor: reader.varint(),
    capabilities: reader.text(CAPABILITIES_BYTES_MAX),
  };
  return reader.failed || reader.remaining > 0 ? null : ack;
}

/** The answer in the client's words. `leaderAddress` is the leader of now, not of then. */
export function jobAck(
  answer: SubmissionAnswer,
  idempotencyKey: string,
  leaderAddress: string | null,
): JobAck {
  const base = { idempotencyKey, leaderAddress, jobId: "", originalJobId: "", wasDuplicate: false };
  switch (answer.kind) {
    case "accepted": {
      const stored = decodeStoredAck(answer.ack) ?? ACCEPTED;
      const originalJobId = answer.duplicate ? answer.jobId : "";
      const { jobId, duplicate: wasDuplicate } = answer;
      return { ...stored, ...base, jobId, wasDuplicate, originalJobId, retry: false };
    }
    case "rejected": {
      const stored = decodeStoredAck(answer.result) ?? refusal("rejected");
      return { ...stored, ...base, wasDuplicate: answer.duplicate, retry: false };
    }
    case "keyReused":
      return { ...refusal(KEY_REUSED_ERROR), ...base, retry: false };
    case "retry":
      return { ...refusal(`RETRY: ${answer.why}`), ...base, retry: true };
    default:
      return assertNever(answer);
  }
}

export function refusal(error: string): StoredAck {
  return { ...ACCEPTED, accepted: false, error };
}

/** For a key that cannot be read: final, and nothing is stored. (IDEM-3) */
export function invalidKeyAck(idempotencyKey: string): JobAck {
  return {
    ...refusal(KEY_FORMAT_ERROR),
    idempotencyKey,
    leaderAddress: null,
    jobId: "",
    originalJobId: "",
    wasDuplicate: false,
    retry: false,
  };
}
