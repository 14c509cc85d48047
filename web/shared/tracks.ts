/**
 * Latencies over time as the charts need them: one track per step, each window with its whole histogram. Metrics of any
 * stretch are its windows merged, in the cells and by the rank rule of `core/load/stats`; percentiles are never
 * averaged.
 */

import type {
  Distribution,
  HistogramSummary,
  LatencyWindows,
} from "../../src/core/load/results/model.ts";
import { distribution } from "../../src/core/load/results/summarise.ts";
import {
  cellLow,
  cellMiddle,
  cellOf,
  cellWidth,
  Histogram,
} from "../../src/core/load/stats/histogram.ts";
import { SparseCells } from "../../src/core/load/stats/sparse-cells.ts";
import { type Percentile, steadyPercentile } from "../../src/core/load/stats/steady-percentiles.ts";

/** Seconds of the run, from and to. */
export type Range = readonly [number, number];

export interface Track {
  readonly windowSeconds: number;
  /** Start of each non-empty window, ascending. */
  readonly starts: readonly number[];
  readonly latency: readonly SparseCells[];
  /** Latencies of failures. */
  readonly failures: readonly SparseCells[];
}

const EMPTY_TRACK: Track = { windowSeconds: 1, starts: [], latency: [], failures: [] };

export function trackOf(windows: LatencyWindows | undefined): Track {
  if (windows === undefined) return EMPTY_TRACK;
  const { atSeconds, failures = [], histograms, windowMs } = windows;
  return {
    windowSeconds: windowMs / 1_000,
    starts: atSeconds,
    latency: histograms.map(cellsOf),
    failures: atSeconds.map((_, at) => cellsOf(failures[at])),
  };
}

/** Windows that begin before a time. */
export function trackUntil(track: Track, seconds: number): Track {
  const count = track.starts.filter((start) => start < seconds - 1e-6).length;
  return count === 0 || count === track.starts.length
    ? track
    : {
        ...track,
        starts: track.starts.slice(0, count),
        latency: track.latency.slice(0, count),
        failures: track.failures.slice(0, count),
      };
}

function cellsOf(histogram: HistogramSummary | undefined): SparseCells {
  if (histogram === undefined || histogram.count.length === 0) return SparseCells.EMPTY;
  return SparseCells.of(
    histogram.upToMs.map((edge) => cellOf(Math.round(edge * 1_000))),
    histogram.count,
  );
}

/** Merges several tracks, on the widest of their windows. */
export function sumTracks(tracks: readonly Track[]): Track {
  const filled = tracks.filter(({ starts }) => starts.length > 0);
  if (filled.length <= 1) return filled[0] ?? EMPTY_TRACK;
  const windowSeconds = Math.max(...filled.map((track) => track.windowSeconds));
  const origin = Math.min(...filled.map(({ starts }) => starts[0] ?? 0));
  const slots = new Map<number, { latency: SparseCells[]; failures: SparseCells[] }>();
  for (const { failures, latency, starts } of filled) {
    starts.forEach((start, at) => {
      // The small share absorbs rounding of decimal seconds.
      const slot = Math.floor((start - origin) / windowSeconds + 1e-6);
      const held = slots.get(slot) ?? { latency: [], failures: [] };
      held.latency.push(latency[at] ?? SparseCells.EMPTY);
      held.failures.push(failures[at] ?? SparseCells.EMPTY);
      slots.set(slot, held);
    });
  }
  const ordered = [...slots].sort(([a], [b]) => a - b);
  return {
    windowSeconds,
    starts: ordered.map(([slot]) => Math.round((origin + slot * windowSeconds) * 1e6) / 1e6),
    latency: ordered.map(([, held]) => SparseCells.sum(held.latency)),
    failures: ordered.map(([, held]) => SparseCells.sum(held.failures)),
  };
}

/** Indices of the windows that begin in a stretch. */
function windowsIn({ starts }: Track, [from, to]: Range): readonly number[] {
  return starts.flatMap((start, at) => (start >= from - 1e-6 && start < to - 1e-6 ? [at] : []));
}

/** Aligns a stretch to the edges of its windows, so that its metrics are exact. */
export function snapRange({ starts, windowSeconds }: Track, [from, to]: Range): Range {
  const first = starts.findLast((start) => start <= from + 1e-6) ?? from;
  const last = starts.findLast((start) => start < to - 1e-6) ?? first;
  return [first, Math.max(first, last) + windowSeconds];
}

