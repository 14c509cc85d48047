/**
 * The primary's side of one shard: waiters per key, proposed entries, jobs being founded, expiry of entries. All of it
 * is volatile: a new primary starts without waiters and finds its remaining work in the replicated state. (IDEM-21..24)
 *
 *     submit --absent--> propose RESERVED --applied: new--> answer all waiters, found the job's group
 *                                                               |  repeated every few seconds, until
 *                                                             founded --> propose COMMITTED
 *
 * The driver reports every entry the group applies, proposed here or not, right after the state has applied it. A
 * proposal is never given up while we are primary; once we are not, its outcome is unknown here, and all waiters are
 * answered "retry", with the same key.
 */

import { assert, assertNever } from "../../base/assert.ts";
import type { IdempotencyConfig } from "./config.ts";
import { shardEntriesMax } from "./config.ts";
import {
  accepted,
  answerOf,
  decideSubmission,
  type Submission,
  type SubmissionAnswer,
} from "./decide.ts";
import type { IdempotencyKey } from "./key.ts";
import type { Moment } from "./moment.ts";
import type { Founding, ShardOutcome, ShardState } from "./shard.ts";
import { EXPIRE_COUNT_MAX, type ShardEntry } from "./shard-entry.ts";
import { type Waiting, WaitList } from "./wait-list.ts";

/** Submissions of one shard that wait for an answer. */
export const WAITERS_MAX = 16_384;
/**
 * Size limit of JobCreated events kept by one shard, in flight and not founded: as much as a window. They are part of
 * its snapshot, which has to fit one record of the log together with all of its keys.
 */
export const CREATED_BYTES_HELD_MAX = 4 * 1_048_576;
/** Jobs of one shard being founded at the same time. */
export const FOUNDINGS_MAX = 512;
/** A founding without an answer is tried again after this. */
export const FOUNDING_RETRY_MS = 2_000;

export type ShardEffect<Waiter> =
  | { readonly kind: "propose"; readonly entry: ShardEntry }
  | { readonly kind: "answer"; readonly waiter: Waiter; readonly answer: SubmissionAnswer }
  /** Start the job's group with `created` as entry 0; idempotent by job id. Report `founded` when it exists. */
  | { readonly kind: "found"; readonly founding: Founding }
  /** A reservation older than `pendingTtlMs` whose group does not exist: an operator should check. (IDEM-19) */
  | { readonly kind: "overdue"; readonly founding: Founding; readonly ageMs: number };

interface Proposal<Waiter> {
  /** The job proposed under this key; empty for a refusal. */
  readonly jobId: string;
  readonly createdBytes: number;
  /** Waiter whose submission caused the proposal; null until it waits. */
  proposer: Waiting<Waiter> | null;
  readonly waiting: Map<Waiting<Waiter>, Submission>;
}

export class ShardWaiters<Waiter> {
  readonly #state: ShardState;
  readonly #config: IdempotencyConfig;
  readonly #proposals = new Map<IdempotencyKey, Proposal<Waiter>>();
  #proposedBytes = 0;
  readonly #waits = new WaitList<Waiter>(WAITERS_MAX);
  /** Key to the next attempt; the earliest first. */
  readonly #foundings = new Map<IdempotencyKey, number>();
  readonly #committing = new Set<IdempotencyKey>();
  /** More reservations are pending than are being founded. */
  #backlog = false;
  #expiring = false;
  #cleanupAt = 0;
  #active = false;

  constructor(state: ShardState, config: IdempotencyConfig) {
    this.#state = state;
    this.#config = config;
  }

  get active(): boolean {
    return this.#active;
  }

  get waiterCount(): number {
    return this.#waits.size;
  }

