/**
 * Converts the summary of a running test to points. Counters of a summary are totals and its latencies are whole
 * histograms; a frame has the increments since the previous one, computed by subtraction, so nothing is lost when a
 * frame is late or skipped.
 */

import {
  type FigureDescription,
  type FigureUnit,
  figureName,
  figuresOf,
  STEP_FIGURES,
  TOTAL_FIGURES,
} from "../core/load/results/figures.ts";
import type { RunProgress } from "../core/load/results/live.ts";
import type {
  Distribution,
  MetricSummary,
  RunSummary,
  StepSummary,
  WorkflowSummary,
} from "../core/load/results/model.ts";
import { SparseCells } from "../core/load/stats/sparse-cells.ts";
import { cellsOf, figuresOfCells } from "./cells.ts";
import { KnownLabels, type Labels, labelsKey } from "./labels.ts";
import type { Frame, Point, PointScope } from "./reporter.ts";

/** Series of one run at one reporter. A back-end charges for each; more are dropped and counted. */
const SERIES_MAX = 2_000;

/** Metrics sent during a run; the rest comes with its summary. */
const LIVE_FIGURES: ReadonlySet<string> = new Set([
  "requests",
  "ok",
  "failed",
  "bytesIn",
  "bytesOut",
  "latencyMs",
  "sent",
]);

/** The metric that is sent with its cells. */
const LATENCY = figureName("latencyMs");

/** Our own labels; a tag of the same name would change the identity of a point. */
const OWN_LABELS: ReadonlySet<string> = new Set([
  ...["run", "run_id", "workflow", "step", "protocol", "metric"],
  ...["error", "status", "check", "group", "threshold", "outcome", "result", "quantile"],
]);

interface Latencies {
  readonly cells: SparseCells;
  readonly sumMs: number;
}

/** Builds the frames of one run, for reporters with the same interval. */
export class FrameBuilder {
  readonly #series = new Set<string>();
  readonly #labels = new KnownLabels(SERIES_MAX);
  #counts = new Map<string, number>();
  #latencies = new Map<string, Latencies>();
  #lastMs: number | undefined;

