/**
 * From totals to the results model: distributions in milliseconds, steps, custom metrics, undeclared gates, and the
 * verdict.
 */

import { CELLS_MAX, cellHigh, Histogram } from "../stats/histogram.ts";
import type { MetricTotal, MetricTotals } from "../stats/metrics.ts";
import { NO_SERIES, summariseSeries } from "../stats/series.ts";
import { STATUS_OTHER, type StepTotals } from "../stats/step-stats.ts";
import type { WindowStore } from "../stats/window-store.ts";
import type { StepWindow } from "../stats/windows.ts";
import type {
  Distribution,
  HistogramSummary,
  MetricSummary,
  StepSummary,
  ThresholdOutcome,
  Totals,
  Verdict,
  WorkflowStatus,
} from "./model.ts";
import type { MetricSource, ThresholdJudge } from "./threshold-judge.ts";

const FRACTIONS = [0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999] as const;

/** Microseconds in, milliseconds out (or thousandths in, units out). */
export function distribution(histogram: Histogram): Distribution {
  const [p50, p75, p90, p95, p99, p99_9, p99_99] = histogram.quantiles(FRACTIONS).map(fromMicros);
  return {
    count: histogram.count,
    min: fromMicros(histogram.min),
    mean: fromMicros(histogram.mean),
    p50: p50 ?? 0,
    p75: p75 ?? 0,
    p90: p90 ?? 0,
    p95: p95 ?? 0,
    p99: p99 ?? 0,
    p99_9: p99_9 ?? 0,
    p99_99: p99_99 ?? 0,
    max: fromMicros(histogram.max),
  };
}

/** Whole microseconds exceed the precision of the clock; more digits only bloat the file. */
function fromMicros(value: number): number {
  return Math.round(value) / 1_000;
}

/**
 * Buckets of two significant digits: 0.010, 0.011, … 0.099, 0.10, 0.11, … milliseconds. Empty ones are left out. A cell
 * of the fine histogram goes to the bucket that contains its upper end.
 */
export function histogramSummary(histogram: Histogram): HistogramSummary {
  const { max, min } = histogram;
  const upToMs: number[] = [];
  const count: number[] = [];
  let last = -1;
  histogram.forEachCell((cell, times) => {
    const high = cellHigh(cell);
    const isInside = high >= min && high <= max;
    const bound = isInside ? boundMs(cell) : roundUp(Math.min(Math.max(high, min), max)) / 1_000;
    if (bound === last) count[count.length - 1] = (count[count.length - 1] ?? 0) + times;
    else {
      upToMs.push(bound);
      count.push(times);
      last = bound;
    }
  });
  return { upToMs, count };
}

/** Placeholder where no histogram is read. */
const NO_HISTOGRAM: HistogramSummary = { upToMs: [], count: [] };

/** Bounds of the buckets by cell, computed on first use. */
const BOUNDS_MS = new Float64Array(CELLS_MAX).fill(-1);

function boundMs(cell: number): number {
  const known = BOUNDS_MS[cell] as number;
  if (known >= 0) return known;
  const bound = roundUp(cellHigh(cell)) / 1_000;
  BOUNDS_MS[cell] = bound;
  return bound;
}

/** Rounds up to two significant digits. */
function roundUp(micros: number): number {
  if (micros <= 10) return Math.ceil(micros);
  const unit = 10 ** (Math.floor(Math.log10(micros)) - 1);
  return Math.ceil(micros / unit - 1e-9) * unit;
}

/** Series of a step; `secondsAt` maps measured time in milliseconds to the time of the run. */
interface StepTime {
  readonly windows: WindowStore<StepWindow>;
  readonly secondsAt: (ms: number) => number;
}

/**
 * `errorKinds` names the kinds in the order of `StepTotals.failed`; without `time` there are no series. The histogram
 * is computed when it is first read: a screen shows that of one step.
 */
