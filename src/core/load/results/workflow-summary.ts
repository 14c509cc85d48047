/** One workflow of the results model, from the reports of its cores. */

import type { WorkflowManifest } from "../job/manifest.ts";
import { describePlan, isOpen, type LoadPlan } from "../plan/load.ts";
import { GroupTotals, WHOLE_ITERATION } from "../stats/group-stats.ts";
import type { FailureSample } from "../stats/samples.ts";
import { formatCompactPercent } from "./format.ts";
import type {
  ArrivalSummary,
  BreakpointSummary,
  ErrorSample,
  GroupSummary,
  IterationCounts,
  StepSummary,
  WorkflowSummary,
} from "./model.ts";
import { latencyWindows, loadSeries, type SecondsAt, wholeLatencies } from "./over-time.ts";
import { distribution, perSecond, summariseMetrics, summariseStep, totalsOf } from "./summarise.ts";
import type { WorkflowAggregate } from "./workflow-aggregate.ts";
import type { StepData, WorkflowData } from "./workflow-data.ts";

const MODELS = {
  vus: "closed",
  rate: "open",
  search: "closed",
  shared: "iterations",
  perUser: "iterations",
  once: "once",
} as const;

function modelOf(plan: LoadPlan): WorkflowSummary["model"] {
  return isOpen(plan) ? "open" : MODELS[plan.kind];
}

/** "latencies": metrics, and all latencies so far in one window. "totals": nothing over time. "all": for files. */
export type Detail = "figures" | "latencies" | "totals" | "all";

interface SummaryInputs {
  /** Result of a breakpoint search. */
  readonly search: BreakpointSummary | undefined;
  /** Full detail takes too long for a live view. */
  readonly detail: Detail;
}

/** `firstMs` is when the first workflow of the run began. */
export function workflowSummary(
  workflow: WorkflowAggregate,
  data: WorkflowData,
  firstMs: number,
  { search, detail }: SummaryInputs,
): WorkflowSummary {
  const { errorKinds, manifest } = workflow;
  const { corrected, load, startAfterMs, warmupMs } = manifest;
  const { elapsedSeconds } = data;
  const secondsAt = secondsOf(workflow, firstMs);
  const all = [...data.steps, ...data.aside];
  const summarise = (step: StepData): StepSummary => {
    const { name, number, protocol, tags, totals, windows } = step;
    const time = detail === "totals" ? null : { windows, secondsAt };
    const figures = summariseStep(name, protocol, tags, totals, time, elapsedSeconds, errorKinds);
    if (detail === "figures" || detail === "totals") return figures;
    if (detail === "latencies")
      return { ...figures, windows: wholeLatencies(totals.latency, secondsAt, elapsedSeconds) };
    const samples = workflow
      .samplesOf(number)
      .map((sample) => sampleOf(sample, secondsAt, errorKinds));
    // In a file the windows contain it, and more.
    const { steady: _, ...series } = figures.series;
    return { ...figures, series, windows: latencyWindows(windows, secondsAt, all.length), samples };
  };
  return {
    name: data.name,
    status: workflow.status,
    error: workflow.error,
    load: describePlan(load, warmupMs, startAfterMs) + shareText(manifest),
    model: modelOf(load),
    corrected,
    cores: workflow.cores.length,
    startedAtSeconds: seconds(Math.max(0, workflow.startedAtMs - firstMs)),
    elapsedSeconds,
    iterations: iterationsOf(data, workflow),
    arrivals: arrivalsOf(data, workflow),
    breakpoint: search,
    checks: data.checks,
    metrics: summariseMetrics(data.metrics, elapsedSeconds),
    steps: data.steps.map(summarise),
    groups: groupsOf(data),
    aside: data.aside.map(summarise),
    ...(detail === "all" ? inAll(workflow, data, secondsAt) : {}),
  };
}

/** Share of a flow of a mix; rates are those of the flow already. */
function shareText({ load, mix }: WorkflowManifest): string {
  if (mix === null || load.kind === "rate") return "";
  return `, ${formatCompactPercent(mix.share)} of the iterations`;
}

function inAll(
  workflow: WorkflowAggregate,
  { aside, elapsedSeconds, steps }: WorkflowData,
  secondsAt: SecondsAt,
): Pick<WorkflowSummary, "totals" | "loadSeries"> {
  const load = workflow.loadOf(null);
  const sent = [...steps, ...aside].reduce((sum, { totals }) => sum + totals.sent, 0);
  return {
    totals: totalsOf(
      steps.map(({ totals }) => totals),
      sent,
      elapsedSeconds,
    ),
    ...(load === undefined ? {} : { loadSeries: loadSeries(load, secondsAt, workflow.planned) }),
  };
}

/** Position of a workflow's measured time in the run. */
export function secondsOf(workflow: WorkflowAggregate, firstMs: number): SecondsAt {
  return (ms) => seconds(workflow.momentOf(ms) - firstMs);
}

function sampleOf(
  sample: FailureSample,
  secondsAt: SecondsAt,
  errorKinds: readonly string[],
): ErrorSample {
  const { atMs, call, kind, status, text } = sample;
  return { atSeconds: secondsAt(atMs), kind: errorKinds[kind] ?? "", status, call, text };
}

/** To the millisecond: more digits only bloat the file. */
export function seconds(ms: number): number {
  return Math.round(ms) / 1_000;
}

function groupsOf({ groups }: WorkflowData): GroupSummary[] {
  return groups
    .filter(({ name }) => name !== WHOLE_ITERATION)
    .map(({ name, totals }) => ({
      name,
      ok: totals.ok,
      failed: totals.failed,
      durationMs: distribution(totals.duration),
      activeMs: distribution(totals.active),
    }));
}

function iterationsOf(
  { groups, unanswered }: WorkflowData,
  workflow: WorkflowAggregate,
): IterationCounts {
  const whole = groups.find(({ name }) => name === WHOLE_ITERATION)?.totals ?? new GroupTotals();
  return {
    completed: workflow.outcome("completed"),
    ended: workflow.outcome("ended"),
    failed: workflow.outcome("failed"),
    interrupted: workflow.outcome("interrupted"),
    unresolved: unanswered.iterations,
    durationMs: distribution(whole.duration),
    okDurationMs: distribution(whole.okDuration),
    activeMs: distribution(whole.active),
  };
}

function arrivalsOf(
  { arrivals, elapsedSeconds }: WorkflowData,
  workflow: WorkflowAggregate,
): ArrivalSummary | null {
  if (arrivals === null) return null;
  // Each core changes its load when it receives the change: due arrivals are those it began and missed.
  const due = workflow.isScaled ? arrivals.started + arrivals.missed : workflow.plannedArrivals;
  return {
    targetPerSecond: perSecond(due, elapsedSeconds),
    achievedPerSecond: perSecond(arrivals.started, elapsedSeconds),
    started: arrivals.started,
    missed: arrivals.missed,
    ...(arrivals.missedByLosses > 0 ? { missedByLosses: arrivals.missedByLosses } : {}),
    sendLagMs: distribution(arrivals.lag),
  };
}