interface Stretch {
  readonly all: Distribution;
  readonly failed: Distribution;
}

/** Metrics of a stretch. Extremes and the mean are known to the width of a cell, 0.1 %. */
export function stretchOf(track: Track, range: Range): Stretch {
  const within = windowsIn(track, range);
  const sum = (cells: readonly SparseCells[]) =>
    distribution(histogramOf(SparseCells.sum(within.map((at) => cells[at] ?? SparseCells.EMPTY))));
  return { all: sum(track.latency), failed: sum(track.failures) };
}

/** Successes of a stretch by latency: up to each bound, then those beyond all; to the width of a cell. */
export function rangeCounts(
  track: Track,
  range: Range,
  boundsMs: readonly number[],
): readonly number[] {
  const counts = new Array<number>(boundsMs.length + 1).fill(0);
  const add = (sparse: SparseCells, sign: number) => {
    const found = sparse.counts();
    for (const [at, cell] of sparse.cells().entries()) {
      const ms = cellMiddle(cell) / 1_000;
      const beyond = boundsMs.findIndex((bound) => ms <= bound);
      const part = beyond < 0 ? boundsMs.length : beyond;
      counts[part] = (counts[part] ?? 0) + sign * (found[at] ?? 0);
    }
  };
  for (const at of windowsIn(track, range)) {
    add(track.latency[at] ?? SparseCells.EMPTY, 1);
    add(track.failures[at] ?? SparseCells.EMPTY, -1);
  }
  return counts;
}

function histogramOf(sparse: SparseCells): Histogram {
  const histogram = new Histogram();
  const [cells, counts] = [sparse.cells(), sparse.counts()];
  const [first, last] = [cells[0], cells.at(-1)];
  if (first === undefined || last === undefined) return histogram;
  histogram.addCells(cells, counts);
  let sum = 0;
  for (const [at, cell] of cells.entries()) sum += cellMiddle(cell) * (counts[at] ?? 0);
  histogram.addMoments(sum, cellLow(first), cellLow(last) + cellWidth(last) - 1);
  return histogram;
}

export const PERCENTILES = ["p50", "p95", "p99"] as const satisfies readonly Percentile[];

/** A percentile over time, one value per window, where there are enough values. */
export function percentileLine(track: Track, percentile: Percentile): (number | null)[] {
  const { latency, starts, windowSeconds } = track;
  return steadyPercentile(
    latency,
    percentile,
    (at) => (starts[at] ?? 0) - (starts[at - 1] ?? 0) < 1.5 * windowSeconds,
  );
}

/** Number of bands of the heat map per tenfold latency. */
const BANDS_PER_DECADE = 16;

export interface HeatMap {
  /** Lower edge of the lowest band, in milliseconds; bands are equally high on a logarithmic axis. */
  readonly lowMs: number;
  readonly bands: number;
  /** One column per window of the track: calls in each band, from the lowest. */
  readonly columns: readonly Float64Array[];
  readonly most: number;
}

export function bandEdgeMs({ lowMs }: Pick<HeatMap, "lowMs">, band: number): number {
  return lowMs * 10 ** (band / BANDS_PER_DECADE);
}

/** Every call of a window is in exactly one band of its column. */
export function heatMapOf({ latency }: Track): HeatMap {
  let [low, high] = [Number.POSITIVE_INFINITY, 0];
  for (const sparse of latency) {
    const cells = sparse.cells();
    low = Math.min(low, cellMiddle(cells[0] ?? 0));
    high = Math.max(high, cellMiddle(cells.at(-1) ?? 0));
  }
  const lowMs = Number.isFinite(low) ? Math.max(low, 1) / 1_000 : 0.001;
  const bandOf = (micros: number) =>
    Math.max(0, Math.floor(Math.log10(micros / 1_000 / lowMs) * BANDS_PER_DECADE + 1e-9));
  const bands = high > 0 ? bandOf(high) + 1 : 1;
  let most = 0;
  const columns = latency.map((sparse) => {
    const column = new Float64Array(bands);
    const counts = sparse.counts();
    for (const [at, cell] of sparse.cells().entries()) {
      const band = bandOf(Math.max(cellMiddle(cell), 1));
      column[band] = (column[band] ?? 0) + (counts[at] ?? 0);
      most = Math.max(most, column[band] ?? 0);
    }
    return column;
  });
  return { lowMs, bands, columns, most };
}
