/**
 * Latencies as an exponential histogram: bucket i holds values in (base^(i-1), base^i] seconds with base
 * 2^(2^-scale). Prometheus calls it native, OpenTelemetry exponential (there it begins one index lower). The
 * scale of 4 makes buckets 4.4 % wide; cells of our histogram are 0.1 %, so a value is at most one bucket off.
 */

import { cellMiddle } from "../../core/run/stats/histogram.ts";
import type { SparseCells } from "../../core/run/stats/sparse-cells.ts";

export const EXPONENTIAL_SCALE = 4;
/** Values that are no longer than this, in seconds, are counted as zero: shorter than a clock tells. */
export const ZERO_THRESHOLD_SECONDS = 1e-7;

const PER_OCTAVE = 2 ** EXPONENTIAL_SCALE;
const MICROS = 1e-6;

export interface ExponentialHistogram {
  readonly count: number;
  readonly zeroCount: number;
  /** Ascending, with Prometheus's numbers; buckets without values are left out. */
  readonly indexes: readonly number[];
  readonly counts: readonly number[];
}

export function exponentialOf(sparse: SparseCells): ExponentialHistogram {
  const byCell = sparse.counts();
  const buckets = new Map<number, number>();
  let zeroCount = 0;
  for (const [at, cell] of sparse.cells().entries()) {
    const seconds = cellMiddle(cell) * MICROS;
    const count = byCell[at] ?? 0;
    if (seconds <= ZERO_THRESHOLD_SECONDS) {
      zeroCount += count;
      continue;
    }
    const index = Math.ceil(Math.log2(seconds) * PER_OCTAVE);
    buckets.set(index, (buckets.get(index) ?? 0) + count);
  }
  const indexes = [...buckets.keys()].sort((a, b) => a - b);
  const counts = indexes.map((at) => buckets.get(at) ?? 0);
  return { count: sparse.total, zeroCount, indexes, counts };
}
