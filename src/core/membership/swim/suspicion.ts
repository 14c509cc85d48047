/**
 * One accusation's clock. It starts long (we might be the sick one) and shrinks as distinct others
 * confirm, logarithmically, never below the minimum. (Lifeguard IV-B, HFD-3)
 *
 *     T(c) = max(min, max - (max - min) * ln(c + 1) / ln(k + 1))
 *
 * A confirmation only ever moves the deadline earlier; nothing re-arms it, so no amount of gossip
 * can keep an accused member in limbo.
 */

import { assert } from "../../base/assert.ts";
import type { NodeId } from "../../base/ids.ts";

export interface SuspicionBounds {
  /** Confirmations beyond the first accuser that bring the timeout to its minimum. */
  readonly confirmationsWanted: number;
  readonly minMs: number;
  readonly maxMs: number;
}

export class Suspicion {
  readonly #bounds: SuspicionBounds;
  readonly #accusers: NodeId[];
  #startedAt: number;
  #deadline: number;

  constructor(bounds: SuspicionBounds, accuser: NodeId, now: number) {
    assert(bounds.minMs > 0 && bounds.minMs <= bounds.maxMs, "suspicion bounds are ordered");
    this.#bounds = bounds;
    this.#accusers = [accuser];
    this.#startedAt = now;
    this.#deadline = now + suspicionTimeout(0, bounds);
  }

  get deadline(): number {
    return this.#deadline;
  }

  /** Distinct accusers beyond the first. */
  get confirmations(): number {
    return this.#accusers.length - 1;
  }

  /** True if this accuser is new and still matters; only then is the accusation passed on. */
  confirm(accuser: NodeId): boolean {
    if (this.confirmations >= this.#bounds.confirmationsWanted) return false;
    if (this.#accusers.includes(accuser)) return false;
    this.#accusers.push(accuser);
    this.#deadline = this.#startedAt + suspicionTimeout(this.confirmations, this.#bounds);
    return true;
  }

  /** Our own loop stalled: refutations may be unread, so the suspicion's clock is paused too. */
  postpone(ms: number): void {
    this.#startedAt += ms;
    this.#deadline += ms;
  }
}

export function suspicionTimeout(confirmations: number, bounds: SuspicionBounds): number {
  const { confirmationsWanted: wanted, minMs, maxMs } = bounds;
  if (wanted < 1) return minMs;
  const share = Math.log(confirmations + 1) / Math.log(wanted + 1);
  return Math.max(minMs, maxMs - (maxMs - minMs) * share);
}

interface SuspicionMultiples {
  readonly suspicionMult: number;
  readonly suspicionMaxTimeoutMult: number;
  readonly probeIntervalMs: number;
}

/** Minimum time for a cluster of `memberCount`: rumours need longer to reach everyone in a larger one. */
export function suspicionMinMs(mult: number, memberCount: number, probeIntervalMs: number): number {
  return mult * Math.max(1, Math.log10(Math.max(1, memberCount))) * probeIntervalMs;
}

/** Bounds of a new suspicion; with too few others to confirm, it runs at its minimum from the start. */
export function suspicionBounds(config: SuspicionMultiples, memberCount: number): SuspicionBounds {
  const minMs = suspicionMinMs(config.suspicionMult, memberCount, config.probeIntervalMs);
  const wanted = Math.max(0, config.suspicionMult - 2);
  return {
    confirmationsWanted: memberCount - 2 < wanted ? 0 : wanted,
    minMs,
    maxMs: config.suspicionMaxTimeoutMult * minMs,
  };
}
