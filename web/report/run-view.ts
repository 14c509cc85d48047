/** One run prepared for drawing: steps with names and links of their own, and everything over time. */

import type {
  RunSummary,
  StepSummary,
  WorkflowSummary,
} from "../../src/core/load/results/model.ts";
import { CHART_WINDOW_MS, sumTimelines, type Timeline } from "../../src/reporters/file/timeline.ts";
import type { ChartEvent } from "../shared/charts.ts";
import { type Range, sumTracks, type Track, trackOf, trackUntil } from "../shared/tracks.ts";
import { clusterEvents } from "./cluster-events.ts";

export interface StepView {
  /** In the address: "1.2" is the second step of the first workflow. */
  readonly id: string;
  /** Unique: two workflows may have steps of the same name. */
  readonly name: string;
  readonly step: StepSummary;
  readonly workflow: WorkflowSummary;
  readonly track: Track;
}

export interface RunView {
  readonly summary: RunSummary;
  readonly steps: readonly StepView[];
  /** All steps together. */
  readonly track: Track;
  readonly timeline: Timeline;
  /** From the first window to the end of the last. */
  readonly full: Range;
  /** Events of the run and, in a cluster, of its leaders, ascending. */
  readonly events: readonly ChartEvent[];
}

export function runView(summary: RunSummary): RunView {
  const several = summary.workflows.length > 1;
  const whole = summary.workflows.flatMap((workflow, at) =>
    workflow.steps.map((step, index) => ({
      id: `${at + 1}.${index + 1}`,
      name: several ? `${workflow.name} / ${step.name}` : step.name,
      step,
      workflow,
      track: trackOf(step.windows),
    })),
  );
  const charted = sumTimelines(
    whole.map(({ step }) => step.series),
    CHART_WINDOW_MS,
  );
  const timeline = widened(charted);
  // The few calls that end in the graceful stop are slow ones: a window of them alone looks like a cliff.
  const endSeconds = (charted.atSeconds.at(-1) ?? 0) + charted.windowMs / 1_000;
  const steps = whole.map((one) => ({ ...one, track: trackUntil(one.track, endSeconds) }));
  const track = sumTracks(steps.map((one) => one.track));
  const first = timeline.atSeconds[0] ?? 0;
  const last = Math.max(
    (timeline.atSeconds.at(-1) ?? 0) + timeline.windowMs / 1_000,
    (track.starts.at(-1) ?? 0) + track.windowSeconds,
  );
  return {
    ...{ summary, steps, track, timeline },
    full: timeline.atSeconds.length === 0 ? [0, 1] : [first, last],
    events: [...(summary.events ?? []), ...clusterEvents(summary)].sort(
      (a, b) => a.atSeconds - b.atSeconds,
    ),
  };
}

/** More points than this are noise on a screen. */
const POINTS_MAX = 300;
/** Windows of a second, where that leaves enough of them to see a trend. */
const SECOND_POINTS_MIN = 30;

/** Merges neighbouring windows until they are few enough. */
export function widened(timeline: Timeline): Timeline {
  const { atSeconds, windowMs } = timeline;
  const perSecond = Math.max(1, Math.round(1_000 / windowMs));
  const enough = atSeconds.length / perSecond >= SECOND_POINTS_MIN;
  const factor = Math.max(Math.ceil(atSeconds.length / POINTS_MAX), enough ? perSecond : 1);
  return {
    windowMs: windowMs * factor,
    atSeconds: atSeconds.filter((_, at) => at % factor === 0),
    ratePerSecond: meansOf(timeline.ratePerSecond, factor),
    failedPerSecond: meansOf(timeline.failedPerSecond, factor),
  };
}

/** Mean of every `factor` neighbours. */
export function meansOf(values: readonly number[], factor: number): number[] {
  return Array.from({ length: Math.ceil(values.length / factor) }, (_, at) => {
    const part = values.slice(at * factor, (at + 1) * factor);
    return part.reduce((sum, value) => sum + value, 0) / part.length;
  });
}

/** Middles of windows. */
export function middles(starts: readonly number[], windowSeconds: number): number[] {
  return starts.map((start) => start + windowSeconds / 2);
}

interface Sampled {
  readonly starts: readonly number[];
  readonly windowSeconds: number;
}

/** Values of one grid of windows at times of another: from the window that contains each, or none. */
export function valuesAt<Value>(
  moments: readonly number[],
  { starts, windowSeconds }: Sampled,
  values: readonly Value[],
): (Value | null)[] {
  let at = 0;
  return moments.map((moment) => {
    while ((starts[at + 1] ?? Number.POSITIVE_INFINITY) <= moment) at++;
    const start = starts[at] ?? Number.POSITIVE_INFINITY;
    return moment >= start && moment < start + windowSeconds ? (values[at] ?? null) : null;
  });
}

/** Means of a finer grid of windows over those around these moments; of a coarser one what `valuesAt` gives. */
export function meansAround(
  moments: readonly number[],
  windowSeconds: number,
  grid: Sampled,
  values: readonly number[],
): (number | null)[] {
  if (grid.windowSeconds >= windowSeconds) return valuesAt(moments, grid, values);
  const sums = moments.map(() => ({ sum: 0, count: 0 }));
  const first = (moments[0] ?? 0) - windowSeconds / 2;
  grid.starts.forEach((start, index) => {
    const around = sums[Math.floor((start - first) / windowSeconds + 1e-6)];
    if (around === undefined) return;
    around.sum += values[index] ?? 0;
    around.count++;
  });
  return sums.map(({ sum, count }) => (count === 0 ? null : sum / count));
}

/** Requests and failures that ended in a stretch. */
export function countsIn(
  step: StepSummary,
  [from, to]: Range,
): { requests: number; failed: number } {
  const { atSeconds, failed, requests } = step.series;
  const counts = { requests: 0, failed: 0 };
  atSeconds.forEach((at, index) => {
    if (at < from - 1e-6 || at >= to - 1e-6) return;
    counts.requests += requests[index] ?? 0;
    counts.failed += failed[index] ?? 0;
  });
  return counts;
}

/** "1 s windows", or the reason for wider ones. */
export function windowsText(windowSeconds: number): string {
  const text = Number(windowSeconds.toFixed(2));
  return `${text} s windows`;
}
