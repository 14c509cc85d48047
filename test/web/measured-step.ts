/** A step whose raw samples are kept beside the product's results. */

import { Random } from "../../src/core/base/random.ts";
import type { LatencyWindows, RunSummary, Series } from "../../src/core/load/results/model.ts";
import { latencyWindows } from "../../src/core/load/results/over-time.ts";
import { distribution, histogramSummary } from "../../src/core/load/results/summarise.ts";
import { syntheticRun } from "../../src/core/load/results/testing/synthetic-run.ts";
import { summariseSeries } from "../../src/core/load/stats/series.ts";
import { StepRecorder, StepTotals } from "../../src/core/load/stats/step-stats.ts";
import { WINDOW_MS, WindowStore } from "../../src/core/load/stats/window-store.ts";
import { STEP_RULES } from "../../src/core/load/stats/windows.ts";

interface Sample {
  readonly atSeconds: number;
  readonly us: number;
  readonly failed: boolean;
}

interface Measured {
  readonly samples: readonly Sample[];
  readonly windows: LatencyWindows;
  readonly series: Series;
  readonly totals: StepTotals;
}

const secondsAt = (ms: number): number => ms / 1_000;

/** A long tail, and ten times slower from 36 s to 42 s. */
export function measuredStep(seed: string, seconds: number, perSecond: number): Measured {
  const random = new Random(seed);
  const store = new WindowStore(STEP_RULES);
  const [recorder, totals] = [new StepRecorder(1, false), new StepTotals(1, false)];
  const samples: Sample[] = [];
  const perWindow = (perSecond * WINDOW_MS) / 1_000;
  for (let startMs = 0; startMs < seconds * 1_000; startMs += WINDOW_MS) {
    for (let call = 0; call < perWindow; call++) {
      const atSeconds = startMs / 1_000;
      const slow = atSeconds >= 36 && atSeconds < 42 ? 10 : 1;
      const us = Math.round(
        slow * 2_000 * Math.exp(3 * random.float() ** 3) + random.float() * 900,
      );
      const failed = random.float() < 0.02;
      samples.push({ atSeconds, us, failed });
      recorder.record(failed ? 0 : -1, 200, us, us, us / 2, -1, -1, 10, 10);
    }
    const content = recorder.fold(totals, 1);
    if (content !== null) store.add({ startMs, widthMs: WINDOW_MS, content });
  }
  return {
    samples,
    windows: latencyWindows(store, secondsAt, 1),
    series: summariseSeries(store, secondsAt, ["timeout"]),
    totals,
  };
}

/** A run of this one step. */
export function runOf({ series, totals, windows }: Measured): RunSummary {
  const base = syntheticRun({ seconds: 1, healthy: true });
  const [workflow] = base.workflows;
  const [step] = workflow?.steps ?? [];
  if (workflow === undefined || step === undefined) throw new Error("a run has steps");
  const latencyMs = distribution(totals.latency);
  const { failedCount: failed, ok, requests } = totals;
  const measured = { requests, ok, failed, latencyMs, series, windows };
  return {
    ...base,
    thresholds: [],
    totals: undefined,
    workflows: [
      {
        ...workflow,
        loadSeries: undefined,
        steps: [{ ...step, ...measured, histogram: histogramSummary(totals.latency) }],
      },
    ],
  };
}

/** The smallest value that at least this fraction of all do not exceed. */
export function rawQuantile(values: readonly number[], fraction: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(1, Math.ceil(fraction * sorted.length - 1e-9)) - 1] ?? 0;
}
