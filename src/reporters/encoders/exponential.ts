/**
 * Latencies as an exponential histogram: bucket i holds values in (base^(i-1), base^i] seconds with base
 * 2^(2^-scale). Prometheus calls it native, OpenTelemetry exponential (there it begins one index lower). The
 * scale of 4 makes buckets 4.4 % wide; cells of our histogram are 0.1 %, so a value is at most one bucket off.
 */

import { CELLS_MAX, cellMiddle } from "../../core/load/stats/histogram.ts";
import type { SparseCells } from "../../core/load/stats/sparse-cells.ts";

export const EXPONENTIAL_SCALE = 4;
/** Values up to this many seconds count as zero: shorter than a clock resolves. */
export const ZERO_THRESHOLD_SECONDS = 1e-7;

const PER_OCTAVE = 2 ** EXPONENTIAL_SCALE;
const MICROS = 1e-6;
/** Marks cells below the zero threshold; real buckets cover 2^-24 to 2^20 seconds. */
const ZERO = -0x8000;

export interface ExponentialHistogram {
  readonly count: number;
  readonly zeroCount: number;
  /** Ascending, with Prometheus's numbering; empty buckets are left out. */
  readonly indexes: readonly number[];
  readonly counts: readonly number[];
}

/** Bucket of each cell; both ascend together. */
const BUCKETS = Int16Array.from({ length: CELLS_MAX }, (_, cell) => {
  const seconds = cellMiddle(cell) * MICROS;
  return seconds <= ZERO_THRESHOLD_SECONDS ? ZERO : Math.ceil(Math.log2(seconds) * PER_OCTAVE);
});

/** Shared by the back-ends that send the same histogram. */
const made = new WeakMap<SparseCells, ExponentialHistogram>();

export function exponentialOf(sparse: SparseCells): ExponentialHistogram {
  const known = made.get(sparse);
  if (known !== undefined) return known;
  const { counts, groups: indexes } = sparse.countsBy(BUCKETS);
  // The zero bucket comes first.
  const zeros = indexes[0] === ZERO ? 1 : 0;
  const histogram = {
    count: sparse.total,
    zeroCount: zeros === 0 ? 0 : (counts[0] ?? 0),
    indexes: indexes.slice(zeros),
    counts: counts.slice(zeros),
  };
  made.set(sparse, histogram);
  return histogram;
}
