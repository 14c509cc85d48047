/**
 * The rules of idempotent submission that can be broken one at a time. Production always runs with all of
 * them; the simulator flips one to plant a mutant and shows that its checkers see the difference.
 */

export interface IdempotencyRules {
  /** A second RESERVED of a live key applies as a duplicate, whatever its proposer believed. (IDEM-21) */
  readonly applyTimeCheck: boolean;
  /** Another fingerprint under a known key is refused. (IDEM-5) */
  readonly fingerprintChecked: boolean;
  /** Expiry removes terminal entries only. (IDEM-19, IDEM-24) */
  readonly pendingNeverExpires: boolean;
  /** Terminal entries, and a reservation's positive ack, never change. (IDEM-6, IDEM-23) */
  readonly terminalImmutable: boolean;
  /** A replica that is not the primary forwards what it does not hold. (IDEM-26) */
  readonly absenceOnlyByPrimary: boolean;
  /** Clients are answered when their entry is applied, not when it is proposed. (IDEM-23) */
  readonly answerAfterApply: boolean;
  /** Duplicates are answered with the job of the reservation, not with their own. (IDEM-22) */
  readonly canonicalJob: boolean;
  /** Capacity, open circuits and lost quorums are never stored as rejections. (IDEM-8) */
  readonly transientNeverStored: boolean;
  /** Entries within their TTL are never dropped for space. (IDEM-19) */
  readonly noEvictionWithinTtl: boolean;
  /** A new primary founds the jobs whose reservations it inherited. (IDEM-22) */
  readonly inheritedFounded: boolean;
  /** The gate stores no RETRY answer. (IDEM-13) */
  readonly retryNeverCached: boolean;
  /** The manager claims a key before it waits for the disk. (IDEM-16) */
  readonly claimBeforeAppend: boolean;
  /** The manager's records are durable before anything rests on them. (IDEM-16, IDEM-17) */
  readonly durableFirst: boolean;
  /** After a restart the manager goes on with PENDING entries under their recorded job id. (IDEM-18) */
  readonly pendingResumed: boolean;
}

export const IDEMPOTENCY_RULES: IdempotencyRules = {
  applyTimeCheck: true,
  fingerprintChecked: true,
  pendingNeverExpires: true,
  terminalImmutable: true,
  absenceOnlyByPrimary: true,
  answerAfterApply: true,
  canonicalJob: true,
  transientNeverStored: true,
  noEvictionWithinTtl: true,
  inheritedFounded: true,
  retryNeverCached: true,
  claimBeforeAppend: true,
  durableFirst: true,
  pendingResumed: true,
};
