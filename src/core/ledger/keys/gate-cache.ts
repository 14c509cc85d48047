/**
 * The gate's cache of idempotency keys. It saves the round trip to the authority and lets duplicates of a pending
 * request wait for its answer instead of asking again. It decides nothing: the authority knows everything the cache has
 * forgotten or dropped. (IDEM-9..15)
 *
 *     check --absent--> forward, PENDING --settle: accepted or rejected--> kept, all waiters are answered
 *           --PENDING-> wait             --settle: retry, fail, expiry, eviction--> dropped, all waiters retry
 *           --settled-> answer at once
 *
 * Entries with the same status share one lifetime, so each status is a queue ordered by deadline, and expiry checks
 * only the heads. Each entry is also linked in the order of its last use, for eviction: settled entries go first,
 * entries with waiters last.
 */

import { assert } from "../../base/assert.ts";
import { ByteReader, ByteWriter } from "../../base/bytes.ts";
import type { IdempotencyConfig } from "./config.ts";
import { accepted, type SubmissionAnswer } from "./decide.ts";
import { FINGERPRINT_BYTES, hasFingerprint, type IdempotencyKey } from "./key.ts";
import { grownCapacity, grownColumn, PackedTable } from "./packed-table.ts";
import { IDEMPOTENCY_RULES, type IdempotencyRules } from "./rules.ts";
import { ACK_BYTES_MAX } from "./shard-entry.ts";
import { SlotLists } from "./slot-lists.ts";
import { type Waiting, WaitList } from "./wait-list.ts";

/** Clients of one gate that wait for an answer. */
const GATE_WAITERS_MAX = 65_536;
/** Removals of one tick; what is left goes with the next. */
const GATE_EXPIRIES_MAX = 10_000;

export type GateEffect<Waiter> =
  /** Send the submission to the authority; report `settle` or `fail`, with the token. */
  | { readonly kind: "forward"; readonly token: number }
  | { readonly kind: "answer"; readonly waiter: Waiter; readonly answer: SubmissionAnswer };

export interface GateCacheStats {
  readonly entries: number;
  readonly entriesMax: number;
  readonly pending: number;
  readonly committed: number;
  readonly rejected: number;
  readonly waiters: number;
  /** Counted since start: the share of hits, and what the limits cost. */
  readonly lookups: number;
  readonly hits: number;
  readonly evictions: number;
  readonly pendingTimeouts: number;
}

interface Forwarded<Waiter> {
  readonly token: number;
  /** The request that is on its way, while its client waits; the others are its duplicates. */
  readonly original: Waiting<Waiter>;
  readonly waiting: Set<Waiting<Waiter>>;
}

const PENDING = 0;
const COMMITTED = 1;
const REJECTED = 2;
/** In the lists of use. */
const USED_PENDING = 0;
const USED_ENDED = 1;

export class GateCache<Waiter> {
  readonly #config: IdempotencyConfig;
  readonly #rules: IdempotencyRules;
  readonly #table: PackedTable;
  readonly #byDeadline = new SlotLists(3);
  readonly #byUse = new SlotLists(2);
  #deadlines = new Float64Array(0);
  readonly #forwarded = new Map<number, Forwarded<Waiter>>();
  readonly #waits = new WaitList<Waiter>(GATE_WAITERS_MAX);
  #token = 0;
  #lookups = 0;
  #hits = 0;
  #evictions = 0;
  #pendingTimeouts = 0;

  constructor(config: IdempotencyConfig, rules = IDEMPOTENCY_RULES, hashSeed = 0) {
    this.#config = config;
    this.#rules = rules;
    this.#table = new PackedTable(hashSeed);
  }