  /** We are the shard's primary from now on. */
  takeOver({ now }: Moment): readonly ShardEffect<Waiter>[] {
    assert(!this.#active, "a shard is taken over once");
    this.#active = true;
    this.#cleanupAt = now + this.#config.cleanupIntervalMs;
    this.#backlog = this.#state.rules.inheritedFounded;
    return this.#refill(now);
  }

  /** We are not primary any more: what is in flight may still be decided, by others. */
  stepDown(): readonly ShardEffect<Waiter>[] {
    this.#active = false;
    this.#proposals.clear();
    this.#proposedBytes = 0;
    this.#foundings.clear();
    this.#committing.clear();
    this.#backlog = false;
    this.#expiring = false;
    const answer = retry("the shard has another primary");
    return this.#waits.endAll().map((waiter) => ({ kind: "answer", waiter, answer }));
  }

  submit(submission: Submission, waiter: Waiter, at: Moment): readonly ShardEffect<Waiter>[] {
    assert(this.#active, "only the primary decides");
    const limits = {
      entriesMax: shardEntriesMax(this.#config),
      createdBytesMax: CREATED_BYTES_HELD_MAX,
    };
    const inFlight = {
      has: (key: IdempotencyKey) => this.#proposals.has(key),
      size: this.#proposals.size,
      createdBytes: this.#proposedBytes,
    };
    const decision = decideSubmission(this.#state, inFlight, submission, at.time, limits);
    switch (decision.kind) {
      case "answer":
        return [{ kind: "answer", waiter, answer: decision.answer }, ...this.#evict(at.time)];
      case "wait":
        if (!this.#config.waitForPending) {
          return [{ kind: "answer", waiter, answer: retry("the first request is being decided") }];
        }
        return this.#wait(submission, waiter, at.now);
      case "propose":
        return this.#propose(submission, decision.entry, waiter, at.now);
      default:
        return assertNever(decision);
    }
  }

  /** The group applied an entry, and the state gave this outcome. Also called for entries of other proposers. */
  applied(entry: ShardEntry, outcome: ShardOutcome, at: Moment): readonly ShardEffect<Waiter>[] {
    if (!this.#active) return [];
    switch (entry.kind) {
      case "reserved":
        return [
          ...this.#resolve(entry.key, outcome),
          ...(outcome.kind === "new" ? this.#found(entry.key, at.now) : []),
        ];
      case "rejected":
        return this.#resolve(entry.key, outcome);
      case "committed":
        this.#committing.delete(entry.key);
        if (outcome.kind === "committed") this.#foundings.delete(entry.key);
        return this.#refill(at.now);
      case "expire": {
        this.#expiring = false;
        const more = outcome.kind === "expired" && outcome.count === entry.countMax;
        return more ? this.#expire(at.time) : [];
      }
      default:
        return assertNever(entry);
    }
  }

  /** The group took no proposal (its window is full): nothing was written, so the key is free again. */
  refused(entry: ShardEntry, { now }: Moment): readonly ShardEffect<Waiter>[] {
    switch (entry.kind) {
      case "reserved":
      case "rejected": {
        const answer = retry("the shard's log is busy");
        const waiting = [...(this.#endProposal(entry.key)?.waiting.keys() ?? [])];
        for (const one of waiting) this.#waits.end(one);
        return waiting.map(({ waiter }) => ({ kind: "answer", waiter, answer }));
      }
      case "committed":
        // Founding again is harmless and brings us back here.
        if (this.#committing.delete(entry.key)) {
          this.#foundings.set(entry.key, now + FOUNDING_RETRY_MS);
        }
        return [];
      case "expire":
        this.#expiring = false;
        return [];
      default:
        return assertNever(entry);
    }
  }

  /** The job's own group has confirmed its entry 0. */
  founded(key: IdempotencyKey, jobId: string, { time }: Moment): readonly ShardEffect<Waiter>[] {
    if (!this.#active || this.#committing.has(key)) return [];
    const founding = this.#state.founding(key);
    if (founding === null || founding.jobId !== jobId) return [];
    this.#foundings.delete(key);
    this.#committing.add(key);
    return [{ kind: "propose", entry: { kind: "committed", key, jobId, at: time } }];
  }

  tick({ now, time }: Moment): readonly ShardEffect<Waiter>[] {
    if (!this.#active) return [];
    const effects: ShardEffect<Waiter>[] = [];
    for (const waiting of this.#waits.endDue(now)) {
      this.#proposals.get(waiting.key)?.waiting.delete(waiting);
      const answer = retry("the first request is still being decided");
      effects.push({ kind: "answer", waiter: waiting.waiter, answer });
    }
    this.#foundAgain(now, effects);
    if (now >= this.#cleanupAt) {
      this.#cleanupAt = now + this.#config.cleanupIntervalMs;
      effects.push(...this.#expire(time), ...this.#overdue(time));
    }
    return effects;
  }

  nextDeadline(): number | null {
    if (!this.#active) return null;
    const [founding] = this.#foundings.values();
    const wait = this.#waits.nextDeadline();
    return Math.min(this.#cleanupAt, founding ?? Infinity, wait ?? Infinity);
  }

  #propose(
    submission: Submission,
    entry: ShardEntry,
    waiter: Waiter,
    now: number,
  ): readonly ShardEffect<Waiter>[] {
    if (this.#waits.full) return [busy(waiter)];
    const isNew = entry.kind === "reserved";
    const createdBytes = isNew ? entry.created.length : 0;
    const jobId = isNew ? entry.jobId : "";
    const waiting = new Map<Waiting<Waiter>, Submission>();
    const proposal: Proposal<Waiter> = { jobId, createdBytes, proposer: null, waiting };
    this.#proposals.set(submission.key, proposal);
    this.#proposedBytes += createdBytes;
    if (isNew && !this.#state.rules.answerAfterApply) {
      return [
        { kind: "propose", entry },
        { kind: "answer", waiter, answer: accepted(entry, false) },
      ];
    }
    this.#wait(submission, waiter, now);
    [proposal.proposer = null] = waiting.keys();
    return [{ kind: "propose", entry }];
  }

  #wait(submission: Submission, waiter: Waiter, now: number): readonly ShardEffect<Waiter>[] {
    if (this.#waits.full) return [busy(waiter)];
    const deadline = now + this.#config.pendingWaitTimeoutMs;
    const { key, fingerprint } = submission;
    const waiting = { waiter, key, fingerprint, deadline };
    this.#waits.add(waiting);
    this.#proposals.get(key)?.waiting.set(waiting, submission);
    return [];
  }

  /** The key is decided: each waiter gets the answer to its own submission. */
  #resolve(key: IdempotencyKey, outcome: ShardOutcome): readonly ShardEffect<Waiter>[] {
    const proposal = this.#endProposal(key);
    if (proposal === null) return [];
    const effects: ShardEffect<Waiter>[] = [];
    for (const [waiting, submission] of proposal.waiting) {
      this.#waits.end(waiting);
      // The waiter that proposed the winning entry is the original.
      const original = waiting === proposal.proposer && isOwn(outcome, proposal.jobId);
      const known = original ? null : this.#state.outcomeOf(key, submission.fingerprint);
      const answer = original
        ? originalAnswer(outcome)
        : answerOf(known ?? outcome, submission, this.#state);
      effects.push({ kind: "answer", waiter: waiting.waiter, answer });
    }
    return effects;
  }

  #endProposal(key: IdempotencyKey): Proposal<Waiter> | null {
    const proposal = this.#proposals.get(key) ?? null;
    if (proposal === null) return null;
    this.#proposals.delete(key);
    this.#proposedBytes -= proposal.createdBytes;
    return proposal;
  }

  #found(key: IdempotencyKey, now: number): readonly ShardEffect<Waiter>[] {
    if (this.#foundings.size >= FOUNDINGS_MAX) {
      this.#backlog = true;
      return [];
    }
    const founding = this.#state.founding(key);
    assert(founding !== null, "a new reservation is pending");
    this.#foundings.set(key, now + FOUNDING_RETRY_MS);
    return [{ kind: "found", founding }];
  }

  /** Starts founding the reservations that still wait for it, when half of the places are free. */
  #refill(now: number): readonly ShardEffect<Waiter>[] {
    if (!this.#backlog || this.#foundings.size > FOUNDINGS_MAX / 2) return [];
    const effects: ShardEffect<Waiter>[] = [];
    for (const founding of this.#state.pendingFoundings()) {
      if (this.#foundings.size >= FOUNDINGS_MAX) return effects;
      if (this.#foundings.has(founding.key) || this.#committing.has(founding.key)) continue;
      this.#foundings.set(founding.key, now + FOUNDING_RETRY_MS);
      effects.push({ kind: "found", founding });
    }
    this.#backlog = false;
    return effects;
  }

  #foundAgain(now: number, effects: ShardEffect<Waiter>[]): void {
    for (const [key, at] of this.#foundings) {
      if (at > now) break;
      this.#foundings.delete(key);
      const founding = this.#state.founding(key);
      if (founding === null) continue;
      this.#foundings.set(key, now + FOUNDING_RETRY_MS);
      effects.push({ kind: "found", founding });
    }
  }

  /** IDEM-24: removes what is old, for everyone; while something grows old, carries the shard's time on. */
  #expire(time: number): readonly ShardEffect<Waiter>[] {
    const { cleanupIntervalMs, committedTtlMs, rejectedTtlMs } = this.#config;
    const committedBefore = Math.max(0, time - committedTtlMs);
    const rejectedBefore = Math.max(0, time - rejectedTtlMs);
    const committed = this.#state.oldestEnded("committed") ?? Infinity;
    const rejected = this.#state.oldestEnded("rejected") ?? Infinity;
    const ages = Math.min(committed, rejected) < Infinity;
    const late = ages && time - this.#state.clock >= cleanupIntervalMs / 2;
    const due = committed < committedBefore || rejected < rejectedBefore || late;
    if (this.#expiring || (!due && this.#state.rules.pendingNeverExpires)) return [];
    this.#expiring = true;
    const entry = {
      committedBefore,
      rejectedBefore,
      countMax: EXPIRE_COUNT_MAX,
      at: time,
    } as const;
    return [{ kind: "propose", entry: { kind: "expire", ...entry } }];
  }

  /** Reported once per cleanup, the oldest only: the rest has the same cause as a rule. */
  #overdue(time: number): readonly ShardEffect<Waiter>[] {
    for (const founding of this.#state.pendingFoundings()) {
      const ageMs = time - founding.reservedAt;
      return ageMs > this.#config.pendingTtlMs ? [{ kind: "overdue", founding, ageMs }] : [];
    }
    return [];
  }

  /** The rule broken: a full shard forgets what its clients may still ask for. */
  #evict(time: number): readonly ShardEffect<Waiter>[] {
    const full = this.#state.size >= shardEntriesMax(this.#config);
    if (this.#state.rules.noEvictionWithinTtl || !full || this.#expiring) return [];
    this.#expiring = true;
    const before = { committedBefore: time + 1, rejectedBefore: time + 1 };
    const entry = { ...before, countMax: 64, at: time } as const;
    return [{ kind: "propose", entry: { kind: "expire", ...entry } }];
  }
}

function isOwn(outcome: ShardOutcome, jobId: string): boolean {
  if (outcome.kind === "new") return outcome.jobId === jobId;
  return outcome.kind === "rejected" && outcome.first && jobId === "";
}

function originalAnswer(outcome: ShardOutcome): SubmissionAnswer {
  if (outcome.kind === "new") return accepted(outcome, false);
  assert(outcome.kind === "rejected", "an original is accepted or rejected");
  return { kind: "rejected", result: outcome.result, duplicate: false };
}

function busy<Waiter>(waiter: Waiter): ShardEffect<Waiter> {
  return { kind: "answer", waiter, answer: retry("too many submissions are waiting") };
}

function retry(why: string): SubmissionAnswer {
  return { kind: "retry", why };
}
