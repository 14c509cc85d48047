/**
 * Value of a metric in a stretch of a workflow's measured time, from its windows alone: the same windows give the same
 * judgement, whenever and in whatever order frames came.
 */

import { cellHigh, cellLow, cellMiddle, Histogram } from "../stats/histogram.ts";
import type { SparseCells } from "../stats/sparse-cells.ts";
import type { StepWindow } from "../stats/windows.ts";
import type { MetricQuery, Reading, Stretch } from "./threshold-judge.ts";
import type { StepData, WorkflowData } from "./workflow-data.ts";

/** Undefined where windows do not contain it; null when there is no such step. */
export function readStretch(
  workflow: WorkflowData,
  { metric, tags }: MetricQuery,
  { fromMs, last, seconds, toMs }: Stretch,
  errorKinds: readonly string[],
): Reading | null | undefined {
  const inWindows = ["requests", "errors", "bytesIn", "bytesOut", "latency"];
  if (!inWindows.includes(metric) || (tags["ok"] ?? "true") !== "true") return undefined;
  const steps = matchingSteps([workflow], tags);
  if (steps.length === 0) return null;
  // Calls that ended in the graceful stop were in flight in the last stretch.
  const untilMs = last ? Number.POSITIVE_INFINITY : toMs;
  const windows = steps.flatMap((step) =>
    step.windows.over(fromMs, untilMs).map(({ content }) => content),
  );
  const sum = (value: (window: StepWindow) => number): number =>
    windows.reduce((all, window) => all + value(window), 0);
  if (metric === "latency") {
    const histogram = new Histogram();
    const [add, leave] = tags["ok"] === undefined ? [1, 0] : [1, -1];
    for (const { failedLatency, latency } of windows) {
      addCells(histogram, latency, add);
      if (leave !== 0) addCells(histogram, failedLatency, leave);
    }
    // Arrivals that were never served waited until the end, and count in the last stretch.
    if (last && Object.keys(tags).length === 0 && workflow.arrivals !== null)
      histogram.merge(workflow.arrivals.waited);
    return { kind: "distribution", histogram };
  }
  if (metric === "errors") {
    const kind = tags["kind"] === undefined ? null : errorKinds.indexOf(tags["kind"]);
    const hits = sum(({ kinds }) =>
      kind === null ? kinds.reduce((all, count) => all + count, 0) : (kinds[kind] ?? 0),
    );
    return { kind: "share", hits, total: sum(({ requests }) => requests) };
  }
  const key = metric === "requests" ? "calls" : metric === "bytesIn" ? "bytesIn" : "bytesOut";
  const count = sum((window) => window[key]);
  return { kind: "count", count, inside: count, seconds };
}

/** Extremes and mean are known to the width of a cell. */
function addCells(histogram: Histogram, sparse: SparseCells, factor: number): void {
  const counts = sparse.counts();
  for (const [at, cell] of sparse.cells().entries()) {
    const count = (counts[at] ?? 0) * factor;
    histogram.addToCell(cell, count);
    if (factor > 0) histogram.addMoments(count * cellMiddle(cell), cellLow(cell), cellHigh(cell));
    else histogram.addMoments(count * cellMiddle(cell), Number.POSITIVE_INFINITY, 0);
  }
}

/** Steps whose name (tag `step`) and own tags match; `kind` belongs to errors, `ok` to latency. */
export function matchingSteps(
  workflows: readonly WorkflowData[],
  tags: MetricQuery["tags"],
): StepData[] {
  const wanted = Object.entries(tags).filter(([key]) => key !== "kind" && key !== "ok");
  return workflows.flatMap(({ steps }) =>
    steps.filter((step) =>
      wanted.every(([key, value]) => (key === "step" ? step.name : step.tags[key]) === value),
    ),
  );
}
