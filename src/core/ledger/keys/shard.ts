/**
 * One idempotency shard as a replicated state machine: the same entries in the same order give the same state and the
 * same outcomes on every replica, with no clock of their own. (IDEM-20..26)
 *
 *             RESERVED                 COMMITTED (the job's group exists)
 *     absent ----------> PENDING --------------------------> COMMITTED --EXPIRE--> absent
 *        \                  (the job exists, its answer is fixed)
 *         --REJECTED------------------------------------------> REJECTED --EXPIRE--> absent
 *
 * The check for duplicates is repeated here, when an entry is applied. A primary may propose on a stale state (another
 * proposal of the same key may be in an adopted log); the order of the log decides which one is the job, and the other
 * becomes its duplicate. That is what makes it exact.
 *
 * REJECTED of a pending key changes nothing: admission came before RESERVED, and its positive answer is out.
 *
 * Times are the shard's own (moment.ts). They are clamped to never go back along the log, so that each list of settled
 * entries is ordered by time and expiry only checks heads.
 */

import { assert, assertNever } from "../../base/assert.ts";
import { ByteReader, ByteWriter, fromAscii } from "../../base/bytes.ts";
import type { NodeId } from "../../base/ids.ts";
import { FINGERPRINT_BYTES, hasFingerprint, type IdempotencyKey } from "./key.ts";
import { grownCapacity, grownColumn, PackedTable } from "./packed-table.ts";
import { ReplicaSetPool } from "./replica-set-pool.ts";
import { IDEMPOTENCY_RULES, type IdempotencyRules } from "./rules.ts";
import {
  ACK_BYTES_MAX,
  type CommittedEntry,
  type ExpireEntry,
  JOB_ID_BYTES_MAX,
  type RejectedEntry,
  type ReservedEntry,
  type ShardEntry,
} from "./shard-entry.ts";
import { SlotLists } from "./slot-lists.ts";

/**
 * The bound every replica keeps when it applies, whatever its configuration: different limits on different
 * replicas would make different states. The configured limit is the primary's, before it proposes. (IDEM-19)
 */
export const SHARD_ENTRIES_MAX = 262_144;

export type ShardStatus = "pending" | "committed" | "rejected";

export type ShardOutcome =
  /** The key is this job's from here on. */
  | { readonly kind: "new"; readonly jobId: string; readonly ack: Uint8Array }
  | { readonly kind: "duplicate"; readonly jobId: string; readonly ack: Uint8Array }
  /** `first` distinguishes the rejecting entry from its repetitions. */
  | { readonly kind: "rejected"; readonly result: Uint8Array; readonly first: boolean }
  | { readonly kind: "keyReused" }
  | { readonly kind: "overloaded" }
  | { readonly kind: "committed"; readonly jobId: string }
  | { readonly kind: "expired"; readonly count: number }
  /** COMMITTED of a key that is absent, ended, or another job's. (IDEM-6) */
  | { readonly kind: "ignored" };

/** State of one key. */
interface ShardRecord {
  readonly key: IdempotencyKey;
  readonly status: ShardStatus;
  readonly fingerprint: Uint8Array;
  /** Empty when rejected. */
  readonly jobId: string;
  /** The ack when accepted, the refusal when rejected. */
  readonly result: Uint8Array;
  /** Empty when rejected. */
  readonly replicaSet: readonly NodeId[];
  /** When it was reserved, while pending; when it ended, after. */
  readonly at: number;
}

/** A job that exists by its reservation and whose own group may not exist yet. */
export interface Founding {
  readonly key: IdempotencyKey;
  readonly jobId: string;
  readonly replicaSet: readonly NodeId[];
  readonly created: Uint8Array;
  readonly reservedAt: number;
}

/** One entry as it lies in memory; the bytes are views. What snapshots are made of. */
export interface ShardRow {
  readonly status: ShardStatus;
  readonly key: Uint8Array;
  /** Fingerprint, job id, answer. */
  readonly body: Uint8Array;
  readonly replicaSet: readonly NodeId[];
  readonly at: number;
  /** Creation data; only for pending entries. */
  readonly created: Uint8Array | null;
}

