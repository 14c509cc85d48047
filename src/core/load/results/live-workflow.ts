/** Live view of one workflow. */

import { isOpen } from "../plan/load.ts";
import { Histogram } from "../stats/histogram.ts";
import { recentLatency, recentRates } from "../stats/series.ts";
import { SparseCells } from "../stats/sparse-cells.ts";
import type { LiveStep, LiveWorkflow, RunPhase } from "./live.ts";
import { doingText, progressOf, targetUsersOf } from "./load-figures.ts";
import type { RunSummary, StepSummary } from "./model.ts";
import type { Searches } from "./searches.ts";
import { isAside, type WorkflowAggregate } from "./workflow-aggregate.ts";
import type { WorkflowData } from "./workflow-data.ts";

/** Window of current rates and percentiles on the screen. */
const RATE_WINDOW_MS = 1_000;
const LATENCY_WINDOW_MS = 5_000;

export function liveSteps(workflow: WorkflowAggregate, nowMs: number): LiveStep[] {
  const until = workflow.knownUntilMs(nowMs);
  return workflow.steps.flatMap((step, at) => {
    if (isAside(step) || workflow.isFolded(at)) return [];
    const windows = workflow.windowsOf(at);
    const [p50, p95, p99] = recentLatency(windows, LATENCY_WINDOW_MS, until);
    return {
      name: step.name,
      ...recentRates(windows, RATE_WINDOW_MS, until),
      p50: p50 ?? 0,
      p95: p95 ?? 0,
      p99: p99 ?? 0,
    };
  });
}

/** All latencies of each step of a summary so far; `data`: the input of the summary. */
export function latenciesOf(
  { workflows }: RunSummary,
  data: readonly WorkflowData[],
): Map<StepSummary, SparseCells> {
  return new Map(
    workflows.flatMap((workflow, at) =>
      workflow.steps.flatMap((step, index) => {
        const totals = data[at]?.steps[index]?.totals;
        return totals === undefined ? [] : [[step, SparseCells.ofHistogram(totals.latency)]];
      }),
    ),
  );
}

export function liveWorkflow(
  workflow: WorkflowAggregate,
  steps: readonly LiveStep[],
  nowMs: number,
  searches: Searches,
): LiveWorkflow {
  const { load, name, warmupMs } = workflow.manifest;
  const running = workflow.status === "running";
  const search = running ? searches.get(name) : undefined;
  return {
    name,
    status: workflow.status,
    warmingUp: workflow.warmingUp,
    doing: doingText(workflow, nowMs),
    progress: search?.progress(workflow.elapsedMs) ?? progressOf(workflow, warmupMs, nowMs),
    activeVus: running ? workflow.activeUsers : 0,
    targetVus: running ? targetUsersOf(workflow) : 0,
    ratePerSecond: running ? steps.reduce((all, step) => all + step.ratePerSecond, 0) : 0,
    targetPerSecond: isOpen(load) ? workflow.target : null,
    steps,
    ...(search === undefined ? {} : { search: search.doing }),
  };
}

/** Current activity of a workflow that generates no load, which may take long. */
export function livePhase(
  phase: RunPhase,
  warm: boolean,
  measured: readonly WorkflowAggregate[],
): RunPhase {
  if (phase === "running" && warm) return "warming up";
  if (phase !== "running" && phase !== "starting") return phase;
  const open = measured.filter(({ doing, status }) => doing !== null || status === "running");
  const [first] = open;
  return open.every(({ doing }) => doing === first?.doing) ? (first?.doing ?? phase) : phase;
}

/** Event-loop lag of a core, over all workflows. */
export function mergedLag(
  aggregates: readonly WorkflowAggregate[],
  core: number,
  which: "loopLag" | "ownLag" = "loopLag",
): Histogram {
  const merged = new Histogram();
  for (const workflow of aggregates) merged.merge(workflow.lagOf(which, core));
  return merged;
}
