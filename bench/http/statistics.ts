/** Ratios of sums over slices, with bootstrap intervals. */

import type { Random } from "../../src/core/base/random.ts";

/** One turn of one tool. */
export interface Slice {
  readonly cpuSeconds: number;
  readonly requests: number;
}

export interface Interval {
  readonly value: number;
  readonly low: number;
  readonly high: number;
}

const RESAMPLES = 4_000;
const CONFIDENCE = 0.95;

export function microsecondsPerRequest(slices: readonly Slice[]): number {
  let cpuSeconds = 0;
  let requests = 0;
  for (const slice of slices) {
    cpuSeconds += slice.cpuSeconds;
    requests += slice.requests;
  }
  return (cpuSeconds / requests) * 1e6;
}

/**
 * CPU per request of `ours` over that of `theirs`. Rotations are drawn whole, both tools' slices together, because
 * neighbours in time share the state of the machine.
 */
export function ratio(ours: readonly Slice[], theirs: readonly Slice[], random: Random): Interval {
  const rotations = Math.min(ours.length, theirs.length);
  const values: number[] = [];
  for (let resample = 0; resample < RESAMPLES; resample++) {
    const a: Slice[] = [];
    const b: Slice[] = [];
    for (let draw = 0; draw < rotations; draw++) {
      const index = random.below(rotations);
      const mine = ours[index];
      const other = theirs[index];
      if (mine === undefined || other === undefined) continue;
      a.push(mine);
      b.push(other);
    }
    values.push(microsecondsPerRequest(a) / microsecondsPerRequest(b));
  }
  values.sort((x, y) => x - y);
  const at = (share: number): number =>
    values[Math.floor(share * (values.length - 1))] ?? Number.NaN;
  return {
    value: microsecondsPerRequest(ours) / microsecondsPerRequest(theirs),
    low: at((1 - CONFIDENCE) / 2),
    high: at((1 + CONFIDENCE) / 2),
  };
}
