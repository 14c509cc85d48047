/**
 * How far a figure of one run could have come out otherwise, judged from the run's own windows.
 *
 * Neighbouring windows resemble each other (a garbage collection, a stall, a slow minute), so they must not be counted
 * as if each were a measurement of its own. The autocorrelation of the windows tells how many of them say the same
 * thing, and so how many independent ones the run is worth:
 *
 *     ▁▂▂▁▁▂▇▇▆▁▁▂▁▁▂▂▁▁     18 windows, alike over about 3       worth 6
 *
 * Percentiles follow Woodruff (1952): what varies from window to window is the share of requests below the run's own
 * percentile, and the histogram of the whole run turns shares into milliseconds.
 */

import type { StepSummary } from "../../core/load/results/model.ts";
import { type Bucket, bucketsOf, quantileOf, shareAt } from "../file/quantiles.ts";
import { type LatencyTimeline, timelineOf } from "../file/timeline.ts";

/** Fewer windows do not show how long they stay alike. */
const WINDOWS_MIN = 20;
/** A run worth fewer independent windows than this is too short to say anything. */
const WORTH_MIN = 3;
/** A percentile is estimated from at least this many requests beyond it. */
const BEYOND_MIN = 10;

export interface Spread {
  /** Standard error of the logarithm of the figure. */
  readonly logError: number;
  /** Independent pieces the error was judged from: degrees of freedom. */
  readonly worth: number;
}

/** Null: too little data to say. */
export function spreadOfRate(step: StepSummary): Spread | null {
  const { requests } = innerWindows(step);
  const mean = average(requests);
  const { error, worth } = errorOfMean(requests);
  if (requests.length < WINDOWS_MIN || worth < WORTH_MIN || mean === 0) return null;
  return { logError: error / mean, worth };
}

export function spreadOfQuantile(step: StepSummary, fraction: number): Spread | null {
  const windows = innerWindows(step);
  const { requests } = windows;
  const beyond = Math.min(fraction, 1 - fraction) * step.latencyMs.count;
  const mean = average(requests);
  if (requests.length < WINDOWS_MIN || beyond < BEYOND_MIN || mean === 0) return null;
  const buckets = bucketsOf(step.histogram);
  const center = quantileOf(buckets, fraction);
  const shape = { step, buckets, median: quantileOf(buckets, 0.5), windows };
  const below = requests.map((_, index) => shareBelow(center, index, shape));
  const share = sum(below.map((each, i) => each * (requests[i] ?? 0))) / sum(requests);
  // A busy window counts for more: the residuals of a ratio of two sums.
  const { error, worth } = errorOfMean(
    below.map((each, i) => ((each - share) * (requests[i] ?? 0)) / mean),
  );
  if (worth < WORTH_MIN) return null;
  // No run is steadier than independent requests would be.
  const independent = Math.sqrt((fraction * (1 - fraction)) / step.latencyMs.count);
  return { logError: logErrorOf(buckets, fraction, Math.max(error, independent)), worth };
}

/**
 * How much more the failures of a run scatter than independent ones would: 1 when independent, more
 * when they come in bursts. The variance of the error rate grows by this factor.
 */
export function burstiness(step: StepSummary): { readonly factor: number; readonly worth: number } {
  const { requests, failed } = innerWindows(step);
  const share = step.requests === 0 ? 0 : step.failed / step.requests;
  const mean = average(requests);
  if (requests.length < WINDOWS_MIN || share === 0 || share === 1 || mean === 0) {
    return { factor: 1, worth: Number.POSITIVE_INFINITY };
  }
  const residuals = failed.map((count, i) => (count - share * (requests[i] ?? 0)) / mean);
  const { error, worth } = errorOfMean(residuals);
  const independent = (share * (1 - share)) / sum(requests);
  const factor = error ** 2 / independent;
  return factor > 1 ? { factor, worth } : { factor: 1, worth: Number.POSITIVE_INFINITY };
}

interface Windows {
  readonly requests: readonly number[];
  readonly failed: readonly number[];
  readonly timeline: LatencyTimeline;
}

