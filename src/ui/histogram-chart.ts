/**
 * Latency histogram of one step: bars over a logarithmic axis, coloured up to p50, up to p95 and beyond. Two humps, a
 * long tail or a wall at a timeout are visible here and in no percentile.
 */

import { textWidth } from "../core/base/terminal-text.ts";
import { asTick, formatMs, formatPercent } from "../core/load/results/format.ts";
import type { StepSummary } from "../core/load/results/model.ts";
import { logTicks } from "../core/load/results/ticks.ts";
import { drawLabels, EIGHTHS, plotOf } from "./chart.ts";
import type { Grid, Rect } from "./grid.ts";
import { logRange } from "./series.ts";
import { Style, type StyleId } from "./style.ts";

export function drawHistogramChart(grid: Grid, area: Rect, step: StepSummary): void {
  const plot = plotOf(area);
  const range = plot === null ? null : occupied(step);
  if (plot === null || range === null) return;
  const [low, high] = range;
  const position = (ms: number): number => Math.log(Math.max(ms, low) / low) / Math.log(high / low);
  const bins = binned(step, plot.width, position);
  let most = 0;
  let total = 0;
  for (const count of bins) {
    most = Math.max(most, count);
    total += count;
  }
  if (!(most > 0)) return;
  for (let column = 0; column < plot.width; column++) {
    const middle = low * (high / low) ** ((column + 0.5) / plot.width);
    drawBin(grid, plot, column, { share: (bins[column] ?? 0) / most, style: zone(step, middle) });
  }
  drawLabels(grid, plot, [
    { share: 0, text: "0" },
    { share: 1, text: formatPercent(most / total) },
  ]);
  drawTicks(grid, plot, range, position);
}

/** Ends of the axis: the occupied range. */
function occupied({ histogram }: StepSummary): readonly [number, number] | null {
  let low = Infinity;
  let high = 0;
  histogram.count.forEach((count, index) => {
    const upTo = histogram.upToMs[index];
    if (upTo === undefined || !(count > 0)) return;
    low = Math.min(low, upTo);
    high = Math.max(high, upTo);
  });
  return low > high ? null : logRange(low, high);
}

/** Counts per column; a bucket wider than a column is spread over those it covers. */
function binned(
  { histogram }: StepSummary,
  columns: number,
  position: (ms: number) => number,
): Float64Array {
  const bins = new Float64Array(columns);
  let from = 0;
  histogram.count.forEach((count, index) => {
    const to = Math.min(1, Math.max(0, position(histogram.upToMs[index] ?? 0))) * columns;
    const first = Math.min(columns - 1, Math.floor(from));
    const last = Math.min(columns - 1, Math.max(first, Math.ceil(to) - 1));
    for (let column = first; column <= last && count > 0; column++) {
      const overlap = Math.min(to, column + 1) - Math.max(from, column);
      const share = first === last ? 1 : Math.max(0, overlap) / (to - from);
      bins[column] = (bins[column] ?? 0) + count * share;
    }
    from = Math.max(from, to);
  });
  return bins;
}

function zone({ latencyMs }: StepSummary, ms: number): StyleId {
  if (ms <= latencyMs.p50) return Style.p50;
  return ms <= latencyMs.p95 ? Style.p95 : Style.p99;
}

interface Bin {
  readonly share: number;
  readonly style: StyleId;
}

function drawBin(grid: Grid, plot: Rect, column: number, { share, style }: Bin): void {
  if (!(share > 0)) return;
  // A single slow answer must be visible: the smallest bar is one eighth.
  const eighths = Math.max(1, Math.round(share * plot.height * 8));
  for (let row = 0; row * 8 < eighths; row++) {
    const code = EIGHTHS[Math.min(8, eighths - row * 8)] ?? 0x2588;
    grid.set(plot.x + column, plot.y + plot.height - 1 - row, code, style);
  }
}

const TICK_CELLS = 8;

function drawTicks(
  grid: Grid,
  plot: Rect,
  [low, high]: readonly [number, number],
  position: (ms: number) => number,
): void {
  let free = 0;
  for (const tick of logTicks(low, high, Math.floor(plot.width / TICK_CELLS))) {
    const column = Math.round(position(tick) * plot.width);
    const label = `╵${asTick(formatMs(tick))}`;
    if (column < free || column + textWidth(label) > plot.width) continue;
    grid.text(plot.x + column, plot.y + plot.height, label, Style.dim);
    free = column + textWidth(label) + 1;
  }
}