export function summariseStep(
  name: string,
  protocol: string,
  tags: Readonly<Record<string, string>>,
  totals: StepTotals,
  time: StepTime | null,
  elapsedSeconds: number,
  errorKinds: readonly string[],
): StepSummary {
  const latencyMs = distribution(totals.latency);
  const errors = errorKinds
    .map((kind, at): [string, number] => [kind, totals.failed[at] ?? 0])
    .filter(([, count]) => count > 0);
  const statuses = [...totals.statuses]
    .toSorted(([a], [b]) => a - b)
    .map(([status, count]): [string, number] => [
      status === STATUS_OTHER ? "other" : String(status),
      count,
    ]);
  let histogram = time === null ? NO_HISTOGRAM : undefined;
  return {
    name,
    protocol,
    tags,
    requests: totals.requests,
    ok: totals.ok,
    failed: totals.failedCount,
    interrupted: totals.interrupted,
    errors: Object.fromEntries(errors),
    statuses: Object.fromEntries(statuses),
    ratePerSecond: perSecond(totals.inside.calls, elapsedSeconds),
    bytesIn: totals.bytesIn,
    bytesOut: totals.bytesOut,
    latencyMs,
    okLatencyMs: totals.failedLatency.count === 0 ? latencyMs : distribution(totals.okLatency),
    serviceMs: totals.corrected ? distribution(totals.service) : latencyMs,
    firstByteMs: distribution(totals.firstByte),
    connectMs: distribution(totals.connect),
    tlsMs: distribution(totals.tls),
    get histogram() {
      histogram ??= histogramSummary(totals.latency);
      return histogram;
    },
    sent: totals.sent,
    series: time === null ? NO_SERIES : summariseSeries(time.windows, time.secondsAt, errorKinds),
  };
}

/** Several steps together. `sent` counts all calls, including those beside the iterations. */
export function totalsOf(
  steps: readonly StepTotals[],
  sent: number,
  elapsedSeconds: number,
): Totals {
  const [latency, okLatency] = [new Histogram(), new Histogram()];
  for (const step of steps) {
    latency.merge(step.latency);
    okLatency.merge(step.okLatency);
  }
  const sum = (value: (step: StepTotals) => number): number =>
    steps.reduce((all, step) => all + value(step), 0);
  return {
    requests: sum((step) => step.requests),
    ok: sum((step) => step.ok),
    failed: sum((step) => step.failedCount),
    sent,
    bytesIn: sum((step) => step.bytesIn),
    bytesOut: sum((step) => step.bytesOut),
    ratePerSecond: perSecond(
      sum((step) => step.inside.calls),
      elapsedSeconds,
    ),
    latencyMs: distribution(latency),
    okLatencyMs: distribution(okLatency),
  };
}

export function perSecond(count: number, seconds: number): number {
  return seconds > 0 ? Number((count / seconds).toFixed(3)) : 0;
}

export function summariseMetrics(metrics: MetricTotals, elapsedSeconds: number): MetricSummary[] {
  return metrics.list().map((total) => ({
    name: total.name,
    kind: total.kind,
    tags: total.tags,
    values: metricValues(total, elapsedSeconds),
  }));
}

function metricValues(total: MetricTotal, elapsedSeconds: number): Record<string, number> {
  switch (total.kind) {
    case "counter":
      return { count: total.count, ratePerSecond: perSecond(total.count, elapsedSeconds) };
    case "gauge":
      return { last: total.last, min: total.min, max: total.max };
    case "rate":
      return {
        hits: total.hits,
        total: total.total,
        rate: total.total === 0 ? 0 : total.hits / total.total,
      };
    case "trend":
      return { ...distribution(total.trend.histogram) };
  }
}

/** Outcome of a threshold. */
export function thresholdOutcome(judge: ThresholdJudge, source: MetricSource): ThresholdOutcome {
  return {
    expression: judge.threshold.expression,
    ...judge.judge(source),
    workflow: judge.threshold.workflow ?? judge.workflow,
    implicit: false,
    aborted: judge.aborted,
  };
}

interface VerdictInput {
  readonly thresholds: readonly ThresholdOutcome[];
  readonly workflows: readonly {
    readonly name: string;
    readonly status: WorkflowStatus;
    readonly error: string | null;
  }[];
  /** Ended by the user before its time. */
  readonly interrupted: boolean;
  /** Remarks beside the verdict; they fail nothing. */
  readonly remarks: readonly string[];
}

/** An interrupted run stays interrupted, whatever its thresholds say of the part that ran. */
export function judge(input: VerdictInput): {
  readonly verdict: Verdict;
  readonly reasons: readonly string[];
} {
  const failed = input.thresholds.filter(({ passed }) => !passed).map(thresholdReason);
  const broken = input.workflows
    .filter(({ status }) => status === "failed" || (status === "not run" && !input.interrupted))
    .map(({ name, status, error }) => {
      const what = status === "failed" ? "failed" : "was not run";
      return `workflow "${name}" ${what}${error === null ? "" : `: ${error}`}`;
    });
  const reasons = [...failed, ...broken, ...input.remarks];
  if (input.interrupted)
    return { verdict: "interrupted", reasons: ["the run was interrupted", ...reasons] };
  return { verdict: failed.length + broken.length === 0 ? "passed" : "failed", reasons };
}

function thresholdReason({ expression, actualText, workflow, aborted }: ThresholdOutcome): string {
  const where = workflow === null ? "" : ` in workflow "${workflow}"`;
  const end = aborted ? ", and ended the run" : "";
  return `${expression} did not hold${where}: ${actualText}${end}`;
}
