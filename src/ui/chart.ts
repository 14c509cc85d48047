/**
 * The two charts: requests per second as a filled area of eighth blocks, with failures in a strip below it and the
 * target as a dashed line; latency as braille lines on a logarithmic axis, four dots high and two wide per cell. Both
 * share the time axis below and the labels at the left.
 */

import { padded, textWidth } from "../core/base/terminal-text.ts";
import { asTick, formatCompactNumber, formatMs } from "../core/load/results/format.ts";
import type { Series } from "../core/load/results/model.ts";
import { linearTicks, logTicks } from "../core/load/results/ticks.ts";
import type { Grid, Rect } from "./grid.ts";
import { GAP, logRange, peakColumns, rateColumns } from "./series.ts";
import { Style, type StyleId } from "./style.ts";

/** Fits "1.23 ms" and the axis. */
const LABEL_WIDTH = 8;
const TIME_TICK_CELLS = 10;
export const EIGHTHS = [0x20, 0x2581, 0x2582, 0x2583, 0x2584, 0x2585, 0x2586, 0x2587, 0x2588];
const DASH = 0x254c;
const AXIS = 0x2502;
const AXIS_TICK = 0x2524;

interface TimeAxis {
  readonly untilSeconds: number;
  readonly nowSeconds: number;
}

export interface TargetPoint {
  readonly atSeconds: number;
  readonly perSecond: number;
}

interface RateAxis extends TimeAxis {
  /** Oldest first; each applies until the next. */
  readonly targets: readonly TargetPoint[];
}

/** Draws the rate area; below it a strip of failures when there are any, and the time labels. */
export function drawRateChart(
  grid: Grid,
  area: Rect,
  all: readonly Series[],
  axis: RateAxis,
): void {
  const whole = plotOf(area);
  if (whole === null) return;
  const { requests, failed } = rateColumns(all, whole.width, axis.untilSeconds, axis.nowSeconds);
  const failing = highest(failed) > 0 && whole.height >= STRIP_HEIGHT_MIN;
  const plot = failing ? { ...whole, height: whole.height - 1 } : whole;
  const most = Math.max(highest(requests), ...axis.targets.map(({ perSecond }) => perSecond || 0));
  drawTimeLabels(grid, whole, axis.untilSeconds);
  // Without measurements there is no scale.
  if (most === 0) {
    drawLabels(grid, plot, []);
    return;
  }
  const ticks = linearTicks(most, plot.height >= 8 ? 4 : plot.height >= 3 ? 2 : 1);
  const top = ticks.at(-1) ?? 1;
  const targets = targetColumns(axis, plot.width);
  for (let column = 0; column < plot.width; column++) {
    drawTarget(grid, plot, column, (targets[column] ?? GAP) / top);
    drawColumn(grid, plot, column, (requests[column] ?? 0) / top);
  }
  drawLabels(
    grid,
    plot,
    ticks.map((tick) => ({ share: tick / top, text: formatCompactNumber(tick) })),
  );
  if (failing) drawFailedStrip(grid, { ...whole, y: plot.y + plot.height, height: 1 }, failed);
}

/** Fewer rows leave no room for a strip of failures. */
const STRIP_HEIGHT_MIN = 3;

function highest(values: Float64Array): number {
  let most = 0;
  for (const value of values) if (value > most) most = value;
  return most;
}

/**
 * Failures on a scale of their own, with their peak as a number: on the scale of all requests one in a hundred is
 * either invisible or, in whole cells, drawn many times too large.
 */
function drawFailedStrip(grid: Grid, strip: Rect, failed: Float64Array): void {
  const most = highest(failed);
  const label = padded(`✗ ${formatCompactNumber(most)}`, LABEL_WIDTH - 1, "right");
  grid.text(strip.x - LABEL_WIDTH, strip.y, label, Style.failed);
  grid.set(strip.x - 1, strip.y, AXIS, Style.rule);
  for (let column = 0; column < strip.width; column++) {
    const value = failed[column] ?? GAP;
    if (!(value > 0)) continue;
    const eighths = Math.max(1, Math.round((value / most) * 8));
    grid.set(strip.x + column, strip.y, EIGHTHS[eighths] ?? 0x2588, Style.failed);
  }
}

