/**
 * Distance to a datacenter, estimated from the round trips of regular requests: smoothed mean and deviation. Routing
 * uses the upper bound, so that a poorly known distance does not look short. (AD-36.1)
 */

/** Weight of a new sample. */
const WEIGHT = 0.25;
const DEVIATIONS = 2;
/** Bounds of the deviation, and its initial value. */
const DEVIATION_MS_MIN = 1;
const DEVIATION_MS_MAX = 500;
const DEVIATION_MS_FIRST = 50;
const ROUND_TRIP_MS_DEFAULT = 100;
const ROUND_TRIP_MS_MIN = 1;
const ROUND_TRIP_MS_MAX = 10_000;
/** Sample count and deviation of full quality. */
const SAMPLES_MIN = 10;
const DEVIATION_MS_GOOD = 20;
/** Age beyond which quality declines. */
const FRESH_MS = 300_000;

/** Distance of a datacenter without samples. */
export const UNKNOWN_DISTANCE: Distance = {
  upperMs: ROUND_TRIP_MS_DEFAULT + DEVIATIONS * DEVIATION_MS_FIRST,
  quality: 0,
  isKnown: false,
};

export interface Distance {
  /** Upper bound of the round trip in practice. */
  readonly upperMs: number;
  /** Confidence from 0 to 1. */
  readonly quality: number;
  /** Enough consistent samples to rely on. (AD-36.20) */
  readonly isKnown: boolean;
}

export class RoundTrips {
  #samples = 0;
  #meanMs = 0;
  #deviationMs = DEVIATION_MS_FIRST;
  #measuredAt = 0;

  /** Adds a sample; ignores invalid durations. */
  record(ms: number, now: number): void {
    if (!(ms >= 0 && ms <= ROUND_TRIP_MS_MAX)) return;
    this.#meanMs = this.#samples === 0 ? ms : this.#meanMs + WEIGHT * (ms - this.#meanMs);
    this.#deviationMs += WEIGHT * (Math.abs(ms - this.#meanMs) - this.#deviationMs);
    this.#samples++;
    this.#measuredAt = now;
  }

  distance(now: number): Distance {
    if (this.#samples === 0) return UNKNOWN_DISTANCE;
    const deviation = clamp(this.#deviationMs, DEVIATION_MS_MIN, DEVIATION_MS_MAX);
    const upper = this.#meanMs + DEVIATIONS * deviation;
    return {
      upperMs: clamp(upper, ROUND_TRIP_MS_MIN, ROUND_TRIP_MS_MAX),
      quality: qualityOf(this.#samples, deviation, now - this.#measuredAt),
      isKnown: this.#samples >= SAMPLES_MIN && deviation <= DEVIATION_MS_FIRST,
    };
  }
}

/** Confidence from sample count, deviation and age. (AD-36) */
export function qualityOf(samples: number, deviationMs: number, ageMs: number): number {
  const enough = Math.min(1, samples / SAMPLES_MIN);
  const steady = Math.min(1, DEVIATION_MS_GOOD / Math.max(deviationMs, 1));
  const fresh = ageMs <= FRESH_MS ? 1 : FRESH_MS / ageMs;
  return clamp(enough * steady * fresh, 0, 1);
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(high, Math.max(low, value));
}
