/**
 * Fencing: orders of a deposed leader are refused. A token is term x 2^20 + sequence, so it orders
 * everything a line of leaders ever commanded, and fits 53 bits for 2^33 terms. (AD-10, FTOK-5)
 *
 * The issuer lives with the leader, the guard with whoever carries out orders. The guard remembers the
 * newest token of each subject, after the work has ended too, so that a late order cannot run again.
 */

import { assert } from "../../base/assert.ts";
import type { FenceToken, Term } from "../../base/ids.ts";
import { term as toTerm } from "../../base/ids.ts";

export const FENCE_SEQUENCES = 2 ** 20;
/** Tombstones of ended subjects; the oldest ended go first. (FTOK-6) */
export const TOMBSTONES_MAX = 10_000;
/** Subjects with work in hand. */
export const SUBJECTS_MAX = 100_000;
export const TOMBSTONE_MS_MIN = 3_600_000;

export function fenceToken(term: Term, sequence: number): FenceToken {
  assert(Number.isInteger(sequence) && sequence >= 0, "a sequence counts up from zero");
  assert(sequence < FENCE_SEQUENCES, "a term has 2^20 tokens");
  const token = term * FENCE_SEQUENCES + sequence;
  assert(Number.isSafeInteger(token), "a token fits 53 bits");
  return token as FenceToken;
}

export function termOf(token: FenceToken): Term {
  return toTerm(Math.floor(token / FENCE_SEQUENCES));
}

/** One leadership's tokens, each larger than the last. */
export class FenceIssuer {
  readonly #term: Term;
  #sequence = 0;

  constructor(term: Term) {
    this.#term = term;
  }

  /** Null when the term's tokens are used up: the leader must win a new term first. */
  next(): FenceToken | null {
    if (this.#sequence >= FENCE_SEQUENCES) return null;
    return fenceToken(this.#term, this.#sequence++);
  }
}

export type FenceVerdict =
  | "accepted"
  /** The order that is already carried out: answer as before, start nothing. (AD-10.5) */
  | "repeat"
  /** Below the newest of this subject, or of a term below the highest seen. */
  | "stale"
  | "full";

interface Subject {
  token: FenceToken;
  endedAt: number | null;
}

export class FenceGuard {
  readonly #subjects = new Map<string, Subject>();
  readonly #ended = new Set<string>();
  #highestTerm: Term;

  /** The highest term seen survives restarts with its keeper; 0 on a fresh disk. */
  constructor(highestTerm: Term) {
    this.#highestTerm = highestTerm;
  }

  get highestTerm(): Term {
    return this.#highestTerm;
  }

  get subjectCount(): number {
    return this.#subjects.size;
  }

  /** L3: nothing is carried out below the highest term this guard has seen, nor twice. */
  admit(subject: string, token: FenceToken): FenceVerdict {
    const term = termOf(token);
    if (term < this.#highestTerm) return "stale";
    const known = this.#subjects.get(subject);
    if (known !== undefined && token < known.token) return "stale";
    if (known !== undefined && token === known.token) return "repeat";
    if (known === undefined && this.#subjects.size >= SUBJECTS_MAX) return "full";
    this.#highestTerm = term;
    this.#subjects.set(subject, { token, endedAt: null });
    this.#ended.delete(subject);
    return "accepted";
  }

  /** May this token still report about the subject? Results of a superseded order are refused. (FTOK-4) */
  isCurrent(subject: string, token: FenceToken): boolean {
    return this.#subjects.get(subject)?.token === token;
  }

  /** The work has ended; its token stays as a tombstone. */
  end(subject: string, now: number): void {
    const known = this.#subjects.get(subject);
    if (known === undefined || known.endedAt !== null) return;
    known.endedAt = now;
    this.#ended.add(subject);
    for (const oldest of this.#ended) {
      if (this.#ended.size <= TOMBSTONES_MAX) break;
      this.#forget(oldest);
    }
  }

  /** Tombstones older than any order still on its way. */
  sweep(now: number): void {
    for (const subject of this.#ended) {
      const endedAt = this.#subjects.get(subject)?.endedAt ?? null;
      if (endedAt !== null && now - endedAt < TOMBSTONE_MS_MIN) break;
      this.#forget(subject);
    }
  }

  #forget(subject: string): void {
    this.#ended.delete(subject);
    this.#subjects.delete(subject);
  }
}
