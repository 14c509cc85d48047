/**
 * The authority inside one datacenter: which job holds which key, kept in the manager's WAL. (IDEM-16 to 19, 25)
 *
 *     submit: absent -> RESERVING (claimed here at once, record on its way to disk)
 *             durable -> PENDING: process the job            (duplicates wait from the claim on)
 *     commit, reject -> record on its way; durable -> COMMITTED, REJECTED: everybody is answered
 *
 * Appends leave as effects and reach the disk in that order; the host says how many are durable. Nothing rests on
 * a record before that: no job starts, no client is answered. A failed write ends the process, so there is no
 * way back from a claim. After a restart `replay` reads the records, the last one per key counts, and what was
 * pending goes on under its recorded job id.
 *
 * Jobs come with the id that the shard fixed; the same id again is the same job, whatever its key says.
 */

import { assert } from "../../base/assert.ts";
import { ByteReader, ByteWriter, fromAscii } from "../../base/bytes.ts";
import type { IdempotencyConfig } from "./config.ts";
import { accepted, type SubmissionAnswer } from "./decide.ts";
import { FINGERPRINT_BYTES, hasFingerprint, type IdempotencyKey } from "./key.ts";
import {
  decodeLedgerRecord,
  encodeLedgerRecord,
  LEDGER_RECORD_TYPE,
  type LedgerRecord,
  type LedgerStatus,
} from "./ledger-record.ts";
import type { Moment } from "./moment.ts";
import { grownCapacity, grownColumn, PackedTable } from "./packed-table.ts";
import { IDEMPOTENCY_RULES, type IdempotencyRules } from "./rules.ts";
import { SlotLists } from "./slot-lists.ts";
import { type Waiting, WaitList } from "./wait-list.ts";

export const MANAGER_WAITERS_MAX = 65_536;
/** Submissions held for jobs that have not ended yet. */
export const SUBMISSION_BYTES_HELD_MAX = 256 * 1_048_576;
/** A job that could not be processed for the moment is tried again after this. */
export const PROCESS_RETRY_MS = 2_000;
const EXPIRIES_MAX = 10_000;

/** A dispatched job as it arrives. */
export interface ManagerSubmission {
  readonly key: IdempotencyKey;
  readonly jobId: string;
  readonly fingerprint: Uint8Array;
  readonly submission: Uint8Array;
}

export type ManagerEffect<Waiter> =
  | { readonly kind: "append"; readonly type: number; readonly payload: Uint8Array }
  /** Create the job; idempotent by job id. Ends with `commit`, `reject` or `defer`. */
  | { readonly kind: "process"; readonly job: ManagerSubmission; readonly resumed: boolean }
  | { readonly kind: "answer"; readonly waiter: Waiter; readonly answer: SubmissionAnswer }
  | { readonly kind: "overdue"; readonly jobId: string; readonly ageMs: number };

export type ReplayResult<Waiter> =
  | { readonly ok: true; readonly effects: readonly ManagerEffect<Waiter>[] }
  /** The record at this place, from 0, is of another version or not ours: the manager must not start. */
  | {
      readonly ok: false;
      readonly refusal: { readonly code: "UNREADABLE_RECORD"; readonly index: number };
    };

/** A record on its way to the disk. */
type Append =
  | { readonly kind: "reserve"; readonly job: ManagerSubmission; readonly createdAt: number }
  | { readonly kind: "end"; readonly key: IdempotencyKey };

/** What is held beside the table while a job has not ended. */
interface Open<Waiter> {
  readonly job: ManagerSubmission;
  readonly createdAt: number;
  stage: "reserving" | "pending" | "ending";
  /** Decided, and not durable yet. */
  end: {
    readonly status: "committed" | "rejected";
    readonly result: Uint8Array;
    at: number;
  } | null;
  readonly original: Waiting<Waiter> | null;
  readonly waiting: Set<Waiting<Waiter>>;
}

const OPEN = 0;
const COMMITTED = 1;
const REJECTED = 2;