export function plotOf({ x, y, width, height }: Rect): Rect | null {
  if (width < LABEL_WIDTH + 4 || height < 2) return null;
  return { x: x + LABEL_WIDTH, y, width: width - LABEL_WIDTH, height: height - 1 };
}

/** Target at each column's middle; GAP in the future and where there was none. */
function targetColumns(
  { targets, untilSeconds, nowSeconds }: RateAxis,
  columns: number,
): Float64Array {
  const values = new Float64Array(columns).fill(GAP);
  let next = 0;
  let current = GAP;
  for (let column = 0; column < columns; column++) {
    const at = ((column + 0.5) / columns) * untilSeconds;
    if (at > nowSeconds) break;
    for (
      let point = targets[next];
      point !== undefined && point.atSeconds <= at;
      point = targets[next]
    ) {
      current = point.perSecond;
      next += 1;
    }
    values[column] = current;
  }
  return values;
}

function drawTarget(grid: Grid, plot: Rect, column: number, share: number): void {
  if (!(share > 0)) return;
  const row = Math.min(plot.height - 1, Math.floor(share * plot.height));
  grid.set(plot.x + column, plot.y + plot.height - 1 - row, DASH, Style.target);
}

function drawColumn(grid: Grid, plot: Rect, column: number, filled: number): void {
  if (!(filled > 0)) return;
  const eighths = Math.max(1, Math.round(Math.min(1, filled) * plot.height * 8));
  for (let row = 0; row * 8 < eighths; row++) {
    const code = EIGHTHS[Math.min(8, eighths - row * 8)] ?? 0x2588;
    const style = (row + 1) * 8 < eighths ? Style.rateFill : Style.rate;
    grid.set(plot.x + column, plot.y + plot.height - 1 - row, code, style);
  }
}

interface AxisLabel {
  readonly share: number;
  readonly text: string;
}

export function drawLabels(grid: Grid, plot: Rect, labels: readonly AxisLabel[]): void {
  const axis = plot.x - 1;
  for (let row = 0; row < plot.height; row++) grid.set(axis, plot.y + row, AXIS, Style.rule);
  let lastRow = Infinity;
  for (const { share, text } of labels) {
    const row = Math.round((1 - share) * (plot.height - 1));
    if (row === lastRow) continue;
    lastRow = row;
    grid.set(axis, plot.y + row, AXIS_TICK, Style.rule);
    grid.text(
      plot.x - LABEL_WIDTH,
      plot.y + row,
      padded(text, LABEL_WIDTH - 1, "right"),
      Style.dim,
    );
  }
}

const TIME_STEPS = [
  1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400, 43_200,
];

function drawTimeLabels(grid: Grid, plot: Rect, untilSeconds: number): void {
  const perCell = untilSeconds / plot.width;
  const wanted = perCell * TIME_TICK_CELLS;
  const step =
    TIME_STEPS.find((seconds) => seconds >= wanted) ?? Math.ceil(wanted / 86_400) * 86_400;
  const row = plot.y + plot.height;
  for (let seconds = 0; seconds < untilSeconds; seconds += step) {
    const column = Math.round(seconds / perCell);
    const label = `╵${timeLabel(seconds)}`;
    if (column + textWidth(label) > plot.width) break;
    grid.text(plot.x + column, row, label, Style.dim);
  }
}

function timeLabel(seconds: number): string {
  if (seconds < 60) return `${seconds}s`;
  const parts = [
    [Math.floor(seconds / 3_600), "h"],
    [Math.floor((seconds % 3_600) / 60), "m"],
    [seconds % 60, "s"],
  ] as const;
  return parts
    .filter(([amount]) => amount > 0)
    .map(([amount, unit]) => `${amount}${unit}`)
    .join("");
}

