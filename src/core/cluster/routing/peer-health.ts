/** Health of one peer: smoothed latency and recent error rate. (AD-28.18, AD-28.20) */

export type EvictionReason = "error_rate" | "consecutive_failures" | "latency";

/** Weight of a new latency sample. */
const WEIGHT = 0.2;
/** Window of the error rate: at most this many requests of at most this age. */
const OUTCOMES_MAX = 100;
const OUTCOMES_MS = 60_000;
/** Error rate limit. A peer above it for `ERROR_MS`, with at least `ERROR_SAMPLES_MIN` requests, is evicted. */
const ERROR_RATE = 0.05;
const ERROR_MS = 60_000;
const ERROR_SAMPLES_MIN = 20;
const FAILURES_MAX = 3;
/** Evicted when this many times slower than the p99 of its peers. */
const SLOW_FACTOR = 3;
const LATENCIES_MAX = 100;
/** Retained latencies per peer that may exceed its p99. */
const ABOVE_P99_MAX = LATENCIES_MAX * 0.01;
const LATENCIES_MS = 300_000;
const LATENCIES_MIN = 50;
const WEIGHT_MIN = 0.1;

interface Outcome {
  readonly at: number;
  readonly failed: boolean;
}

interface Latency {
  readonly at: number;
  readonly ms: number;
}

export class PeerHealth {
  #latencyMs: number | null = null;
  readonly #latencies: Latency[] = [];
  readonly #outcomes: Outcome[] = [];
  /** Failures among the retained outcomes. */
  #failedOutcomes = 0;
  #failures = 0;
  /** When the error rate exceeded the limit; null if it is below. */
  #badSince: number | null = null;

  /** Smoothed latency; null before the first answer. Failures do not count. */
  get latencyMs(): number | null {
    return this.#latencyMs;
  }

  succeeded(ms: number, now: number): void {
    this.#latencyMs = this.#latencyMs === null ? ms : WEIGHT * ms + (1 - WEIGHT) * this.#latencyMs;
    if (this.#latencies.length === LATENCIES_MAX) this.#latencies.shift();
    this.#latencies.push({ at: now, ms });
    this.#failures = 0;
    this.#record(false, now);
  }

  failed(now: number): void {
    this.#failures++;
    this.#record(true, now);
  }

  errorRate(now: number): number {
    if (this.#failedOutcomes === 0) return 0;
    let [all, failures] = [0, 0];
    for (const { at, failed } of this.#outcomes) {
      if (at <= now - OUTCOMES_MS) continue;
      all++;
      if (failed) failures++;
    }
    return all === 0 ? 0 : failures / all;
  }

  /** Multiplier of the peer's hash in the ranking. (AD-28.14, AD-28.16) */
  weight(baselineMs: number | null, now: number): number {
    const ratio = baselineMs === null ? 1 : (this.#latencyMs ?? baselineMs) / baselineMs;
    const slowness = Math.min(1, Math.max(0, (ratio - 1) / (SLOW_FACTOR - 1)));
    return Math.max(WEIGHT_MIN, 1 - 2 * this.errorRate(now) - 0.5 * slowness);
  }

  /** Reason to evict the peer, or null. `hasOther`: another peer can take over. */
  eviction(others: readonly PeerHealth[], hasOther: boolean, now: number): EvictionReason | null {
    if (this.#failures > FAILURES_MAX) return "consecutive_failures";
    if (this.#isSlow(others, now)) return "latency";
    const isLong = this.#badSince !== null && now - this.#badSince >= ERROR_MS;
    if (!isLong || !hasOther) return null;
    const fresh = this.#outcomes.filter(({ at }) => at > now - OUTCOMES_MS);
    return fresh.length >= ERROR_SAMPLES_MIN ? "error_rate" : null;
  }

  #isSlow(others: readonly PeerHealth[], now: number): boolean {
    if (this.#latencyMs === null) return false;
    // Compares with the p99 of the others without sorting on every answer.
    const limitMs = this.#latencyMs / SLOW_FACTOR;
    const slowerMax = others.length * ABOVE_P99_MAX;
    let [all, slower] = [0, 0];
    for (const other of others)
      for (const { at, ms } of other.#latencies) {
        if (at < now - LATENCIES_MS) continue;
        all++;
        // Stops early: usually the first few samples show that the peer is not slow.
        if (ms >= limitMs && ++slower > slowerMax) return false;
      }
    return all >= LATENCIES_MIN && all - slower >= Math.ceil(all * 0.99);
  }

  #record(failed: boolean, now: number): void {
    if (this.#outcomes.length === OUTCOMES_MAX && this.#outcomes.shift()?.failed)
      this.#failedOutcomes--;
    this.#outcomes.push({ at: now, failed });
    if (failed) this.#failedOutcomes++;
    this.#badSince = this.errorRate(now) > ERROR_RATE ? (this.#badSince ?? now) : null;
  }
}
