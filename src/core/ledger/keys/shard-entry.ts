/**
 * The entries of a shard's replicated log, and their bytes: one version byte, one kind byte, then the fields
 * in the order of their types. The decoder is total: it answers null for anything that is not an entry in
 * full, with bounds checked before anything is built from them.
 */

import { assert, assertNever } from "../../base/assert.ts";
import { ByteReader, ByteWriter } from "../../base/bytes.ts";
import { HLC_WALL_MS_MAX } from "../../base/hlc.ts";
import { NODE_ID_BYTES_MAX, type NodeId } from "../../base/ids.ts";
import { FINGERPRINT_BYTES, type IdempotencyKey, isKey, KEY_BYTES_MAX } from "./key.ts";

export const JOB_ID_BYTES_MAX = 128;
/** An ack or a rejection as the client will see it. Fits a table record with everything beside it. */
export const ACK_BYTES_MAX = 2_048;
/** The JobCreated event: the largest submission there is, and all that is written around it. */
export const CREATED_BYTES_MAX = 1_048_576 + 65_536;
const REPLICA_SET_MAX = 9;
/** Removals of one EXPIRE: some milliseconds of work at most, on every replica. */
export const EXPIRE_COUNT_MAX = 4_096;
const ENTRY_VERSION = 1;

export type ShardEntry = ReservedEntry | CommittedEntry | RejectedEntry | ExpireEntry;

/**
 * From its commit on, the job exists, with this id, these replicas and this answer. (IDEM-21..23)
 */
export interface ReservedEntry {
  readonly kind: "reserved";
  readonly key: IdempotencyKey;
  readonly fingerprint: Uint8Array;
  readonly jobId: string;
  readonly replicaSet: readonly NodeId[];
  /** Entry 0 of the job's own log, opaque here. */
  readonly created: Uint8Array;
  /** The positive answer, opaque here. */
  readonly ack: Uint8Array;
  /** The shard's own time, milliseconds. */
  readonly at: number;
}

/** The job's own group has confirmed its entry 0. The job id makes a late repetition harmless. */
export interface CommittedEntry {
  readonly kind: "committed";
  readonly key: IdempotencyKey;
  readonly jobId: string;
  readonly at: number;
}

/** A deterministic refusal, answered the same to every retry. (IDEM-8) */
export interface RejectedEntry {
  readonly kind: "rejected";
  readonly key: IdempotencyKey;
  readonly fingerprint: Uint8Array;
  readonly result: Uint8Array;
  readonly at: number;
}

/** Removes terminal entries that ended before the given times, oldest first. (IDEM-24) */
export interface ExpireEntry {
  readonly kind: "expire";
  readonly committedBefore: number;
  readonly rejectedBefore: number;
  readonly countMax: number;
  /** Carries the shard's time on, so that it survives its primary. */
  readonly at: number;
}

/** 4 was an expiry without its time. */
const KIND = { reserved: 1, committed: 2, rejected: 3, expire: 5 } as const;

export function encodeShardEntry(entry: ShardEntry): Uint8Array {
  const writer = new ByteWriter(entry.kind === "reserved" ? 512 + entry.created.length : 256);
  writer.uint8(ENTRY_VERSION);
  writer.uint8(KIND[entry.kind]);
  switch (entry.kind) {
    case "reserved":
      assert(entry.fingerprint.length === FINGERPRINT_BYTES, "a fingerprint has 32 bytes");
      assert(entry.created.length <= CREATED_BYTES_MAX, "a creation is within its bound");
      writer.text(entry.key);
      writer.raw(entry.fingerprint);
      writer.text(entry.jobId);
      writer.varint(entry.replicaSet.length);
      for (const node of entry.replicaSet) writer.text(node);
      writer.bytes(entry.created);
      writer.bytes(entry.ack);
      writer.varint(entry.at);
      break;
    case "committed":
      writer.text(entry.key);
      writer.text(entry.jobId);
      writer.varint(entry.at);
      break;
    case "rejected":
      assert(entry.fingerprint.length === FINGERPRINT_BYTES, "a fingerprint has 32 bytes");
      writer.text(entry.key);
      writer.raw(entry.fingerprint);
      writer.bytes(entry.result);
      writer.varint(entry.at);
      break;
    case "expire":
      writer.varint(entry.committedBefore);
      writer.varint(entry.rejectedBefore);
      writer.varint(entry.countMax);
      writer.varint(entry.at);
      break;
    default:
      assertNever(entry);
  }
  return writer.take();
}

/** Null for anything that is not one whole entry. Byte fields are views of the input. */
export function decodeShardEntry(bytes: Uint8Array): ShardEntry | null {
  const reader = new ByteReader(bytes);
  if (reader.uint8() !== ENTRY_VERSION) return null;
  const entry = readEntry(reader, reader.uint8());
  return reader.failed || reader.remaining > 0 ? null : entry;
}

function readEntry(reader: ByteReader, kind: number): ShardEntry | null {
  if (kind === KIND.reserved) {
    return {
      kind: "reserved",
      key: readKey(reader),
      fingerprint: reader.raw(FINGERPRINT_BYTES),
      jobId: readJobId(reader),
      replicaSet: readReplicaSet(reader),
      created: reader.bytes(CREATED_BYTES_MAX),
      ack: reader.bytes(ACK_BYTES_MAX),
      at: readTime(reader),
    };
  }
  if (kind === KIND.committed) {
    return {
      kind: "committed",
      key: readKey(reader),
      jobId: readJobId(reader),
      at: readTime(reader),
    };
  }
  if (kind === KIND.rejected) {
    return {
      kind: "rejected",
      key: readKey(reader),
      fingerprint: reader.raw(FINGERPRINT_BYTES),
      result: reader.bytes(ACK_BYTES_MAX),
      at: readTime(reader),
    };
  }
  if (kind !== KIND.expire) return null;
  const committedBefore = readTime(reader);
  const rejectedBefore = readTime(reader);
  const countMax = reader.varint();
  if (countMax > EXPIRE_COUNT_MAX) reader.fail("an expiry above its bound");
  return { kind: "expire", committedBefore, rejectedBefore, countMax, at: readTime(reader) };
}

export function readTime(reader: ByteReader): number {
  const time = reader.varint();
  if (time > HLC_WALL_MS_MAX) reader.fail("a time beyond its bound");
  return time;
}

function readKey(reader: ByteReader): IdempotencyKey {
  const text = reader.text(KEY_BYTES_MAX);
  if (!isKey(text)) reader.fail("not an idempotency key");
  return text as IdempotencyKey;
}

function readJobId(reader: ByteReader): string {
  const text = reader.text(JOB_ID_BYTES_MAX);
  if (!isJobId(text)) reader.fail("not a job id");
  return text;
}

/** Printable ASCII without spaces; the ledger decides how it is made. */
export function isJobId(text: string): boolean {
  return text.length <= JOB_ID_BYTES_MAX && /^[\x21-\x7e]+$/.test(text);
}

export function readReplicaSet(reader: ByteReader): readonly NodeId[] {
  const count = reader.varint();
  if (count < 1 || count > REPLICA_SET_MAX) reader.fail("a replica set has 1 to 9 members");
  const nodes: NodeId[] = [];
  for (let i = 0; i < count && !reader.failed; i++) {
    const node = reader.text(NODE_ID_BYTES_MAX) as NodeId;
    if (node.length === 0 || nodes.includes(node)) reader.fail("members have names of their own");
    nodes.push(node);
  }
  return nodes;
}