/** The first and the last window are cut off somewhere inside, so their counts mean nothing. */
function innerWindows({ series }: StepSummary): Windows {
  const timeline = timelineOf(series);
  const seconds = timeline.windowMs / 1_000;
  const counts = (rates: readonly number[]) =>
    rates.slice(1, -1).map((rate) => Math.round(rate * seconds));
  const inner = <Value>(values: readonly Value[]): readonly Value[] => values.slice(1, -1);
  return {
    requests: counts(timeline.ratePerSecond),
    failed: counts(timeline.failedPerSecond),
    timeline: {
      ...timeline,
      p50: inner(timeline.p50),
      p95: inner(timeline.p95),
      p99: inner(timeline.p99),
    },
  };
}

/**
 * Standard error of the mean of values that resemble their neighbours. The autocovariances are added up as long as
 * pairs of them stay positive and fall (Geyer's initial monotone sequence, 1992); beyond that they are noise.
 */
export function errorOfMean(values: readonly number[]): { error: number; worth: number } {
  const count = values.length;
  const own = autocovariance(values, 0, 0);
  if (count < 2 || own === 0) return { error: 0, worth: count };
  let total = longRunVariance(values, 0);
  // Taking off the mean of the run itself hides some of the slow part; two rounds give it back.
  for (let round = 0; round < 2; round++) total = longRunVariance(values, total / count);
  // The variance is itself estimated, from about half as many pieces as the mean.
  const worth = Math.max(1, (count * Math.min(own / total, 1)) / 2);
  return { error: Math.sqrt(total / count), worth };
}

function longRunVariance(values: readonly number[], hidden: number): number {
  const own = autocovariance(values, 0, hidden);
  let total = -own;
  let previous = Number.POSITIVE_INFINITY;
  for (let lag = 0; lag + 1 < values.length / 2; lag += 2) {
    const pair = autocovariance(values, lag, hidden) + autocovariance(values, lag + 1, hidden);
    if (pair <= 0) break;
    previous = Math.min(previous, pair);
    total += 2 * previous;
  }
  // Windows that alternate would look steadier than independent ones; we do not believe that.
  return Math.max(total, own);
}

function autocovariance(values: readonly number[], lag: number, hidden: number): number {
  const mean = average(values);
  let total = 0;
  for (let i = lag; i < values.length; i++) {
    total += ((values[i] ?? 0) - mean) * ((values[i - lag] ?? 0) - mean);
  }
  return total / (values.length - lag) + hidden;
}

interface Shape {
  readonly step: StepSummary;
  readonly buckets: readonly Bucket[];
  readonly median: number;
  readonly windows: Windows;
}

/**
 * Share of a window's requests at or below a latency. Around the median a window has the shape of the whole run, moved
 * to its own median; in the tail it is read between the percentiles it kept.
 */
function shareBelow(ms: number, index: number, { step, buckets, median, windows }: Shape): number {
  const { p50, p95, p99 } = windows.timeline;
  const requests = windows.requests[index] ?? 0;
  const [low, middle, high] = [p50[index] ?? null, p95[index] ?? null, p99[index] ?? null];
  if (low === null || middle === null || high === null) return 0;
  if (ms <= Math.max(low, median)) return shareAt(buckets, (ms * median) / Math.max(low, 1e-6));
  if (ms < middle) return 0.5 + 0.45 * between(ms, low, middle);
  if (ms < high) return 0.95 + 0.04 * between(ms, middle, high);
  // With less than a hundred requests p99 is the longest of them.
  if (requests < 100) return 1;
  return 0.99 + 0.01 * between(ms, high, Math.max(step.latencyMs.max, high));
}

/** Where a value lies between two others on a logarithmic scale, 0 … 1. */
function between(value: number, low: number, high: number): number {
  if (value >= high) return 1;
  if (value <= low || low <= 0) return 0;
  return Math.log(value / low) / Math.log(high / low);
}

/** An error of the share, as an error of the logarithm of the latency at that share. */
function logErrorOf(buckets: readonly Bucket[], fraction: number, error: number): number {
  const high = quantileOf(buckets, fraction + error);
  const low = quantileOf(buckets, fraction - error);
  return low > 0 && high > low ? Math.log(high / low) / 2 : 0;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function average(values: readonly number[]): number {
  return values.length === 0 ? 0 : sum(values) / values.length;
}
