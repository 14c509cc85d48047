/** One workflow of the results model, from what its cores told. */

import { describePlan, isOpen, type LoadPlan, targetRate } from "../core/run/plan/load.ts";
import type { StepData, WorkflowData } from "../core/run/results/metric-source.ts";
import type {
  ArrivalSummary,
  BreakpointSummary,
  GroupSummary,
  IterationCounts,
  StepSummary,
  WorkflowSummary,
} from "../core/run/results/model.ts";
import {
  distribution,
  perSecond,
  summariseMetrics,
  summariseStep,
} from "../core/run/results/summarise.ts";
import { GroupTotals, WHOLE_ITERATION } from "../core/run/stats/group-stats.ts";
import { ERROR_KINDS } from "../protocols/protocol.ts";
import type { WorkflowAggregate } from "./workflow-aggregate.ts";

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

/** `firstMs` is when the first workflow of the run began. */
export function workflowSummary(
  workflow: WorkflowAggregate,
  data: WorkflowData,
  firstMs: number,
  breakpoint: BreakpointSummary | undefined,
): WorkflowSummary {
  const { corrected, load, startAfterMs, warmupMs } = workflow.manifest;
  const { elapsedSeconds } = data;
  const secondsAt = (ms: number): number => seconds(workflow.momentOf(ms) - firstMs);
  const summarise = ({ name, protocol, tags, totals, windows }: StepData): StepSummary => {
    const time = { windows, secondsAt };
    return summariseStep(name, protocol, tags, totals, time, elapsedSeconds, ERROR_KINDS);
  };
  return {
    name: data.name,
    status: workflow.status,
    error: workflow.error,
    load: describePlan(load, warmupMs, startAfterMs),
    model: modelOf(load),
    corrected,
    cores: workflow.cores.length,
    startedAtSeconds: seconds(Math.max(0, workflow.startedAtMs - firstMs)),
    elapsedSeconds,
    iterations: iterationsOf(data, workflow),
    arrivals: arrivalsOf(data, workflow),
    breakpoint,
    checks: data.checks,
    metrics: summariseMetrics(data.metrics, elapsedSeconds),
    steps: data.steps.map(summarise),
    groups: groupsOf(data),
    aside: data.aside.map(summarise),
  };
}

/** To the millisecond: more digits only bloat the file. */
function seconds(ms: number): number {
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

function iterationsOf({ groups }: WorkflowData, workflow: WorkflowAggregate): IterationCounts {
  const whole = groups.find(({ name }) => name === WHOLE_ITERATION)?.totals ?? new GroupTotals();
  return {
    completed: workflow.outcome("completed"),
    ended: workflow.outcome("ended"),
    failed: workflow.outcome("failed"),
    interrupted: workflow.outcome("interrupted"),
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
  return {
    targetPerSecond: perSecond(plannedArrivals(workflow, elapsedSeconds), elapsedSeconds),
    achievedPerSecond: perSecond(arrivals.started, elapsedSeconds),
    started: arrivals.started,
    missed: arrivals.missed,
    sendLagMs: distribution(arrivals.lag),
  };
}

/** The integral of the rate over the measured time so far, by the trapezoid rule in small steps. */
function plannedArrivals(workflow: WorkflowAggregate, elapsedSeconds: number): number {
  const { load } = workflow.manifest;
  const slices = 1_000;
  const width = elapsedSeconds / slices;
  let sum = 0;
  for (let i = 0; i < slices; i++) {
    const [from, to] = [i * width * 1_000, (i + 1) * width * 1_000];
    const rate = (targetRate(load, from) + targetRate(load, to)) / 2;
    sum += rate * workflow.loadFactor((from + to) / 2) * width;
  }
  return sum;
}