  /** Decides and inserts in one step. (IDEM-9) */
  check(
    key: IdempotencyKey,
    fingerprint: Uint8Array,
    waiter: Waiter,
    now: number,
  ): readonly GateEffect<Waiter>[] {
    this.#lookups++;
    const slot = this.#table.find(key);
    if (slot < 0) return this.#insert(key, fingerprint, waiter, now);
    this.#hits++;
    const list = this.#byDeadline.listOf(slot);
    this.#byUse.move(list === PENDING ? USED_PENDING : USED_ENDED, slot);
    if (list !== PENDING)
      return [{ kind: "answer", waiter, answer: this.#answerFor(slot, fingerprint) }];
    if (!this.#config.waitForPending || this.#waits.full) {
      return [{ kind: "answer", waiter, answer: retry("the first request is being decided") }];
    }
    const forwarded = this.#forwardedAt(slot);
    forwarded.waiting.add(this.#wait(key, fingerprint, waiter, now));
    return [];
  }

  /** The authority has answered. Late answers, of entries that were dropped, change nothing. */
  settle(
    key: IdempotencyKey,
    token: number,
    answer: SubmissionAnswer,
    now: number,
  ): readonly GateEffect<Waiter>[] {
    const slot = this.#current(key, token);
    if (slot < 0) return [];
    const forwarded = this.#forwardedAt(slot);
    const { fingerprint } = forwarded.original;
    const stored = this.#storable(answer);
    if (stored === null) return this.#drop(slot, answer);
    this.#forwarded.delete(slot);
    const body = encodeBody(fingerprint, stored.jobId, stored.result);
    this.#table.replace(slot, body);
    this.#byUse.move(USED_ENDED, slot);
    this.#byDeadline.move(stored.accepted ? COMMITTED : REJECTED, slot);
    const ttlMs = stored.accepted ? this.#config.committedTtlMs : this.#config.rejectedTtlMs;
    this.#deadlines[slot] = now + ttlMs;
    return this.#answerAll(forwarded, (waiting) =>
      waiting === forwarded.original ? answer : this.#answerFor(slot, waiting.fingerprint),
    );
  }

  /** The way to the authority failed or took too long: forget, let everybody ask again. (IDEM-12) */
  fail(key: IdempotencyKey, token: number, why: string): readonly GateEffect<Waiter>[] {
    const slot = this.#current(key, token);
    return slot < 0 ? [] : this.#drop(slot, retry(why));
  }

  /** Ends waits and removes what is over. */
  tick(now: number): readonly GateEffect<Waiter>[] {
    const effects: GateEffect<Waiter>[] = [];
    for (const waiting of this.#waits.endDue(now)) {
      this.#pendingTimeouts++;
      const slot = this.#table.find(waiting.key);
      if (slot >= 0) this.#forwarded.get(slot)?.waiting.delete(waiting);
      const answer = retry("the first request is still being decided");
      effects.push({ kind: "answer", waiter: waiting.waiter, answer });
    }
    let left = GATE_EXPIRIES_MAX;
    for (const list of [PENDING, COMMITTED, REJECTED]) {
      for (; left > 0; left--) {
        const slot = this.#byDeadline.first(list);
        if (slot < 0 || (this.#deadlines[slot] ?? 0) > now) break;
        effects.push(...this.#drop(slot, retry("the request took too long to decide")));
      }
    }
    return effects;
  }

  /** When `tick` has something to do. */
  nextDeadline(): number | null {
    let next = this.#waits.nextDeadline() ?? Infinity;
    for (const list of [PENDING, COMMITTED, REJECTED]) {
      const slot = this.#byDeadline.first(list);
      if (slot >= 0) next = Math.min(next, this.#deadlines[slot] ?? Infinity);
    }
    return next === Infinity ? null : next;
  }

  /** Stops the gate and answers all waiters. */
  close(): readonly GateEffect<Waiter>[] {
    const answer = retry("the gate is closing");
    this.#forwarded.clear();
    for (const list of [PENDING, COMMITTED, REJECTED]) {
      for (let slot = this.#byDeadline.first(list); slot >= 0; ) {
        this.#remove(slot);
        slot = this.#byDeadline.first(list);
      }
    }
    return this.#waits.endAll().map((waiter) => ({ kind: "answer", waiter, answer }));
  }

  /** Looks up a key without counting as a use. */
  get(key: IdempotencyKey): "pending" | "committed" | "rejected" | null {
    const slot = this.#table.find(key);
    if (slot < 0) return null;
    const list = this.#byDeadline.listOf(slot);
    return list === PENDING ? "pending" : list === COMMITTED ? "committed" : "rejected";
  }

  stats(): GateCacheStats {
    return {
      entries: this.#table.size,
      entriesMax: this.#config.entriesMax,
      pending: this.#byDeadline.size(PENDING),
      committed: this.#byDeadline.size(COMMITTED),
      rejected: this.#byDeadline.size(REJECTED),
      waiters: this.#waits.size,
      lookups: this.#lookups,
      hits: this.#hits,
      evictions: this.#evictions,
      pendingTimeouts: this.#pendingTimeouts,
    };
  }

  get bytes(): number {
    const lists = this.#byDeadline.bytes + this.#byUse.bytes;
    return this.#table.bytes + lists + this.#deadlines.byteLength;
  }

  #insert(
    key: IdempotencyKey,
    fingerprint: Uint8Array,
    waiter: Waiter,
    now: number,
  ): readonly GateEffect<Waiter>[] {
    if (this.#waits.full) {
      return [{ kind: "answer", waiter, answer: retry("too many submissions are waiting") }];
    }
    const effects = this.#table.size >= this.#config.entriesMax ? this.#evict() : [];
    const slot = this.#table.insert(key, new Uint8Array(0));
    if (slot >= this.#deadlines.length) {
      const capacity = Math.max(slot + 1, grownCapacity(this.#deadlines.length));
      this.#deadlines = grownColumn(this.#deadlines, capacity, new Float64Array(capacity));
    }
    this.#byDeadline.append(PENDING, slot);
    this.#byUse.append(USED_PENDING, slot);
    this.#deadlines[slot] = now + this.#config.pendingTtlMs;
    const original = this.#wait(key, fingerprint, waiter, now);
    const token = ++this.#token;
    this.#forwarded.set(slot, { token, original, waiting: new Set([original]) });
    return [...effects, { kind: "forward", token }];
  }

  #wait(
    key: IdempotencyKey,
    fingerprint: Uint8Array,
    waiter: Waiter,
    now: number,
  ): Waiting<Waiter> {
    const waiting = { waiter, key, fingerprint, deadline: now + this.#config.pendingWaitTimeoutMs };
    this.#waits.add(waiting);
    return waiting;
  }

  /** The slot of a forwarded request that is still the one with this token; -1 otherwise. */
  #current(key: IdempotencyKey, token: number): number {
    const slot = this.#table.find(key);
    return slot >= 0 && this.#forwarded.get(slot)?.token === token ? slot : -1;
  }

  #forwardedAt(slot: number): Forwarded<Waiter> {
    const forwarded = this.#forwarded.get(slot);
    assert(forwarded !== undefined, "a pending entry is on its way to the authority");
    return forwarded;
  }

  /** IDEM-13: RETRY is no answer to keep. A reused key's is not, either: the entry is its owner's. */
  #storable(
    answer: SubmissionAnswer,
  ): { accepted: boolean; jobId: string; result: Uint8Array } | null {
    if (answer.kind === "accepted") {
      return { accepted: true, jobId: answer.jobId, result: answer.ack };
    }
    if (answer.kind === "rejected") return { accepted: false, jobId: "", result: answer.result };
    if (answer.kind === "keyReused" || this.#rules.retryNeverCached) return null;
    return { accepted: false, jobId: "", result: new Uint8Array(0) };
  }

  /** IDEM-11: what has ended first, the least used first; what is on its way only when nothing else is left. */
  #evict(): readonly GateEffect<Waiter>[] {
    const ended = this.#byUse.first(USED_ENDED);
    const slot = ended >= 0 ? ended : this.#byUse.first(USED_PENDING);
    this.#evictions++;
    return this.#drop(slot, retry("the gate is full"));
  }

  #drop(slot: number, answer: SubmissionAnswer): readonly GateEffect<Waiter>[] {
    const forwarded = this.#forwarded.get(slot);
    this.#remove(slot);
    if (forwarded === undefined) return [];
    this.#forwarded.delete(slot);
    // Only the sender of the request learns more than that he should ask again.
    const others = answer.kind === "retry" ? answer : retry("the first request was refused");
    return this.#answerAll(forwarded, (waiting) =>
      waiting === forwarded.original ? answer : others,
    );
  }

  #remove(slot: number): void {
    this.#byDeadline.remove(slot);
    this.#byUse.remove(slot);
    this.#table.remove(slot);
  }

  #answerAll(
    forwarded: Forwarded<Waiter>,
    answerTo: (waiting: Waiting<Waiter>) => SubmissionAnswer,
  ): readonly GateEffect<Waiter>[] {
    return [...forwarded.waiting].map((waiting) => {
      this.#waits.end(waiting);
      return { kind: "answer", waiter: waiting.waiter, answer: answerTo(waiting) };
    });
  }

  /** Answer of a settled entry to a duplicate. (IDEM-14) */
  #answerFor(slot: number, fingerprint: Uint8Array): SubmissionAnswer {
    const body = this.#table.body(slot);
    if (this.#rules.fingerprintChecked && !hasFingerprint(body, fingerprint)) {
      return { kind: "keyReused" };
    }
    const reader = new ByteReader(body);
    reader.skip(FINGERPRINT_BYTES);
    const jobId = reader.text();
    const result = reader.bytes().slice();
    assert(!reader.failed, "the table holds what was put into it");
    return this.#byDeadline.listOf(slot) === COMMITTED
      ? accepted({ jobId, ack: result }, true)
      : { kind: "rejected", result, duplicate: true };
  }
}

function encodeBody(fingerprint: Uint8Array, jobId: string, result: Uint8Array): Uint8Array {
  assert(result.length <= ACK_BYTES_MAX, "an answer is within its bound");
  const writer = new ByteWriter(FINGERPRINT_BYTES + 64 + result.length);
  writer.raw(fingerprint);
  writer.text(jobId);
  writer.bytes(result);
  return writer.take();
}

function retry(why: string): SubmissionAnswer {
  return { kind: "retry", why };
}