const PENDING = 0;
const COMMITTED = 1;
const REJECTED = 2;
const STATUS: readonly ShardStatus[] = ["pending", "committed", "rejected"];

export class ShardState {
  readonly rules: IdempotencyRules;
  readonly #table: PackedTable;
  readonly #lists = new SlotLists(STATUS.length);
  readonly #sets = new ReplicaSetPool();
  /** By slot: reserved at or ended at; the replica set's number. */
  #times = new Float64Array(0);
  #setIds = new Int32Array(0);
  /** By slot, of pending entries only. */
  readonly #created = new Map<number, Uint8Array>();
  #createdBytes = 0;
  #clock = 0;
  #appliedSeq = -1;

  /** `hashSeed` is any number of the host; it changes nothing but where entries lie in memory. */
  constructor(rules: IdempotencyRules = IDEMPOTENCY_RULES, hashSeed = 0) {
    this.rules = rules;
    this.#table = new PackedTable(hashSeed);
  }

  /** A state from the rows of another, in their order; null when two rows have one key. */
  static restored(
    position: { readonly clock: number; readonly appliedSeq: number },
    rows: Iterable<ShardRow>,
    rules: IdempotencyRules = IDEMPOTENCY_RULES,
    hashSeed = 0,
  ): ShardState | null {
    const state = new ShardState(rules, hashSeed);
    state.#clock = position.clock;
    state.#appliedSeq = position.appliedSeq;
    for (const row of rows) {
      const key = fromAscii(row.key);
      if (state.#table.find(key) >= 0) return null;
      const slot = state.#insert(STATUS.indexOf(row.status), key, row.body, row.at);
      if (row.status !== "rejected") state.#setIds[slot] = state.#sets.take(row.replicaSet);
      if (row.created !== null) state.#keepCreated(slot, row.created);
    }
    return state;
  }

  get size(): number {
    return this.#table.size;
  }

  get pendingCount(): number {
    return this.#lists.size(PENDING);
  }

  /** Bytes of JobCreated events kept for jobs that are not founded yet. */
  get createdBytes(): number {
    return this.#createdBytes;
  }

  /** The highest time of any entry so far. */
  get clock(): number {
    return this.#clock;
  }

  /** The log position of the last applied entry, -1 before the first. */
  get appliedSeq(): number {
    return this.#appliedSeq;
  }

  /** Memory used, for status pages and the bench. */
  get bytes(): number {
    const columns = this.#times.byteLength + this.#setIds.byteLength;
    return this.#table.bytes + this.#lists.bytes + columns + this.#createdBytes;
  }

  apply(entry: ShardEntry, seq: number): ShardOutcome {
    assert(seq > this.#appliedSeq, "entries are applied once, in the order of the log");
    this.#appliedSeq = seq;
    switch (entry.kind) {
      case "reserved":
        return this.#reserve(entry);
      case "committed":
        return this.#commit(entry);
      case "rejected":
        return this.#reject(entry);
      case "expire":
        return this.#expire(entry);
      default:
        return assertNever(entry);
    }
  }

  has(key: IdempotencyKey): boolean {
    return this.#table.find(key) >= 0;
  }

  status(key: IdempotencyKey): ShardStatus | null {
    const slot = this.#table.find(key);
    return slot < 0 ? null : (STATUS[this.#lists.listOf(slot)] ?? null);
  }

  lookup(key: IdempotencyKey): ShardRecord | null {
    const slot = this.#table.find(key);
    return slot < 0 ? null : this.#record(slot, key);
  }

  /** The outcome of a submission with this key and fingerprint; null when the key is absent. */
  outcomeOf(key: IdempotencyKey, fingerprint: Uint8Array): ShardOutcome | null {
    const slot = this.#table.find(key);
    return slot < 0 ? null : this.#repeat(slot, fingerprint);
  }

  /** Jobs whose groups may not exist yet, oldest first. (IDEM-22) */
  *pendingFoundings(): Generator<Founding> {
    for (let slot = this.#lists.first(PENDING); slot >= 0; slot = this.#lists.after(slot)) {
      yield this.#founding(slot);
    }
  }

  founding(key: IdempotencyKey): Founding | null {
    const slot = this.#table.find(key);
    if (slot < 0 || this.#lists.listOf(slot) !== PENDING) return null;
    return this.#founding(slot);
  }

  /** When the oldest ended entry ended; null when there is none. */
  oldestEnded(status: "committed" | "rejected"): number | null {
    const slot = this.#lists.first(status === "committed" ? COMMITTED : REJECTED);
    return slot < 0 ? null : (this.#times[slot] ?? 0);
  }

  oldestPending(): number | null {
    const slot = this.#lists.first(PENDING);
    return slot < 0 ? null : (this.#times[slot] ?? 0);
  }

  /** Every entry, list by list, in an order that all replicas share. */
  *rows(): Generator<ShardRow> {
    for (let list = 0; list < STATUS.length; list++) {
      for (let slot = this.#lists.first(list); slot >= 0; slot = this.#lists.after(slot)) {
        yield {
          status: STATUS[list] ?? "pending",
          key: this.#table.keyBytes(slot),
          body: this.#table.body(slot),
          replicaSet: this.#replicaSet(slot),
          at: this.#times[slot] ?? 0,
          created: this.#created.get(slot) ?? null,
        };
      }
    }
  }

  /** The same for reading. */
  *records(): Generator<ShardRecord> {
    for (const row of this.rows()) {
      const record = this.lookup(fromAscii(row.key) as IdempotencyKey);
      if (record !== null) yield record;
    }
  }

  #reserve(entry: ReservedEntry): ShardOutcome {
    const known = this.#table.find(entry.key);
    if (known >= 0 && this.rules.applyTimeCheck) return this.#repeat(known, entry.fingerprint);
    if (known >= 0) this.#remove(known);
    if (this.#table.size >= SHARD_ENTRIES_MAX) return { kind: "overloaded" };
    const body = encodeBody(entry.fingerprint, entry.jobId, entry.ack);
    const slot = this.#insert(PENDING, entry.key, body, this.#advance(entry.at));
    this.#setIds[slot] = this.#sets.take(entry.replicaSet);
    this.#keepCreated(slot, entry.created);
    return { kind: "new", jobId: entry.jobId, ack: entry.ack };
  }

  #commit(entry: CommittedEntry): ShardOutcome {
    const slot = this.#table.find(entry.key);
    if (slot < 0 || this.#lists.listOf(slot) !== PENDING) return { kind: "ignored" };
    if (decodeBody(this.#table.body(slot)).jobId !== entry.jobId) return { kind: "ignored" };
    this.#dropCreated(slot);
    this.#lists.move(COMMITTED, slot);
    this.#times[slot] = this.#advance(entry.at);
    return { kind: "committed", jobId: entry.jobId };
  }

  #reject(entry: RejectedEntry): ShardOutcome {
    const known = this.#table.find(entry.key);
    if (known >= 0 && this.rules.terminalImmutable) return this.#repeat(known, entry.fingerprint);
    if (known >= 0) this.#remove(known);
    if (this.#table.size >= SHARD_ENTRIES_MAX) return { kind: "overloaded" };
    const body = encodeBody(entry.fingerprint, "", entry.result);
    this.#insert(REJECTED, entry.key, body, this.#advance(entry.at));
    return { kind: "rejected", result: entry.result, first: true };
  }

  #expire(entry: ExpireEntry): ShardOutcome {
    this.#advance(entry.at);
    let count = this.#expireList(COMMITTED, entry.committedBefore, entry.countMax);
    count += this.#expireList(REJECTED, entry.rejectedBefore, entry.countMax - count);
    if (!this.rules.pendingNeverExpires) {
      // As a cleanup that takes a slow job for a dead one.
      count += this.#expireList(PENDING, this.#clock + 1, entry.countMax - count);
    }
    return { kind: "expired", count };
  }

  #expireList(list: number, before: number, countMax: number): number {
    let count = 0;
    for (; count < countMax; count++) {
      const slot = this.#lists.first(list);
      if (slot < 0 || (this.#times[slot] ?? 0) >= before) break;
      this.#remove(slot);
    }
    return count;
  }

  /** Answer of a known key to another entry with the same key. */
  #repeat(slot: number, fingerprint: Uint8Array): ShardOutcome {
    const body = this.#table.body(slot);
    if (this.rules.fingerprintChecked && !hasFingerprint(body, fingerprint)) {
      return { kind: "keyReused" };
    }
    const { jobId, result } = decodeBody(body);
    return this.#lists.listOf(slot) === REJECTED
      ? { kind: "rejected", result, first: false }
      : { kind: "duplicate", jobId, ack: result };
  }

  #advance(at: number): number {
    this.#clock = Math.max(this.#clock, at);
    return this.#clock;
  }

  #insert(list: number, key: string, body: Uint8Array, at: number): number {
    const slot = this.#table.insert(key, body);
    if (slot >= this.#times.length) {
      const capacity = Math.max(slot + 1, grownCapacity(this.#times.length));
      this.#times = grownColumn(this.#times, capacity, new Float64Array(capacity));
      this.#setIds = grownColumn(this.#setIds, capacity, new Int32Array(capacity));
    }
    this.#lists.append(list, slot);
    this.#times[slot] = at;
    return slot;
  }

  #remove(slot: number): void {
    if (this.#lists.listOf(slot) !== REJECTED) this.#sets.release(this.#setIds[slot] ?? 0);
    this.#dropCreated(slot);
    this.#lists.remove(slot);
    this.#table.remove(slot);
  }

  /** A copy: the original may be a view of a large network buffer. */
  #keepCreated(slot: number, created: Uint8Array): void {
    this.#created.set(slot, created.slice());
    this.#createdBytes += created.length;
  }

  #dropCreated(slot: number): void {
    this.#createdBytes -= this.#created.get(slot)?.length ?? 0;
    this.#created.delete(slot);
  }

  #record(slot: number, key: IdempotencyKey): ShardRecord {
    const body = this.#table.body(slot);
    const { jobId, result } = decodeBody(body);
    return {
      key,
      status: STATUS[this.#lists.listOf(slot)] ?? "pending",
      fingerprint: body.slice(0, FINGERPRINT_BYTES),
      jobId,
      result,
      replicaSet: this.#replicaSet(slot),
      at: this.#times[slot] ?? 0,
    };
  }

  #replicaSet(slot: number): readonly NodeId[] {
    return this.#lists.listOf(slot) === REJECTED ? [] : this.#sets.get(this.#setIds[slot] ?? 0);
  }

  #founding(slot: number): Founding {
    const created = this.#created.get(slot);
    assert(created !== undefined, "a pending entry holds its JobCreated");
    return {
      key: fromAscii(this.#table.keyBytes(slot)) as IdempotencyKey,
      jobId: decodeBody(this.#table.body(slot)).jobId,
      replicaSet: this.#replicaSet(slot),
      created,
      reservedAt: this.#times[slot] ?? 0,
    };
  }
}

/** The fingerprint, then the job id and the answer with their lengths. */
function encodeBody(fingerprint: Uint8Array, jobId: string, result: Uint8Array): Uint8Array {
  assert(fingerprint.length === FINGERPRINT_BYTES, "a fingerprint has 32 bytes");
  assert(result.length <= ACK_BYTES_MAX, "an answer is within its bound");
  const writer = new ByteWriter(FINGERPRINT_BYTES + JOB_ID_BYTES_MAX + result.length + 8);
  writer.raw(fingerprint);
  writer.text(jobId);
  writer.bytes(result);
  return writer.take();
}

function decodeBody(body: Uint8Array): { jobId: string; result: Uint8Array } {
  const reader = new ByteReader(body);
  reader.skip(FINGERPRINT_BYTES);
  const jobId = reader.text();
  const result = reader.bytes().slice();
  assert(!reader.failed && reader.remaining === 0, "the table holds what was put into it");
  return { jobId, result };
}