  /** `progress` is live state that matters only during the run; the last frame has none. */
  next(summary: RunSummary, atMs: number, progress: RunProgress | null): Frame {
    const beganMs = Date.parse(summary.startedAt);
    const fromMs = this.#lastMs ?? beganMs;
    // Time series databases reject two values with the same timestamp.
    this.#lastMs = Math.max(this.#lastMs === undefined ? fromMs : fromMs + 1, Math.round(atMs));
    const points = new Points("interval", this.#counts, this.#latencies, this.#labels);
    points.add(summary, progress);
    this.#counts = points.counts;
    this.#latencies = points.latencies;
    const kept = points.list.filter((point) => isKept(this.#series, point));
    return {
      kind: "interval",
      ...{ runBeganMs: beganMs, fromMs, atMs: this.#lastMs },
      labels: this.#labels.same(runLabels(summary)),
      points: kept,
      leftOut: points.list.length - kept.length,
    };
  }
}

/** Shared by all reporters. */
const summaryFrames = new WeakMap<RunSummary, Frame>();

/** Returns every metric of a finished run. */
export function summaryFrame(summary: RunSummary): Frame {
  const made = summaryFrames.get(summary) ?? frameOf(summary);
  summaryFrames.set(summary, made);
  return made;
}

function frameOf(summary: RunSummary): Frame {
  const beganMs = Date.parse(summary.startedAt);
  const points = new Points("summary", new Map(), new Map(), new KnownLabels(SERIES_MAX));
  points.addVerdict(summary);
  points.add(summary, null);
  const series = new Set<string>();
  const kept = points.list.filter((point) => isKept(series, point));
  return {
    kind: "summary",
    ...{ runBeganMs: beganMs, fromMs: beganMs },
    atMs: beganMs + Math.round(summary.durationSeconds * 1_000),
    labels: runLabels(summary),
    points: kept,
    leftOut: points.list.length - kept.length,
  };
}

function isKept(series: Set<string>, point: Point): boolean {
  const key = keyOf(point.scope, point.figure, point.labels);
  if (series.has(key)) return true;
  if (series.size >= SERIES_MAX) return false;
  series.add(key);
  return true;
}

function runLabels({ name, runId, tags, title }: RunSummary): Labels {
  const id = runId === undefined ? {} : { run_id: runId };
  return { ...foreign(tags), run: title ?? name, ...id };
}

function foreign(tags: Labels = {}): Labels {
  const names = Object.keys(tags);
  if (!names.some((name) => OWN_LABELS.has(name))) return tags;
  return Object.fromEntries(Object.entries(tags).filter(([name]) => !OWN_LABELS.has(name)));
}

function keyOf(scope: PointScope, figure: string, labels: Labels): string {
  return `${scope} ${figure} ${labelsKey(labels)}`;
}

class Points {
  readonly list: Point[] = [];
  readonly counts = new Map<string, number>();
  readonly latencies = new Map<string, Latencies>();
  readonly #kind: Frame["kind"];
  readonly #countsBefore: ReadonlyMap<string, number>;
  readonly #latenciesBefore: ReadonlyMap<string, Latencies>;
  readonly #known: KnownLabels;
  readonly #added = new Map<Latencies, SparseCells>();

  constructor(
    kind: Frame["kind"],
    countsBefore: ReadonlyMap<string, number>,
    latenciesBefore: ReadonlyMap<string, Latencies>,
    known: KnownLabels,
  ) {
    this.#known = known;
    this.#kind = kind;
    this.#countsBefore = countsBefore;
    this.#latenciesBefore = latenciesBefore;
  }

  /** Adds the run first, then workflows, metrics, steps: the largest group is the one cut off. */
  add(summary: RunSummary, progress: RunProgress | null): void {
    const { workflows } = summary;
    const ofSteps = new Map(
      workflows.flatMap(({ steps }) =>
        steps.map((step) => [step, latenciesOf(step, progress?.latencies?.get(step))] as const),
      ),
    );
    const ofWorkflows = workflows.map((workflow) => this.#ofWorkflow(workflow, ofSteps));
    const steps = workflows.flatMap((workflow) => workflow.steps);
    const run = this.#labels({});
    this.#together("run", run, steps, summary.totals, together(ofWorkflows));
    const { cpu, lagMsP99 } = summary.generator;
    this.#gauge("run", "generator_cpu", "share", run, cpu);
    this.#gauge("run", "generator_lag_ms_p99", "ms", run, lagMsP99);
    for (const [at, workflow] of workflows.entries()) {
      const labels = this.#labels({ workflow: workflow.name });
      const latencies = ofWorkflows[at] ?? null;
      this.#together("workflow", labels, workflow.steps, workflow.totals, latencies);
      this.#workflow(workflow, labels);
      if (this.#kind === "summary") this.#workflowEnd(workflow);
    }
    for (const { activeVus, name, targetPerSecond } of progress?.workflows ?? []) {
      const labels = this.#labels({ workflow: name });
      this.#gauge("workflow", "active_users", "count", labels, activeVus);
      if (targetPerSecond !== null)
        this.#gauge("workflow", "target_rate", "per second", labels, targetPerSecond);
    }
    for (const { metrics, name } of workflows)
      for (const metric of metrics) this.#metric(metric, name);
    for (const { name, steps: own } of workflows)
      for (const step of own) this.#step(step, name, ofSteps.get(step) ?? null);
  }

  #labels(labels: Labels): Labels {
    return this.#known.same(labels);
  }

  /** Totals of a workflow's steps: adds the increments since the previous frame, which are fewer than all values. */
  #ofWorkflow(
    { name, steps }: WorkflowSummary,
    ofSteps: ReadonlyMap<StepSummary, Latencies | null>,
  ): Latencies | null {
    const all = steps.map((step) => ofSteps.get(step) ?? null);
    const before = this.#latenciesBefore.get(
      keyOf("workflow", LATENCY, this.#labels({ workflow: name })),
    );
    if (before === undefined || all.includes(null)) return together(all);
    const added = steps.map((step, at) =>
      this.#addedTo(keyOf("step", LATENCY, this.#stepLabels(step, name)), all[at] as Latencies),
    );
    const sumMs = all.reduce((sum, one) => sum + (one?.sumMs ?? 0), 0);
    return { cells: before.cells.plus(SparseCells.sum(added)), sumMs };
  }

  #addedTo(key: string, latencies: Latencies): SparseCells {
    const known = this.#added.get(latencies);
    if (known !== undefined) return known;
    const before = this.#latenciesBefore.get(key)?.cells ?? SparseCells.EMPTY;
    const added = latencies.cells.minus(before);
    this.#added.set(latencies, added);
    return added;
  }

  #stepLabels({ name: step, protocol, tags }: StepSummary, workflow: string): Labels {
    return this.#labels({ ...foreign(tags), workflow, step, protocol });
  }

  addVerdict({ durationSeconds, thresholds, verdict }: RunSummary): void {
    const failed = thresholds.filter(({ passed }) => !passed).length;
    this.#gauge("run", "passed", "count", {}, verdict === "passed" ? 1 : 0);
    this.#gauge("run", "thresholds", "count", {}, thresholds.length);
    this.#gauge("run", "thresholds_failed", "count", {}, failed);
    this.#gauge("run", "duration", "seconds", {}, durationSeconds);
    for (const { expression: threshold, passed, workflow } of thresholds) {
      const labels = { ...(workflow === null ? {} : { workflow }), threshold };
      this.#gauge("run", "threshold_passed", "count", labels, passed ? 1 : 0);
    }
  }

  /** Merges several steps. A running test has no totals, so they are added up. */
  #together(
    scope: PointScope,
    labels: Labels,
    steps: readonly StepSummary[],
    totals: RunSummary["totals"],
    all: Latencies | null,
  ): void {
    for (const [field, description] of figuresOf(TOTAL_FIGURES)) {
      if (!this.#wants(field)) continue;
      if (description.kind === "distribution") {
        const latencies = field === "latencyMs" ? all : null;
        const figures = totals?.[field];
        if (typeof figures === "object" || latencies !== null)
          this.#distribution(scope, figureName(field), labels, {
            figures: typeof figures === "object" ? figures : null,
            latencies,
          });
        continue;
      }
      const value = totals?.[field] ?? sumOf(steps, field);
      if (typeof value === "number") this.#value(scope, field, description, labels, value);
    }
  }

