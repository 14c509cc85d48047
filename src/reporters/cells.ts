/** Latencies of a summary as cells of our histogram, which can be merged, subtracted and queried for percentiles. */

import { QUANTILES } from "../core/load/results/figures.ts";
import type { Distribution, HistogramSummary } from "../core/load/results/model.ts";
import { cellHigh, cellLow, cellOf } from "../core/load/stats/histogram.ts";
import { SparseCells } from "../core/load/stats/sparse-cells.ts";

/** Merges several histograms of three significant digits into one. */
export function cellsOf(histograms: readonly HistogramSummary[]): SparseCells {
  return SparseCells.sum(
    histograms.map(({ count, upToMs }) =>
      SparseCells.of(
        Uint16Array.from(upToMs, (edge) => cellOf(Math.round(edge * 1_000))),
        count,
      ),
    ),
  );
}

const FRACTIONS = Object.values(QUANTILES);

/** Milliseconds; extremes to the width of a cell. */
export function figuresOfCells(sparse: SparseCells, sumMs: number): Distribution {
  const count = sparse.total;
  const [p50 = 0, p75 = 0, p90 = 0, p95 = 0, p99 = 0, p99_9 = 0, p99_99 = 0] = sparse
    .quantiles(FRACTIONS)
    .map((micros) => Math.round(micros) / 1_000);
  const { first, last } = sparse;
  return {
    count,
    min: first === null ? 0 : cellLow(first) / 1_000,
    mean: count === 0 ? 0 : sumMs / count,
    ...{ p50, p75, p90, p95, p99, p99_9, p99_99 },
    max: last === null ? 0 : cellHigh(last) / 1_000,
  };
}
