/** Latencies of a summary as cells of our histogram, to be added, taken from each other and asked for figures. */

import { QUANTILES } from "../core/run/results/figures.ts";
import type { Distribution, HistogramSummary } from "../core/run/results/model.ts";
import { cellLow, cellOf, cellWidth } from "../core/run/stats/histogram.ts";
import { SparseCells } from "../core/run/stats/sparse-cells.ts";

export const NO_CELLS = SparseCells.EMPTY;

/** Several histograms of three digits as one. */
export function cellsOf(histograms: readonly HistogramSummary[]): SparseCells {
  return plus(
    histograms.map(({ count, upToMs }) =>
      SparseCells.of(
        Uint16Array.from(upToMs, (edge) => cellOf(Math.round(edge * 1_000))),
        count,
      ),
    ),
  );
}

export function plus(all: readonly SparseCells[]): SparseCells {
  return SparseCells.sum(all);
}

/** What is in `all` and not in `part`. */
export function minus(all: SparseCells, part: SparseCells): SparseCells {
  if (part.size === 0) return all;
  const [allCounts, partCells, partCounts] = [all.counts(), part.cells(), part.counts()];
  const cells: number[] = [];
  const counts: number[] = [];
  let at = 0;
  for (const [here, cell] of all.cells().entries()) {
    while ((partCells[at] ?? Number.POSITIVE_INFINITY) < cell) at++;
    const less = partCells[at] === cell ? (partCounts[at] ?? 0) : 0;
    const left = (allCounts[here] ?? 0) - less;
    if (left <= 0) continue;
    cells.push(cell);
    counts.push(left);
  }
  return SparseCells.of(cells, counts);
}

/** Milliseconds; extremes to the width of a cell. */
export function figuresOfCells(sparse: SparseCells, sumMs: number): Distribution {
  const count = sparse.total;
  const ms = (fraction: number): number => Math.round(sparse.quantile(fraction) ?? 0) / 1_000;
  const cells = sparse.cells();
  const [first, last] = [cells[0], cells.at(-1)];
  return {
    count,
    min: first === undefined ? 0 : cellLow(first) / 1_000,
    mean: count === 0 ? 0 : sumMs / count,
    p50: ms(QUANTILES.p50),
    p75: ms(QUANTILES.p75),
    p90: ms(QUANTILES.p90),
    p95: ms(QUANTILES.p95),
    p99: ms(QUANTILES.p99),
    p99_9: ms(QUANTILES.p99_9),
    p99_99: ms(QUANTILES.p99_99),
    max: last === undefined ? 0 : (cellLow(last) + cellWidth(last) - 1) / 1_000,
  };
}