  #workflow({ arrivals, checks, iterations }: WorkflowSummary, labels: Labels): void {
    for (const outcome of ["completed", "ended", "failed", "interrupted"] as const)
      this.#counter(
        ...(["workflow", "iterations", "count"] as const),
        this.#labels({ ...labels, outcome }),
        iterations[outcome],
      );
    this.#counter("workflow", "arrivals_started", "count", labels, arrivals?.started);
    this.#counter("workflow", "arrivals_missed", "count", labels, arrivals?.missed);
    for (const { name: check, passed, failed } of checks) {
      const named = { ...labels, check };
      this.#counter("workflow", "checks", "count", { ...named, result: "passed" }, passed);
      this.#counter("workflow", "checks", "count", { ...named, result: "failed" }, failed);
    }
  }

  /** Metrics of a finished workflow beside its steps. */
  #workflowEnd({ arrivals, breakpoint, groups = [], iterations, name }: WorkflowSummary): void {
    const labels = { workflow: name };
    const distributions = {
      iteration_duration_ms: iterations.durationMs,
      iteration_ok_duration_ms: iterations.okDurationMs,
      iteration_active_ms: iterations.activeMs,
      send_lag_ms: arrivals?.sendLagMs,
    };
    for (const [figure, figures] of Object.entries(distributions))
      this.#distributionOf(figure, labels, figures);
    const gauges = {
      arrivals_target: arrivals?.targetPerSecond,
      arrivals_achieved: arrivals?.achievedPerSecond,
    };
    for (const [figure, value] of Object.entries(gauges))
      if (value !== undefined) this.#gauge("workflow", figure, "per second", labels, value);
    for (const bound of ["held", "broke"] as const) {
      const load = breakpoint?.[bound] ?? null;
      if (load !== null) this.#gauge("workflow", `breakpoint_${bound}`, "count", labels, load);
    }
    for (const { activeMs, durationMs, failed, name: group, ok } of groups) {
      const named = { ...labels, group };
      this.#counter("workflow", "groups", "count", { ...named, result: "passed" }, ok);
      this.#counter("workflow", "groups", "count", { ...named, result: "failed" }, failed);
      this.#distributionOf("group_duration_ms", named, durationMs);
      this.#distributionOf("group_active_ms", named, activeMs);
    }
  }

  #distributionOf(figure: string, labels: Labels, figures: Distribution | undefined): void {
    if (figures !== undefined)
      this.#distribution("workflow", figure, labels, { figures, latencies: null });
  }

  #step(step: StepSummary, workflow: string, latencies: Latencies | null): void {
    const labels = this.#stepLabels(step, workflow);
    for (const [field, description] of figuresOf(STEP_FIGURES)) {
      if (!this.#wants(field)) continue;
      const value = step[field];
      if (typeof value === "object")
        this.#distribution("step", figureName(field), labels, {
          figures: value,
          latencies: field === "latencyMs" ? latencies : null,
        });
      else if (value !== undefined) this.#value("step", field, description, labels, value);
    }
    for (const [error, count] of Object.entries(step.errors))
      this.#counter("step", "errors", "count", this.#labels({ ...labels, error }), count);
    for (const [status, count] of statusClasses(step.statuses))
      this.#counter("step", "statuses", "count", this.#labels({ ...labels, status }), count);
  }

  #metric({ kind, name, tags, values }: MetricSummary, workflow: string): void {
    const labels = { ...foreign(tags), workflow, metric: name };
    for (const [value, amount] of Object.entries(values)) {
      if (kind === "counter" && value === "count")
        this.#counter("metric", "count", "count", labels, amount);
      else this.#gauge("metric", `${kind}_${figureName(value)}`, "count", labels, amount);
    }
  }

  #wants(field: string): boolean {
    return this.#kind === "summary" || LIVE_FIGURES.has(field);
  }

  #value(
    scope: PointScope,
    field: string,
    { kind, unit }: FigureDescription,
    labels: Labels,
    value: number,
  ): void {
    if (kind === "counter") this.#counter(scope, figureName(field), unit, labels, value);
    else this.#gauge(scope, figureName(field), unit, labels, value);
  }

  #counter(
    scope: PointScope,
    figure: string,
    unit: FigureUnit,
    labels: Labels,
    total: number | undefined,
  ): void {
    if (total === undefined) return;
    const key = keyOf(scope, figure, labels);
    this.counts.set(key, total);
    const increment = Math.max(0, total - (this.#countsBefore.get(key) ?? 0));
    this.list.push({ kind: "counter", scope, figure, unit, labels, total, increment });
  }

  #gauge(scope: PointScope, figure: string, unit: FigureUnit, labels: Labels, value: number): void {
    this.list.push({ kind: "gauge", scope, figure, unit, labels, value });
  }

  /** A summary brings its own metrics; those of an interval are computed from the increments. */
  #distribution(
    scope: PointScope,
    figure: string,
    labels: Labels,
    { figures, latencies }: { figures: Distribution | null; latencies: Latencies | null },
  ): void {
    const named = { kind: "distribution", scope, figure, unit: "ms", labels } as const;
    if (figures !== null && this.#kind === "summary") {
      const sum = figures.mean * figures.count;
      this.list.push({ ...named, figures, sum, total: latencies });
      return;
    }
    if (latencies === null) return;
    const key = keyOf(scope, figure, labels);
    this.latencies.set(key, latencies);
    const added = this.#addedTo(key, latencies);
    const sum = Math.max(0, latencies.sumMs - (this.#latenciesBefore.get(key)?.sumMs ?? 0));
    this.list.push({ ...named, figures: figuresOfCells(added, sum), sum, total: latencies });
  }
}

function sumOf(steps: readonly StepSummary[], field: keyof typeof TOTAL_FIGURES): number {
  return steps.reduce((sum, step) => {
    const value = step[field];
    return sum + (typeof value === "number" ? value : 0);
  }, 0);
}

/** Falls back to the windows of a step, which hold all latencies: in a file by seconds. */
function latenciesOf(
  { latencyMs, windows }: StepSummary,
  known: SparseCells | undefined,
): Latencies | null {
  const cells = known ?? (windows === undefined ? null : cellsOf(windows.histograms));
  return cells === null ? null : { cells, sumMs: latencyMs.mean * latencyMs.count };
}

/** Null if those of any one are unknown. */
function together(all: readonly (Latencies | null)[]): Latencies | null {
  const known = all.filter((one) => one !== null);
  if (known.length < all.length) return null;
  return {
    cells: SparseCells.sum(known.map(({ cells }) => cells)),
    sumMs: known.reduce((sum, { sumMs }) => sum + sumMs, 0),
  };
}

/** "200" and "204" are "2xx"; other statuses than HTTP's stay as they are. */
function statusClasses(statuses: Readonly<Record<string, number>>): Map<string, number> {
  const classes = new Map<string, number>();
  for (const [status, count] of Object.entries(statuses)) {
    const name = /^[1-5]\d\d$/.test(status) ? `${status[0]}xx` : status;
    classes.set(name, (classes.get(name) ?? 0) + count);
  }
  return classes;
}
