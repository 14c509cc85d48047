/** Series of a synthetic run: windows of latencies, the load, the cores. */

import { cellHigh, Histogram } from "../../stats/histogram.ts";
import type { CoreHealth, HistogramSummary, LatencyWindows, LoadSeries } from "../model.ts";

const WINDOW_MS = 250;
const WINDOWS_MAX = 600;

interface Time {
  readonly seconds: number;
  readonly healthy: boolean;
}

interface Window {
  readonly latency: Histogram;
  readonly failures: Histogram;
}

/** Folded like those of a real run, to stay bounded. */
export function windowMsOf(seconds: number): number {
  let windowMs = WINDOW_MS;
  while ((seconds * 1_000) / windowMs > WINDOWS_MAX) windowMs *= 2;
  return windowMs;
}

/** In windows of a second or more, with the phases in fixed shares of the mean. */
export function latencyWindows(windows: readonly Window[], windowMs: number): LatencyWindows {
  const fold = Math.max(1, Math.round(1_000 / windowMs));
  const folded = Array.from({ length: Math.ceil(windows.length / fold) }, (_, at) => {
    const [latency, failures] = [new Histogram(), new Histogram()];
    for (const one of windows.slice(at * fold, (at + 1) * fold)) {
      latency.merge(one.latency);
      failures.merge(one.failures);
    }
    return { at, latency, failures };
  }).filter(({ latency }) => latency.count > 0);
  const part = (share: number) =>
    folded.map(({ latency }) => Math.round(latency.mean * share) / 1_000);
  return {
    windowMs: fold * windowMs,
    atSeconds: folded.map(({ at }) => 5 + (at * fold * windowMs) / 1_000),
    histograms: folded.map(({ latency }) => fineHistogram(latency)),
    failures: folded.map(({ failures }) => fineHistogram(failures)),
    phases: { connectMs: part(0.03), tlsMs: part(0), waitingMs: part(0.87), bodyMs: part(0.1) },
  };
}

function fineHistogram(histogram: Histogram): HistogramSummary {
  const [upToMs, count]: [number[], number[]] = [[], []];
  histogram.forEachCell((cell, times) => {
    upToMs.push(cellHigh(cell) / 1_000);
    count.push(times);
  });
  return { upToMs, count };
}

/** The plan, and users or arrivals that follow it; less where a core was lost. */
export function loadSeries(options: Time, planned: number, open: boolean): LoadSeries {
  const windowMs = windowMsOf(options.seconds);
  const count = Math.round((options.seconds * 1_000) / windowMs);
  const windows = Array.from({ length: count }, (_, i) => i / count);
  const held = (progress: number) => (options.healthy || progress < 0.9 ? planned : planned / 2);
  return {
    windowMs,
    atSeconds: windows.map((_, i) => 5 + (i * windowMs) / 1_000),
    users: windows.map((progress) => (open ? held(progress) / 3 : held(progress))),
    target: windows.map(() => planned),
    arrivals: windows.map((progress) => (open ? (held(progress) * windowMs) / 1_000 : 0)),
    iterations: windows.map((progress) => (held(progress) * windowMs) / 1_000),
  };
}

export function coreSeries(options: Time, core: number): CoreHealth["series"] {
  const { atSeconds, windowMs } = loadSeries(options, 1, false);
  return {
    windowMs,
    atSeconds,
    cpu: atSeconds.map((_, i) => (options.healthy ? 0.38 : 0.85) + core * 0.05 + (i % 7) / 100),
    lagMs: atSeconds.map((_, i) => (options.healthy ? 0.6 : 9) + core * 2 + (i % 5)),
  };
}
