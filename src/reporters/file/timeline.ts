/**
 * Series of a summary as charts need them: windows evenly spaced, with nothing where nothing was
 * measured, and the counts of several steps added up. Percentiles are never added or averaged.
 */

import type { Series } from "../../core/load/results/model.ts";

export interface Timeline {
  readonly windowMs: number;
  readonly atSeconds: readonly number[];
  /** Finished per second, failed ones included. */
  readonly ratePerSecond: readonly number[];
  readonly failedPerSecond: readonly number[];
}

export interface LatencyTimeline extends Timeline {
  readonly p50: readonly (number | null)[];
  readonly p95: readonly (number | null)[];
  readonly p99: readonly (number | null)[];
}

/** Cap on windows, however far apart two entries of a damaged series lie. */
const WINDOWS_MAX = 20_000;

/** One step over time. */
export function timelineOf(series: Series): LatencyTimeline {
  const grid = gridOf([series]);
  const perWindow = 1_000 / grid.windowMs;
  const at = new Map(series.atSeconds.map((seconds, index) => [grid.slot(seconds), index]));
  const pick = <Value>(values: readonly Value[], none: Value): Value[] =>
    grid.atSeconds.map((_, slot) => values[at.get(slot) ?? -1] ?? none);
  return {
    windowMs: grid.windowMs,
    atSeconds: grid.atSeconds,
    ratePerSecond: pick(series.requests, 0).map((count) => count * perWindow),
    failedPerSecond: pick(series.failed, 0).map((count) => count * perWindow),
    p50: pick<number | null>(series.p50, null),
    p95: pick<number | null>(series.p95, null),
    p99: pick<number | null>(series.p99, null),
  };
}

/** Width of windows in charts: a shorter one makes a request rate look like a comb. */
export const CHART_WINDOW_MS = 1_000;

/** Several steps together, on the widest of their windows or `windowMsMin`, up to the end of the measured time. */
export function sumTimelines(whole: readonly Series[], windowMsMin = 1): Timeline {
  const all = whole.map(measuredPart);
  const grid = gridOf(all, windowMsMin);
  const requests = new Array<number>(grid.atSeconds.length).fill(0);
  const failed = new Array<number>(grid.atSeconds.length).fill(0);
  for (const series of all) {
    series.atSeconds.forEach((seconds, index) => {
      const slot = grid.slot(seconds);
      requests[slot] = (requests[slot] ?? 0) + (series.requests[index] ?? 0);
      failed[slot] = (failed[slot] ?? 0) + (series.failed[index] ?? 0);
    });
  }
  const perWindow = 1_000 / grid.windowMs;
  return {
    windowMs: grid.windowMs,
    atSeconds: grid.atSeconds,
    ratePerSecond: requests.map((count) => count * perWindow),
    failedPerSecond: failed.map((count) => count * perWindow),
  };
}

/** Failures per second by kind, of several steps together, at the windows of their timeline. */
export function sumErrors(all: readonly Series[], timeline: Timeline): Map<string, number[]> {
  const kinds = new Map<string, number[]>();
  const start = timeline.atSeconds[0] ?? 0;
  const perWindow = 1_000 / timeline.windowMs;
  for (const { atSeconds, errors = {} } of all) {
    for (const [kind, counts] of Object.entries(errors)) {
      const sums = kinds.get(kind) ?? new Array<number>(timeline.atSeconds.length).fill(0);
      kinds.set(kind, sums);
      counts.forEach((count, index) => {
        const slot = slotOf(atSeconds[index] ?? 0, start, timeline.windowMs);
        if (slot < sums.length) sums[slot] = (sums[slot] ?? 0) + count * perWindow;
      });
    }
  }
  return kinds;
}

/**
 * Drops windows after the measured time. Calls that finished in the graceful stop have latencies and are in no rate:
 * the first window of them alone, and all after it, would draw a load that falls to nothing. A stall before them, in
 * which nothing finished, stays.
 */
function measuredPart(series: Series): Series {
  const { atSeconds, p50, requests } = series;
  const last = atSeconds.findLastIndex((_, at) => (requests[at] ?? 0) > 0);
  const stop = atSeconds.findIndex((_, at) => at > last && p50[at] != null);
  return stop === -1 ? series : { ...series, atSeconds: atSeconds.slice(0, stop) };
}

interface Grid {
  readonly windowMs: number;
  readonly atSeconds: readonly number[];
  slot(seconds: number): number;
}

function gridOf(all: readonly Series[], windowMsMin = 1): Grid {
  const filled = all.filter(({ atSeconds }) => atSeconds.length > 0);
  const windowMs = Math.max(windowMsMin, ...filled.map((series) => series.windowMs));
  const start = Math.min(...filled.map(({ atSeconds }) => atSeconds[0] ?? 0));
  const end = Math.max(...filled.map(({ atSeconds }) => atSeconds.at(-1) ?? 0));
  const count = filled.length === 0 ? 0 : Math.min(slotOf(end, start, windowMs) + 1, WINDOWS_MAX);
  return {
    windowMs,
    atSeconds: Array.from({ length: count }, (_, i) => round(start + (i * windowMs) / 1_000)),
    slot: (seconds) => slotOf(seconds, start, windowMs),
  };
}

/** The small share absorbs rounding of decimal seconds. */
function slotOf(seconds: number, start: number, windowMs: number): number {
  return Math.floor(((seconds - start) * 1_000) / windowMs + 1e-6);
}

function round(seconds: number): number {
  return Math.round(seconds * 1e6) / 1e6;
}
