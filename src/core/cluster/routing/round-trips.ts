/**
 * How far a datacenter is: the round trips of what this gate asks it anyway, smoothed, with how much they vary.
 * What counts is their upper bound, so that a way that is not known well does not look short. (AD-36.1)
 */

/** Of a new sample. */
const WEIGHT = 0.25;
const DEVIATIONS = 2;
/** The deviation is never taken for less or more, nor before anything was measured. */
const DEVIATION_MS_MIN = 1;
const DEVIATION_MS_MAX = 500;
const DEVIATION_MS_FIRST = 50;
const ROUND_TRIP_MS_DEFAULT = 100;
const ROUND_TRIP_MS_MIN = 1;
const ROUND_TRIP_MS_MAX = 10_000;
/** Samples that are enough, and a deviation that is good. */
const SAMPLES_MIN = 10;
const DEVIATION_MS_GOOD = 20;
/** What was measured longer ago says less. */
const FRESH_MS = 300_000;

/** What is known of a datacenter that was never asked. */
export const UNKNOWN_DISTANCE: Distance = {
  upperMs: ROUND_TRIP_MS_DEFAULT + DEVIATIONS * DEVIATION_MS_FIRST,
  quality: 0,
  isKnown: false,
};

export interface Distance {
  /** The round trip takes hardly ever longer. */
  readonly upperMs: number;
  /** How well it is known, 0 to 1. */
  readonly quality: number;
  /** There are enough samples, close enough to each other, to go by. (AD-36.20) */
  readonly isKnown: boolean;
}

export class RoundTrips {
  #samples = 0;
  #meanMs = 0;
  #deviationMs = DEVIATION_MS_FIRST;
  #measuredAt = 0;

  /** What is no duration is dropped. */
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

/** Few samples, a large deviation and age each take their part. (AD-36) */
export function qualityOf(samples: number, deviationMs: number, ageMs: number): number {
  const enough = Math.min(1, samples / SAMPLES_MIN);
  const steady = Math.min(1, DEVIATION_MS_GOOD / Math.max(deviationMs, 1));
  const fresh = ageMs <= FRESH_MS ? 1 : FRESH_MS / ageMs;
  return clamp(enough * steady * fresh, 0, 1);
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(high, Math.max(low, value));
}