/** p50, p95 and p99 of one step over time, the latter two where there are enough values. */
export function drawLatencyChart(grid: Grid, area: Rect, series: Series, axis: TimeAxis): void {
  const plot = plotOf(area);
  if (plot === null) return;
  const dots = plot.width * 2;
  const lines = [
    { values: peakColumns(series, series.p50, dots, axis.untilSeconds), style: Style.p50 },
    {
      values: peakColumns(series, series.steady?.p95 ?? series.p95, dots, axis.untilSeconds),
      style: Style.p95,
    },
    {
      values: peakColumns(series, series.steady?.p99 ?? series.p99, dots, axis.untilSeconds),
      style: Style.p99,
    },
  ];
  let low = Infinity;
  let high = 0;
  for (const { values } of lines) {
    for (const value of values) {
      if (value > high) high = value;
      if (value < low) low = value;
    }
  }
  drawTimeLabels(grid, plot, axis.untilSeconds);
  if (high === 0 && low === Infinity) {
    drawLabels(grid, plot, []);
    return;
  }
  const [from, to] = logRange(low, high);
  const scale = (value: number): number =>
    Math.log(Math.max(value, from) / from) / Math.log(to / from);
  const canvas = new Braille(plot);
  for (const { values, style } of lines) canvas.line(values, scale, style);
  canvas.drawOn(grid);
  const ticks = logTicks(from, to, Math.max(2, Math.floor(plot.height / 2)));
  drawLabels(
    grid,
    plot,
    ticks.map((tick) => ({ share: scale(tick), text: asTick(formatMs(tick)) })),
  );
}

/** Dot bits of a braille cell, by row, for its left and right half. */
const DOTS = [
  [0x01, 0x08],
  [0x02, 0x10],
  [0x04, 0x20],
  [0x40, 0x80],
] as const;
const BRAILLE = 0x2800;

class Braille {
  readonly #plot: Rect;
  readonly #masks: Uint8Array;
  readonly #styles: Uint8Array;

  constructor(plot: Rect) {
    this.#plot = plot;
    this.#masks = new Uint8Array(plot.width * plot.height);
    this.#styles = new Uint8Array(plot.width * plot.height);
  }

  /** Draws a connected line; steep moves are filled so that a spike is a stroke and not a stray dot. */
  line(values: Float64Array, scale: (value: number) => number, style: StyleId): void {
    const top = this.#plot.height * 4 - 1;
    let previous = -1;
    for (let column = 0; column < values.length; column++) {
      const value = values[column] ?? Number.NaN;
      if (Number.isNaN(value)) {
        previous = -1;
        continue;
      }
      const row = top - Math.round(Math.min(1, Math.max(0, scale(value))) * top);
      const start = previous === -1 ? row : previous + Math.sign(row - previous);
      for (let dot = Math.min(start, row); dot <= Math.max(start, row); dot++) {
        this.#dot(column, dot, style);
      }
      previous = row;
    }
  }

  #dot(column: number, row: number, style: StyleId): void {
    const cell = (row >> 2) * this.#plot.width + (column >> 1);
    this.#masks[cell] = (this.#masks[cell] ?? 0) | (DOTS[row & 3]?.[column & 1] ?? 0);
    this.#styles[cell] = style;
  }

  drawOn(grid: Grid): void {
    const { x, y, width } = this.#plot;
    for (let cell = 0; cell < this.#masks.length; cell++) {
      const mask = this.#masks[cell] ?? 0;
      if (mask === 0) continue;
      const row = Math.floor(cell / width);
      grid.set(x + (cell % width), y + row, BRAILLE + mask, this.#styles[cell] ?? Style.text);
    }
  }
}

/** Without the full block, so that lines of neighbouring rows stay separate. */
const SPARKS = [0x2581, 0x2582, 0x2583, 0x2584, 0x2585, 0x2586, 0x2587];

/** A line of bars, scaled to its own highest value. */
export function drawSpark(grid: Grid, area: Rect, values: Float64Array, style: StyleId): void {
  let most = 0;
  for (const value of values) if (value > most) most = value;
  if (most === 0) return;
  for (let column = 0; column < Math.min(area.width, values.length); column++) {
    const value = values[column] ?? Number.NaN;
    if (!(value > 0)) continue;
    const level = Math.min(6, Math.floor((value / most) * 7));
    grid.set(area.x + column, area.y, SPARKS[level] ?? 0x2581, style);
  }
}
