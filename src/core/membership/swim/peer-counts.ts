/** Counters of coordinates, adaptive timeouts and members that were never reached, for metrics. (AD-35) */

import type { Role } from "../../base/ids.ts";

/** Sum and count of a value observed repeatedly; the mean is their quotient. */
interface Observed {
  sum: number;
  count: number;
}

export interface PeerCounts {
  /** Steps of our coordinate. */
  readonly coordinateUpdates: number;
  /** How far the estimate was from what was measured, before the step: milliseconds. */
  readonly predictionErrorMs: Readonly<Observed>;
  /** Suspicions begun: what the longest wait was, in milliseconds, and what it was stretched by. */
  readonly timeoutMs: Readonly<Observed>;
  readonly latencyMultiplier: Readonly<Observed>;
  readonly loadMultiplier: Readonly<Observed>;
  /** The longest wait that was last given to a member of each role: milliseconds. */
  readonly lastTimeoutMs: Readonly<Partial<Record<Role, number>>>;
  /** Pings to members that were not reached in their passive wait, by role. */
  readonly attempts: Readonly<Record<Role, number>>;
  /** Reached for the first time; and after such a ping. */
  readonly confirmed: number;
  readonly confirmedByAttempt: number;
  /** Dropped without having been reached, by role. */
  readonly removed: Readonly<Record<Role, number>>;
}

export class PeerCounters implements PeerCounts {
  coordinateUpdates = 0;
  confirmed = 0;
  confirmedByAttempt = 0;
  readonly predictionErrorMs: Observed = { sum: 0, count: 0 };
  readonly timeoutMs: Observed = { sum: 0, count: 0 };
  readonly latencyMultiplier: Observed = { sum: 0, count: 0 };
  readonly loadMultiplier: Observed = { sum: 0, count: 0 };
  readonly lastTimeoutMs: Partial<Record<Role, number>> = {};
  readonly attempts: Record<Role, number> = { gate: 0, manager: 0, worker: 0 };
  readonly removed: Record<Role, number> = { gate: 0, manager: 0, worker: 0 };

  predicted(estimateMs: number | null, rttMs: number): void {
    this.coordinateUpdates++;
    if (estimateMs !== null) observe(this.predictionErrorMs, Math.abs(estimateMs - rttMs));
  }

  suspected(role: Role, maxMs: number, latency: number, load: number): void {
    observe(this.timeoutMs, maxMs);
    observe(this.latencyMultiplier, latency);
    observe(this.loadMultiplier, load);
    this.lastTimeoutMs[role] = maxMs;
  }

  reached(hadAttempts: boolean): void {
    this.confirmed++;
    if (hadAttempts) this.confirmedByAttempt++;
  }
}

function observe(of: Observed, value: number): void {
  of.sum += value;
  of.count++;
}