export class ManagerLedger<Waiter> {
  readonly #config: IdempotencyConfig;
  readonly #rules: IdempotencyRules;
  /** Key to fingerprint, time and result. */
  readonly #table: PackedTable;
  /** Job id to nothing; the two columns pair the slots of a key and its job. */
  readonly #jobs: PackedTable;
  readonly #lists = new SlotLists(3);
  #keySlots = new Int32Array(0);
  #jobSlots = new Int32Array(0);
  #endedAt = new Float64Array(0);
  readonly #open = new Map<number, Open<Waiter>>();
  #openBytes = 0;
  readonly #waits = new WaitList<Waiter>(MANAGER_WAITERS_MAX);
  readonly #appends: Append[] = [];
  #durable = 0;
  /** Jobs to be processed again, the earliest first. */
  readonly #deferred = new Map<IdempotencyKey, number>();
  #cleanupAt = 0;

  constructor(config: IdempotencyConfig, rules = IDEMPOTENCY_RULES, hashSeed = 0) {
    this.#config = config;
    this.#rules = rules;
    this.#table = new PackedTable(hashSeed);
    this.#jobs = new PackedTable(hashSeed);
  }

  get size(): number {
    return this.#table.size;
  }

  get openCount(): number {
    return this.#open.size;
  }

  get waiterCount(): number {
    return this.#waits.size;
  }

  get bytes(): number {
    const columns = 2 * this.#keySlots.byteLength + this.#endedAt.byteLength + this.#lists.bytes;
    return this.#table.bytes + this.#jobs.bytes + columns + this.#openBytes;
  }

