/** Totals of a run as thresholds query them: by workflow, metric and tags. */

import { WHOLE_ITERATION } from "../stats/group-stats.ts";
import { Histogram } from "../stats/histogram.ts";
import { findMetric, type MetricTotal } from "../stats/metrics.ts";
import type { StepTotals } from "../stats/step-stats.ts";
import type { MetricQuery, MetricSource, Reading } from "./threshold-judge.ts";
import { matchingSteps, readStretch } from "./threshold-windows.ts";
import type { WorkflowData } from "./workflow-data.ts";

interface GeneratorData {
  /** Busiest core, 0 … 1. */
  readonly cpu: number;
  /** Event-loop lag of the worst core, in microseconds. */
  readonly lag: Histogram;
}

/** `errorKinds` names the kinds in the order of `StepTotals.failed`. */
export function metricSource(
  workflows: readonly WorkflowData[],
  generator: GeneratorData,
  errorKinds: readonly string[],
): MetricSource {
  const named = (workflow: string | null): readonly WorkflowData[] =>
    workflows.filter(({ mix, name }) => workflow === null || name === workflow || mix === workflow);
  return {
    measuredMs: (workflow) => measuredSeconds(named(workflow)) * 1_000,
    ended: (workflow) => named(workflow).every(({ ended }) => ended),
    stretch(query, stretch) {
      const [only, ...others] = named(query.workflow);
      // Workflows have measured times of their own: no window belongs to several of them.
      if (only === undefined || others.length > 0 || query.custom) return undefined;
      return readStretch(only, query, stretch, errorKinds);
    },
    read(query: MetricQuery): Reading | null {
      if (query.metric === "generator.cpu") return single(generator.cpu);
      if (query.metric === "generator.lag") {
        return { kind: "distribution", histogram: generator.lag };
      }
      const own = named(query.workflow);
      if (own.length === 0) return null;
      return query.custom ? readCustom(own, query) : readOurs(own, query, errorKinds);
    },
  };
}

function readOurs(
  workflows: readonly WorkflowData[],
  query: MetricQuery,
  errorKinds: readonly string[],
): Reading | null {
  const seconds = measuredSeconds(workflows);
  const count = (amount: number, inside = amount): Reading => ({
    kind: "count",
    count: amount,
    inside,
    seconds,
  });
  const arrivals = workflows.flatMap((one) => one.arrivals ?? []);
  switch (query.metric) {
    case "iterations":
      return count(
        sumOf(workflows, (one) => one.iterations),
        sumOf(workflows, (one) => one.iterationsInside),
      );
    case "checks":
      return readChecks(workflows, query.tags);
    case "arrivals":
      return arrivals.length === 0 ? null : count(sumOf(arrivals, (one) => one.started));
    case "arrivals.missed":
      return arrivals.length === 0 ? null : readMissed(arrivals);
    case "arrivals.lag":
      return distribution(arrivals.map(({ lag }) => lag));
    case "duration":
    case "active":
      return readGroups(workflows, query.metric, query.tags);
  }
  const steps = stepsOf(workflows, query.tags);
  if (steps.length === 0) return null;
  switch (query.metric) {
    case "requests":
      return count(
        sumOf(steps, (one) => one.requests),
        sumOf(steps, (one) => one.inside.calls),
      );
    case "errors":
      return readErrors(steps, query.tags["kind"], errorKinds);
    case "bytesIn":
      return count(
        sumOf(steps, (one) => one.bytesIn),
        sumOf(steps, (one) => one.inside.bytesIn),
      );
    case "bytesOut":
      return count(
        sumOf(steps, (one) => one.bytesOut),
        sumOf(steps, (one) => one.inside.bytesOut),
      );
    case "latency":
    case "service":
    case "firstByte":
    case "connect":
    case "tls": {
      const { metric, tags } = query;
      if (metric === "latency" && Object.keys(tags).length === 0)
        return withWaiting(
          steps.map((totals) => totals.latency),
          arrivals.map(({ waited }) => waited),
        );
      if (tags["ok"] === undefined) return distribution(steps.map((totals) => totals[metric]));
      if (metric !== "latency" || tags["ok"] !== "true") return null;
      return distribution(steps.map((totals) => totals.okLatency));
    }
    default:
      return null;
  }
}

function stepsOf(workflows: readonly WorkflowData[], tags: MetricQuery["tags"]): StepTotals[] {
  return matchingSteps(workflows, tags).map(({ totals }) => totals);
}

