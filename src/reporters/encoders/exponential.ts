/**
 * Latencies as an exponential histogram: bucket i holds values in (base^(i-1), base^i] seconds with base
 * 2^(2^-scale). Prometheus calls it native, OpenTelemetry exponential (there it begins one index lower). The
 * scale of 4 makes buckets 4.4 % wide; cells of our histogram are 0.1 %, so a value is at most one bucket off.
 */

import { CELLS_MAX, cellMiddle } from "../../core/run/stats/histogram.ts";
import type { SparseCells } from "../../core/run/stats/sparse-cells.ts";

export const EXPONENTIAL_SCALE = 4;
/** Values that are no longer than this, in seconds, are counted as zero: shorter than a clock tells. */
export const ZERO_THRESHOLD_SECONDS = 1e-7;

const PER_OCTAVE = 2 ** EXPONENTIAL_SCALE;
const MICROS = 1e-6;
/** No bucket has these numbers: times are from 2^-24 to 2^20 seconds. */
const UNKNOWN = 0x7fff;
const ZERO = -0x8000;

export interface ExponentialHistogram {
  readonly count: number;
  readonly zeroCount: number;
  /** Ascending, with Prometheus's numbers; buckets without values are left out. */
  readonly indexes: readonly number[];
  readonly counts: readonly number[];
}

/** The bucket of each cell, worked out when it is first asked for. */
const BUCKETS = new Int16Array(CELLS_MAX).fill(UNKNOWN);

function bucketOf(cell: number): number {
  const known = BUCKETS[cell] as number;
  if (known !== UNKNOWN) return known;
  const seconds = cellMiddle(cell) * MICROS;
  const isZero = seconds <= ZERO_THRESHOLD_SECONDS;
  const bucket = isZero ? ZERO : Math.ceil(Math.log2(seconds) * PER_OCTAVE);
  BUCKETS[cell] = bucket;
  return bucket;
}

/** Several back-ends send the same histogram. */
const made = new WeakMap<SparseCells, ExponentialHistogram>();

export function exponentialOf(sparse: SparseCells): ExponentialHistogram {
  const known = made.get(sparse);
  if (known !== undefined) return known;
  const indexes: number[] = [];
  const counts: number[] = [];
  let zeroCount = 0;
  let last = ZERO;
  // Buckets ascend with cells.
  sparse.forEach((cell, count) => {
    const index = bucketOf(cell);
    if (index === ZERO) zeroCount += count;
    else if (index === last) counts[counts.length - 1] = (counts[counts.length - 1] ?? 0) + count;
    else {
      indexes.push(index);
      counts.push(count);
      last = index;
    }
  });
  const histogram = { count: sparse.total, zeroCount, indexes, counts };
  made.set(sparse, histogram);
  return histogram;
}