  status(key: IdempotencyKey): LedgerStatus | null {
    const slot = this.#table.find(key);
    if (slot < 0) return null;
    return (["pending", "committed", "rejected"] as const)[this.#lists.listOf(slot)] ?? null;
  }

  /** The slot of a known job's key, by job id first, by key second; -1 when it is new. (IDEM-25) */
  #find(job: ManagerSubmission): number {
    const jobSlot = this.#jobs.find(job.jobId);
    return jobSlot >= 0 ? (this.#keySlots[jobSlot] ?? -1) : this.#table.find(job.key);
  }

  /** Decides and claims in one step; the record follows. (IDEM-16) */
  submit(job: ManagerSubmission, waiter: Waiter, at: Moment): readonly ManagerEffect<Waiter>[] {
    const slot = this.#find(job);
    if (slot >= 0) return this.#duplicate(slot, job, waiter, at.now);
    const held = this.#openBytes + job.submission.length;
    const full = this.#table.size >= this.#config.entriesMax || held > SUBMISSION_BYTES_HELD_MAX;
    // IDEM-19: entries within their TTL are never dropped for space.
    if (full || this.#waits.full) {
      return [{ kind: "answer", waiter, answer: retry("the ledger is full") }];
    }
    const waiting = this.#wait(job, waiter, at.now);
    if (this.#rules.claimBeforeAppend) this.#claim(job, at.wall, waiting);
    this.#appends.push({ kind: "reserve", job, createdAt: at.wall });
    const record = { ...job, status: "pending", createdAt: at.wall, committedAt: null } as const;
    const effects = [appendEffect({ ...record, result: new Uint8Array(0) })];
    return this.#rules.durableFirst ? effects : [...effects, ...this.#settleAppends(1)];
  }

  /** The job exists and its ack is fixed. (IDEM-7) */
  commit(key: IdempotencyKey, ack: Uint8Array, at: Moment): readonly ManagerEffect<Waiter>[] {
    return this.#end(key, "committed", ack, at);
  }

  /** A deterministic refusal. */
  reject(key: IdempotencyKey, result: Uint8Array, at: Moment): readonly ManagerEffect<Waiter>[] {
    return this.#end(key, "rejected", result, at);
  }

  /** Not for now: who waits is told to retry, the reservation stays and is processed again. (IDEM-8) */
  defer(key: IdempotencyKey, why: string, at: Moment): readonly ManagerEffect<Waiter>[] {
    const open = this.#open.get(this.#table.find(key));
    if (open === undefined || open.stage !== "pending") return [];
    this.#deferred.delete(key);
    this.#deferred.set(key, at.now + PROCESS_RETRY_MS);
    return this.#answerAll(open, () => retry(why));
  }

  /** `count` appends since the start of this process are durable: always a prefix of them. */
  durable(count: number): readonly ManagerEffect<Waiter>[] {
    assert(count >= this.#durable, "durable records do not become fewer");
    const fresh = count - this.#durable;
    this.#durable = count;
    if (!this.#rules.durableFirst) return [];
    assert(fresh <= this.#appends.length, "what is durable was appended");
    return this.#settleAppends(fresh);
  }

  /** Once, before anything else: the records of the log, oldest first. (IDEM-18) */
  replay(records: Iterable<Uint8Array>, at: Moment): ReplayResult<Waiter> {
    assert(this.#table.size === 0 && this.#durable === 0, "a ledger replays before it works");
    let index = 0;
    for (const bytes of records) {
      const record = decodeLedgerRecord(bytes);
      if (record === null) return { ok: false, refusal: { code: "UNREADABLE_RECORD", index } };
      this.#restore(record);
      index++;
    }
    this.#expire(at.wall, Infinity);
    const open = this.#rules.pendingResumed ? [...this.#open.values()] : [];
    return { ok: true, effects: open.map(({ job }) => ({ kind: "process", job, resumed: true })) };
  }

  /** Every live entry as one record each, for checkpoints: replaying them gives this ledger. */
  *records(): Generator<Uint8Array> {
    for (let list = 0; list < 3; list++) {
      for (let slot = this.#lists.first(list); slot >= 0; slot = this.#lists.after(slot)) {
        yield encodeLedgerRecord(this.#recordAt(slot));
      }
    }
  }

  tick(at: Moment): readonly ManagerEffect<Waiter>[] {
    const effects: ManagerEffect<Waiter>[] = [];
    for (const waiting of this.#waits.endDue(at.now)) {
      this.#open.get(this.#table.find(waiting.key))?.waiting.delete(waiting);
      const answer = retry("the job is still being decided");
      effects.push({ kind: "answer", waiter: waiting.waiter, answer });
    }
    for (const [key, due] of this.#deferred) {
      if (due > at.now) break;
      this.#deferred.delete(key);
      const open = this.#open.get(this.#table.find(key));
      if (open?.stage === "pending")
        effects.push({ kind: "process", job: open.job, resumed: true });
    }
    if (at.now < this.#cleanupAt) return effects;
    this.#cleanupAt = at.now + this.#config.cleanupIntervalMs;
    this.#expire(at.wall, EXPIRIES_MAX);
    const oldest = this.#open.get(this.#lists.first(OPEN));
    const ageMs = at.wall - (oldest?.createdAt ?? at.wall);
    if (oldest !== undefined && ageMs > this.#config.pendingTtlMs) {
      effects.push({ kind: "overdue", jobId: oldest.job.jobId, ageMs });
    }
    return effects;
  }

  nextDeadline(): number {
    const [deferred] = this.#deferred.values();
    const wait = this.#waits.nextDeadline();
    return Math.min(this.#cleanupAt, deferred ?? Infinity, wait ?? Infinity);
  }

  #duplicate(
    slot: number,
    job: ManagerSubmission,
    waiter: Waiter,
    now: number,
  ): readonly ManagerEffect<Waiter>[] {
    const open = this.#open.get(slot);
    if (open === undefined) return [{ kind: "answer", waiter, answer: this.#told(slot, job) }];
    if (!this.#config.waitForPending || this.#waits.full) {
      return [{ kind: "answer", waiter, answer: retry("the job is being decided") }];
    }
    // By the key of the entry, which may differ from the duplicate's own.
    open.waiting.add(this.#wait({ ...job, key: open.job.key }, waiter, now));
    return [];
  }

  #wait(job: ManagerSubmission, waiter: Waiter, now: number): Waiting<Waiter> {
    const deadline = now + this.#config.pendingWaitTimeoutMs;
    const waiting = { waiter, key: job.key, fingerprint: job.fingerprint, deadline };
    this.#waits.add(waiting);
    return waiting;
  }

  #claim(job: ManagerSubmission, createdAt: number, original: Waiting<Waiter> | null): number {
    const slot = this.#insert(
      OPEN,
      job.key,
      job.jobId,
      encodeBody(job.fingerprint, createdAt, EMPTY),
    );
    const waiting = new Set(original === null ? [] : [original]);
    this.#open.set(slot, { job, createdAt, stage: "reserving", end: null, original, waiting });
    this.#openBytes += job.submission.length;
    return slot;
  }

  /** IDEM-17: the record first; memory and answers follow when it is durable. */
  #end(
    key: IdempotencyKey,
    status: "committed" | "rejected",
    result: Uint8Array,
    at: Moment,
  ): readonly ManagerEffect<Waiter>[] {
    const open = this.#open.get(this.#table.find(key));
    // IDEM-6: what has ended, is ending or is absent stays as it is.
    if (open === undefined || open.stage !== "pending") return [];
    open.stage = "ending";
    open.end = { status, result, at: at.wall };
    this.#deferred.delete(key);
    this.#appends.push({ kind: "end", key });
    const { job, createdAt } = open;
    const record = { ...job, submission: EMPTY, status, createdAt, committedAt: at.wall, result };
    const effects = [appendEffect(record)];
    return this.#rules.durableFirst ? effects : [...effects, ...this.#settleAppends(1)];
  }

  #settleAppends(count: number): readonly ManagerEffect<Waiter>[] {
    return this.#appends
      .splice(0, count)
      .flatMap((append) =>
        append.kind === "reserve" ? this.#reserved(append) : this.#ended(append),
      );
  }

  #reserved(append: Append & { kind: "reserve" }): readonly ManagerEffect<Waiter>[] {
    const { job } = append;
    let slot = this.#table.find(job.key);
    // Only without the early claim is it absent here, or another's.
    if (slot < 0) slot = this.#claim(job, append.createdAt, null);
    const open = this.#open.get(slot);
    if (open !== undefined && open.stage === "reserving") open.stage = "pending";
    return [{ kind: "process", job, resumed: false }];
  }

  #ended(append: Append & { kind: "end" }): readonly ManagerEffect<Waiter>[] {
    const slot = this.#table.find(append.key);
    const open = this.#open.get(slot);
    assert(open !== undefined && open.end !== null, "an ending job is open until it is durable");
    const { job, createdAt, end } = open;
    this.#close(slot);
    this.#table.replace(slot, encodeBody(job.fingerprint, createdAt, end.result));
    this.#lists.move(end.status === "committed" ? COMMITTED : REJECTED, slot);
    this.#endedAt[slot] = end.at;
    return this.#answerAll(open, (waiting) => {
      const told = this.#told(slot, { ...job, fingerprint: waiting.fingerprint });
      return waiting === open.original && "duplicate" in told
        ? { ...told, duplicate: false }
        : told;
    });
  }

  #close(slot: number): void {
    this.#openBytes -= this.#open.get(slot)?.job.submission.length ?? 0;
    this.#open.delete(slot);
  }

  #answerAll(
    open: Open<Waiter>,
    answerTo: (waiting: Waiting<Waiter>) => SubmissionAnswer,
  ): readonly ManagerEffect<Waiter>[] {
    const all = [...open.waiting];
    open.waiting.clear();
    for (const waiting of all) this.#waits.end(waiting);
    return all.map((waiting) => {
      return { kind: "answer", waiter: waiting.waiter, answer: answerTo(waiting) };
    });
  }

