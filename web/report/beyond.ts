/**
 * When a threshold was broken, and by which step: checks the windows of the run against its limit one by one. A verdict
 * says that p99 of the run was too high; these are the stretches in which it was.
 */

import type { ThresholdOutcome } from "../../src/core/load/results/model.ts";
import { holds, parseThreshold, type Threshold } from "../../src/core/load/results/thresholds.ts";
import { CHART_WINDOW_MS, sumErrors, sumTimelines } from "../../src/reporters/file/timeline.ts";
import { PERCENTILES, percentileLine, type Range, sumTracks } from "../shared/tracks.ts";
import { stepsOf } from "./limits.ts";
import { countsIn, meansOf, type RunView, type StepView, widened } from "./run-view.ts";

interface Beyond {
  /** Ascending. */
  readonly stretches: readonly Range[];
  /** Seconds beyond the limit, and of all that was measured. */
  readonly seconds: number;
  readonly measuredSeconds: number;
}

interface Course {
  readonly windowSeconds: number;
  readonly starts: readonly number[];
  readonly values: readonly (number | null)[];
}

/** Null where windows cannot show the threshold. */
export function beyondOf(outcome: ThresholdOutcome, view: RunView): Beyond | null {
  const parsed = parseThreshold(outcome.expression);
  if (!parsed.ok) return null;
  const { threshold } = parsed;
  const course = courseOf(threshold, stepsOf(outcome, view.steps));
  if (course === null || course.starts.length === 0) return null;
  const { starts, values, windowSeconds } = course;
  const stretches: [number, number][] = [];
  for (const [at, start] of starts.entries()) {
    const value = values[at] ?? null;
    if (value === null || holds(value, threshold)) continue;
    const last = stretches.at(-1);
    // A single good window between two bad ones does not end a stretch.
    if (last !== undefined && start - last[1] < 1.5 * windowSeconds)
      last[1] = start + windowSeconds;
    else stretches.push([start, start + windowSeconds]);
  }
  return {
    stretches,
    seconds: stretches.reduce((sum, [from, to]) => sum + to - from, 0),
    measuredSeconds: (starts.at(-1) ?? 0) + windowSeconds - (starts[0] ?? 0),
  };
}

function courseOf(threshold: Threshold, steps: readonly StepView[]): Course | null {
  const { figure, metric, tags } = threshold;
  if (metric === "latency" && figure.kind === "percentile") {
    const percentile = PERCENTILES.find((one) => one === `p${figure.percent}`);
    if (percentile === undefined || tags["ok"] !== undefined) return null;
    const track = sumTracks(steps.map((step) => step.track));
    return { ...track, values: percentileLine(track, percentile) };
  }
  if (figure.kind !== "rate") return null;
  if (metric === "errors") return failureCourse(steps, tags["kind"]);
  return metric === "requests" ? requestCourse(steps) : null;
}

/** Share of requests that failed, in total or by kind. */
function failureCourse(steps: readonly StepView[], kind: string | undefined): Course {
  const series = steps.map(({ step }) => step.series);
  const fine = sumTimelines(series, CHART_WINDOW_MS);
  const timeline = widened(fine);
  const factor = Math.round(timeline.windowMs / fine.windowMs);
  const failed =
    kind === undefined
      ? timeline.failedPerSecond
      : meansOf(sumErrors(series, fine).get(kind) ?? [], factor);
  return {
    windowSeconds: timeline.windowMs / 1_000,
    starts: timeline.atSeconds,
    values: timeline.ratePerSecond.map((rate, at) =>
      rate === 0 ? null : (failed[at] ?? 0) / rate,
    ),
  };
}

/** The first and the last window are not full. */
function requestCourse(steps: readonly StepView[]): Course {
  const timeline = widened(
    sumTimelines(
      steps.map(({ step }) => step.series),
      CHART_WINDOW_MS,
    ),
  );
  return {
    windowSeconds: timeline.windowMs / 1_000,
    starts: timeline.atSeconds.slice(1, -1),
    values: timeline.ratePerSecond.slice(1, -1),
  };
}

/** Step that broke a threshold on several: the one with the most failures, or the slowest. */
export function culpritOf(
  outcome: ThresholdOutcome,
  view: RunView,
  { stretches }: Beyond,
): StepView | null {
  const parsed = parseThreshold(outcome.expression);
  const steps = stepsOf(outcome, view.steps).filter(({ step }) => step.requests > 0);
  if (!parsed.ok || steps.length < 2) return null;
  const { metric } = parsed.threshold;
  const failedIn = ({ step }: StepView) =>
    stretches.reduce((sum, range) => sum + countsIn(step, range).failed, 0);
  const rank =
    metric === "errors"
      ? failedIn
      : metric === "latency"
        ? ({ step }: StepView) => step.latencyMs.p95
        : null;
  if (rank === null) return null;
  return steps.reduce((worst, step) => (rank(step) > rank(worst) ? step : worst));
}
