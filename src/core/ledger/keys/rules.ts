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
  /** Clients are answered when their entry is applied, not when it is proposed. (IDEM-23) */
  readonly answerAfterApply: boolean;
  /** Duplicates are answered with the job of the reservation, not with their own. (IDEM-22) */
  readonly canonicalJob: boolean;
  /** Capacity, open circuits and lost quorums are never stored as rejections. (IDEM-8) */
  readonly transientNeverStored: boolean;
  /**
   * A refusal is an entry like a reservation, so that the next primary of the shard gives the same answer. (IDEM-23)
   */
  readonly refusalsStored: boolean;
  /** Entries within their TTL are never dropped for space. (IDEM-19) */
  readonly noEvictionWithinTtl: boolean;
  /** A new primary founds the jobs whose reservations it inherited. (IDEM-22) */
  readonly inheritedFounded: boolean;
  /** The gate stores no RETRY answer. (IDEM-13) */
  readonly retryNeverCached: boolean;
}

export const IDEMPOTENCY_RULES: IdempotencyRules = {
  applyTimeCheck: true,
  fingerprintChecked: true,
  pendingNeverExpires: true,
  terminalImmutable: true,
  answerAfterApply: true,
  canonicalJob: true,
  transientNeverStored: true,
  refusalsStored: true,
  noEvictionWithinTtl: true,
  inheritedFounded: true,
  retryNeverCached: true,
};