  #told(slot: number, job: ManagerSubmission): SubmissionAnswer {
    const body = this.#table.body(slot);
    if (this.#rules.fingerprintChecked && !hasFingerprint(body, job.fingerprint)) {
      return { kind: "keyReused" };
    }
    const { result } = decodeBody(body);
    return this.#lists.listOf(slot) === COMMITTED
      ? accepted({ jobId: this.#jobIdOf(slot), ack: result.slice() }, true)
      : { kind: "rejected", result: result.slice(), duplicate: true };
  }

  #jobIdOf(slot: number): string {
    return fromAscii(this.#jobs.keyBytes(this.#jobSlots[slot] ?? -1));
  }

  #restore(record: LedgerRecord): void {
    const byKey = this.#table.find(record.key);
    if (byKey >= 0) this.#remove(byKey);
    const byJob = this.#jobs.find(record.jobId);
    if (byJob >= 0) this.#remove(this.#keySlots[byJob] ?? -1);
    const { key, jobId, fingerprint, createdAt } = record;
    const submission = record.submission.slice();
    if (record.status === "pending") {
      const job = { key, jobId, fingerprint: fingerprint.slice(), submission };
      const open = this.#open.get(this.#claim(job, createdAt, null));
      assert(open !== undefined, "a claim is open");
      open.stage = "pending";
      return;
    }
    const list = record.status === "committed" ? COMMITTED : REJECTED;
    const slot = this.#insert(list, key, jobId, encodeBody(fingerprint, createdAt, record.result));
    this.#endedAt[slot] = record.committedAt ?? 0;
  }