function readErrors(
  steps: readonly StepTotals[],
  kind: string | undefined,
  errorKinds: readonly string[],
): Reading | null {
  const total = sumOf(steps, (one) => one.requests);
  if (kind === undefined)
    return { kind: "share", hits: sumOf(steps, (one) => one.failedCount), total };
  const at = errorKinds.indexOf(kind);
  return at < 0 ? null : { kind: "share", hits: sumOf(steps, (one) => one.failed[at] ?? 0), total };
}

function readChecks(workflows: readonly WorkflowData[], tags: MetricQuery["tags"]): Reading | null {
  const name = tags["check"];
  const checks = workflows
    .flatMap((one) => one.checks)
    .filter((check) => name === undefined || check.name === name);
  if (checks.length === 0) return null;
  const hits = sumOf(checks, (check) => check.passed);
  return { kind: "share", hits, total: hits + sumOf(checks, (check) => check.failed) };
}

function readCustom(workflows: readonly WorkflowData[], query: MetricQuery): Reading | null {
  const all = workflows.map(({ metrics }) => metrics);
  const found = findMetric(all, query.metric, query.tags);
  const seconds = measuredSeconds(workflows);
  if (found !== null) return customReading(found, seconds);
  const declared = workflows.some(({ counters }) => counters.includes(query.metric));
  return declared ? { kind: "count", count: 0, inside: 0, seconds } : null;
}

function customReading(found: MetricTotal, seconds: number): Reading {
  switch (found.kind) {
    case "counter":
      return { kind: "count", count: found.count, inside: found.count, seconds };
    case "gauge":
      return { kind: "value", last: found.last, min: found.min, max: found.max };
    case "rate":
      return { kind: "share", hits: found.hits, total: found.total };
    case "trend":
      return { kind: "distribution", histogram: found.trend.histogram };
  }
}

function distribution(parts: readonly Histogram[]): Reading {
  const [only] = parts;
  if (only !== undefined && parts.length === 1) return { kind: "distribution", histogram: only };
  const histogram = new Histogram();
  for (const part of parts) histogram.merge(part);
  return { kind: "distribution", histogram };
}

/**
 * Durations of whole iterations, or of the group named by the tag; arrivals that never began are part of the former.
 */
function readGroups(
  workflows: readonly WorkflowData[],
  metric: "duration" | "active",
  tags: MetricQuery["tags"],
): Reading | null {
  const { group = WHOLE_ITERATION, ok } = tags;
  const totals = workflows
    .flatMap(({ groups }) => groups)
    .flatMap((one) => (one.name === group ? [one.totals] : []));
  if (totals.length === 0) return null;
  const all = { duration: "duration", active: "active" } as const;
  const okOnly = { duration: "okDuration", active: "okActive" } as const;
  const parts = totals.map((one) => one[(ok === undefined ? all : okOnly)[metric]]);
  if (group !== WHOLE_ITERATION || ok !== undefined) return distribution(parts);
  const waited = workflows.flatMap(({ arrivals }) => arrivals?.waited ?? []);
  return withWaiting(parts, waited);
}

/** Arrivals that were never served count in the latency seen by users, and in no request count. */
function withWaiting(latencies: readonly Histogram[], waited: readonly Histogram[]): Reading {
  const uncounted = sumOf(waited, ({ count }) => count);
  const reading = distribution(uncounted === 0 ? latencies : [...latencies, ...waited]);
  return reading.kind === "distribution" ? { ...reading, uncounted } : reading;
}

function readMissed(arrivals: readonly NonNullable<WorkflowData["arrivals"]>[]): Reading {
  const hits = sumOf(arrivals, (one) => one.missed);
  return { kind: "share", hits, total: hits + sumOf(arrivals, (one) => one.started) };
}

function single(value: number): Reading {
  return { kind: "value", last: value, min: value, max: value };
}

/** Time in which at least one of them was measured: they may overlap, or follow one another. */
function measuredSeconds(workflows: readonly WorkflowData[]): number {
  const begun = workflows
    .filter(({ elapsedSeconds }) => elapsedSeconds > 0)
    .toSorted((a, b) => a.measuredFromSeconds - b.measuredFromSeconds);
  let sum = 0;
  let until = Number.NEGATIVE_INFINITY;
  for (const { measuredFromSeconds: from, elapsedSeconds } of begun) {
    const end = from + elapsedSeconds;
    // One workflow alone gives its time exactly, without the rounding of a difference.
    sum += from >= until ? elapsedSeconds : Math.max(0, end - until);
    until = Math.max(until, end);
  }
  return sum;
}

function sumOf<Item>(items: readonly Item[], amount: (item: Item) => number): number {
  return items.reduce((sum, item) => sum + amount(item), 0);
}
