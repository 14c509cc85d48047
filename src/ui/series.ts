/**
 * Converts windows over time to columns of a chart. A window is spread over the columns it overlaps, so folded (longer)
 * windows and narrow terminals both come out right. Rates are sums over steps; percentiles are never added up or
 * averaged: a column shows the highest window in it, of one step, so that peaks survive on a small screen.
 */

import type { Series } from "../core/load/results/model.ts";

/** No value in this column. */
export const GAP = Number.NaN;

interface RateColumns {
  readonly requests: Float64Array;
  readonly failed: Float64Array;
}

/** Requests and failures per second in each of `columns` equal parts of 0 … `untilSeconds`. */
export function rateColumns(
  all: readonly Series[],
  columns: number,
  untilSeconds: number,
  nowSeconds: number,
): RateColumns {
  const requests = new Float64Array(columns);
  const failed = new Float64Array(columns);
  let first = Infinity;
  let last = -Infinity;
  for (const series of all) {
    const length = completeWindows(series, nowSeconds);
    if (length === 0) continue;
    first = Math.min(first, series.atSeconds[0] ?? 0);
    last = Math.max(last, (series.atSeconds[length - 1] ?? 0) + series.windowMs / 1_000);
    spread(series, series.requests, length, requests, untilSeconds);
    spread(series, series.failed, length, failed, untilSeconds);
  }
  const width = untilSeconds / columns;
  for (let column = 0; column < columns; column++) {
    const covered = Math.min(last, (column + 1) * width) - Math.max(first, column * width);
    // Slivers would turn rounding into spikes.
    const known = covered > width * 0.05;
    requests[column] = known ? (requests[column] ?? 0) / covered : GAP;
    failed[column] = known ? (failed[column] ?? 0) / covered : GAP;
  }
  return { requests, failed };
}

/** The window that is still filling would look like a drop: it is skipped until it is complete. */
function completeWindows({ atSeconds, windowMs }: Series, nowSeconds: number): number {
  const length = atSeconds.length;
  const lastAt = atSeconds[length - 1];
  if (lastAt === undefined) return 0;
  return lastAt + windowMs / 1_000 > nowSeconds ? length - 1 : length;
}

function spread(
  { atSeconds, windowMs }: Series,
  values: readonly number[],
  length: number,
  into: Float64Array,
  untilSeconds: number,
): void {
  const width = untilSeconds / into.length;
  const span = windowMs / 1_000;
  for (let index = 0; index < length; index++) {
    const value = values[index] ?? 0;
    if (value === 0) continue;
    const start = atSeconds[index] ?? 0;
    const from = Math.max(0, Math.floor(start / width));
    const to = Math.min(into.length - 1, Math.ceil((start + span) / width) - 1);
    for (let column = from; column <= to; column++) {
      const overlap =
        Math.min(start + span, (column + 1) * width) - Math.max(start, column * width);
      if (overlap > 0) into[column] = (into[column] ?? 0) + value * (overlap / span);
    }
  }
}

/** The highest window per column; GAP where nothing was measured. */
export function peakColumns(
  series: Series,
  values: readonly (number | null)[],
  columns: number,
  untilSeconds: number,
): Float64Array {
  const peaks = new Float64Array(columns).fill(GAP);
  const width = untilSeconds / columns;
  const span = series.windowMs / 1_000;
  for (let index = 0; index < series.atSeconds.length; index++) {
    const value = values[index];
    if (value === null || value === undefined) continue;
    const start = series.atSeconds[index] ?? 0;
    const from = Math.max(0, Math.floor(start / width));
    const to = Math.min(columns - 1, Math.ceil((start + span) / width) - 1);
    for (let column = from; column <= to; column++) {
      const known = peaks[column] ?? GAP;
      if (!(known >= value)) peaks[column] = value;
    }
  }
  return peaks;
}

const SPANS = [10, 20, 30, 60, 90, 120, 180, 300, 600, 900, 1_200, 1_800, 2_700, 3_600, 7_200];
const HOURS_STEP = 7_200;

/** End of the time axis: a round number beyond the elapsed time, so that the picture stays still. */
export function timeSpan(elapsedSeconds: number, totalSeconds: number | null): number {
  const elapsed = Math.max(0, elapsedSeconds);
  const round =
    SPANS.find((span) => span >= elapsed) ?? Math.ceil(elapsed / HOURS_STEP) * HOURS_STEP;
  if (totalSeconds === null || totalSeconds < elapsed) return round;
  return Math.max(1, Math.min(round, totalSeconds));
}

/** Ends of a logarithmic axis on 1-2-5 numbers, at least one decade apart. */
export function logRange(low: number, high: number): readonly [number, number] {
  let from = stepDown(Math.min(LOG_MS_MAX, Math.max(low, LOG_MS_MIN)));
  let to = stepUp(Math.min(LOG_MS_MAX, Math.max(high, from)));
  for (let turn = 0; to / from < 9.99 && turn < 8; turn++) {
    if (turn % 2 === 0) to = stepUp(to * 1.01);
    else from = stepDown(from * 0.99);
  }
  return [from, to];
}

/** A microsecond: no measurement is shorter. */
const LOG_MS_MIN = 0.001;
/** Thirty years: no measurement is longer, and numbers stay far from infinity. */
const LOG_MS_MAX = 1e12;

function stepUp(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  for (const step of [1, 2, 5, 10]) if (step * power >= value * 0.999_999) return step * power;
  return value;
}

function stepDown(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  for (const step of [5, 2, 1]) if (step * power <= value * 1.000_001) return step * power;
  return value;
}