  #recordAt(slot: number): LedgerRecord {
    const key = fromAscii(this.#table.keyBytes(slot)) as IdempotencyKey;
    const open = this.#open.get(slot);
    if (open !== undefined) {
      const { job, createdAt } = open;
      return { ...job, status: "pending", createdAt, committedAt: null, result: EMPTY };
    }
    const { fingerprint, result, createdAt } = decodeBody(this.#table.body(slot));
    const jobId = this.#jobIdOf(slot);
    const status = this.#lists.listOf(slot) === COMMITTED ? "committed" : "rejected";
    const committedAt = this.#endedAt[slot] ?? 0;
    return { key, jobId, status, createdAt, committedAt, result, fingerprint, submission: EMPTY };
  }

  #insert(list: number, key: IdempotencyKey, jobId: string, body: Uint8Array): number {
    const slot = this.#table.insert(key, body);
    const jobSlot = this.#jobs.insert(jobId, EMPTY);
    const needed = Math.max(slot, jobSlot) + 1;
    if (needed > this.#keySlots.length) {
      const capacity = Math.max(needed, grownCapacity(this.#keySlots.length));
      this.#keySlots = grownColumn(this.#keySlots, capacity, new Int32Array(capacity));
      this.#jobSlots = grownColumn(this.#jobSlots, capacity, new Int32Array(capacity));
      this.#endedAt = grownColumn(this.#endedAt, capacity, new Float64Array(capacity));
    }
    this.#keySlots[jobSlot] = slot;
    this.#jobSlots[slot] = jobSlot;
    this.#lists.append(list, slot);
    return slot;
  }

  #remove(slot: number): void {
    this.#close(slot);
    this.#jobs.remove(this.#jobSlots[slot] ?? -1);
    this.#lists.remove(slot);
    this.#table.remove(slot);
  }

  /** Terminal entries only, the oldest first; what is open never expires. (IDEM-19) */
  #expire(wall: number, countMax: number): void {
    let left = countMax;
    for (const [list, ttlMs] of [
      [COMMITTED, this.#config.committedTtlMs],
      [REJECTED, this.#config.rejectedTtlMs],
    ] as const) {
      for (; left > 0; left--) {
        const slot = this.#lists.first(list);
        if (slot < 0 || (this.#endedAt[slot] ?? 0) + ttlMs > wall) break;
        this.#remove(slot);
      }
    }
  }
}

const EMPTY = new Uint8Array(0);

function appendEffect(record: LedgerRecord): {
  readonly kind: "append";
  readonly type: number;
  readonly payload: Uint8Array;
} {
  const payload = encodeLedgerRecord(record);
  return { kind: "append", type: LEDGER_RECORD_TYPE[record.status], payload };
}

function encodeBody(fingerprint: Uint8Array, createdAt: number, result: Uint8Array): Uint8Array {
  const writer = new ByteWriter(FINGERPRINT_BYTES + 64 + result.length);
  writer.raw(fingerprint);
  writer.varint(createdAt);
  writer.bytes(result);
  return writer.take();
}

/** The bytes are views. */
function decodeBody(body: Uint8Array): {
  fingerprint: Uint8Array;
  createdAt: number;
  result: Uint8Array;
} {
  const reader = new ByteReader(body);
  const fingerprint = reader.raw(FINGERPRINT_BYTES);
  const createdAt = reader.varint();
  const result = reader.bytes();
  assert(!reader.failed && reader.remaining === 0, "the table holds what was put into it");
  return { fingerprint, createdAt, result };
}

function retry(why: string): SubmissionAnswer {
  return { kind: "retry", why };
}
