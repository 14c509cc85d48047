/**
 * Two runs side by side: for every step that both have, rate, latency percentiles and error rate before and after, with
 * the change, its 95 % interval and whether it can be chance.
 *
 * A regression is all three: worse, beyond the limit, and significant after correction for the number of rows (see
 * docs/guide/compare.md). Deterministic: the same files give the same table.
 */

import { assertNever } from "../../core/base/assert.ts";
import type { RunSummary, StepSummary } from "../../core/load/results/model.ts";
import { differencesOfConditions, untrustedRuns, workflowKey } from "./conditions.ts";
import { burstiness, type Spread, spreadOfQuantile, spreadOfRate } from "./spread.ts";
import { fisherP, holm, studentP, studentQuantile } from "./tests-of-significance.ts";

const COMPARE_SCHEMA = "hyperscale/compare@1";
export const METRICS = ["rate", "p50", "p95", "p99", "errors"] as const;
export type Metric = (typeof METRICS)[number];

/** A row is significant below this. */
const SIGNIFICANCE = 0.05;
/** Fewer requests than this say nothing about an error rate. */
const REQUESTS_MIN = 30;
/** Below this many expected failures the exact test is used. */
const EXPECTED_MIN = 5;
/** Degrees of freedom that are as good as infinite. */
const DEGREES_MANY = 1e6;

export interface CompareOptions {
  /** Relative change of rate and latency that is tolerated: 0.05 is 5 %. */
  readonly limit: number;
  /** Rise of the error rate that is tolerated, as a share of all requests: 0.001 is 0.1 points. */
  readonly errorLimit: number;
  readonly metrics: readonly Metric[];
  /** Judges runs that cannot be trusted, too. */
  readonly allowUntrusted?: boolean | undefined;
}

/** Tolerances of `compare` by default. */
export const DEFAULT_LIMITS: CompareOptions = {
  limit: 0.05,
  errorLimit: 0.001,
  metrics: METRICS,
};

export type RowResult =
  | "regression"
  | "improvement"
  /** Really changed, but not beyond the limit. */
  | "within limit"
  /** The interval lies inside the limit on both sides: shown to be the same. */
  | "same"
  /** Could be chance. */
  | "unclear"
  | "too little data";

export interface ComparedRow {
  readonly workflow: string;
  readonly step: string;
  readonly metric: Metric;
  /** Per second, milliseconds, or share of requests. */
  readonly before: number;
  readonly after: number;
  /** after / before - 1; of errors the difference of the shares. Null when before is zero. */
  readonly change: number | null;
  /** 95 % interval of `change`. */
  readonly interval: readonly [number, number] | null;
  /** Two-sided, corrected for the number of rows; null when there is too little data. */
  readonly p: number | null;
  readonly result: RowResult;
}

export type CompareVerdict =
  | "regression"
  | "no regression"
  /** No row shows anything: each could be chance or has too little data. */
  | "undecided"
  /** The figures of a run cannot be trusted, whatever the rows say. */
  | "untrusted";

export interface Comparison {
  readonly schema: typeof COMPARE_SCHEMA;
  readonly verdict: CompareVerdict;
  readonly limit: number;
  readonly errorLimit: number;
  readonly regressions: number;
  readonly improvements: number;
  /** Rows that could be chance or have too little data. */
  readonly unclear: number;
  readonly rows: readonly ComparedRow[];
  /** Steps as "workflow / step" that only one of the runs has. */
  readonly onlyBefore: readonly string[];
  readonly onlyAfter: readonly string[];
  /** Which of the runs cannot be trusted, and why. */
  readonly untrusted: readonly string[];
  /** Why the two runs may not be comparable. */
  readonly warnings: readonly string[];
}

interface Pair {
  readonly workflow: string;
  readonly before: StepSummary;
  readonly after: StepSummary;
}

/** A row before the correction for the number of rows. */
type RawRow = Omit<ComparedRow, "result">;

export function compareRuns(
  before: RunSummary,
  after: RunSummary,
  options: CompareOptions,
): Comparison {
  const stepsBefore = stepsOf(before);
  const stepsAfter = stepsOf(after);
  const raw: RawRow[] = [];
  for (const [key, { workflow, step }] of stepsBefore) {
    const match = stepsAfter.get(key);
    if (match === undefined) continue;
    const pair = { workflow, before: step, after: match.step };
    for (const metric of options.metrics) raw.push(rawRow(pair, metric));
  }
  const corrected = holm(raw.flatMap(({ p }) => (p === null ? [] : [p])));
  let next = 0;
  const rows = raw.map((row): ComparedRow => {
    const p = row.p === null ? null : (corrected[next++] ?? 1);
    return { ...row, p, result: judge({ ...row, p }, options) };
  });
  const count = (result: RowResult) => rows.filter((row) => row.result === result).length;
  const untrusted = untrustedRuns(before, after);
  return {
    schema: COMPARE_SCHEMA,
    verdict: untrusted.length > 0 && !options.allowUntrusted ? "untrusted" : verdictOf(rows),
    limit: options.limit,
    errorLimit: options.errorLimit,
    regressions: count("regression"),
    improvements: count("improvement"),
    unclear: count("unclear") + count("too little data"),
    rows,
    onlyBefore: [...stepsBefore.keys()].filter((key) => !stepsAfter.has(key)),
    onlyAfter: [...stepsAfter.keys()].filter((key) => !stepsBefore.has(key)),
    untrusted,
    warnings: differencesOfConditions(before, after),
  };
}

const SHOWN: readonly RowResult[] = ["improvement", "within limit", "same"];

/** No failure before or after says nothing about rate and latency. */
function verdictOf(rows: readonly ComparedRow[]): CompareVerdict {
  if (rows.some(({ result }) => result === "regression")) return "regression";
  const shows = rows.some((row) => SHOWN.includes(row.result) && !isWithoutFailures(row));
  const isAll = rows.every((row) => SHOWN.includes(row.result));
  return shows || isAll ? "no regression" : "undecided";
}

function isWithoutFailures({ after, before, metric }: RawRow): boolean {
  return metric === "errors" && before === 0 && after === 0;
}

function stepsOf(summary: RunSummary): Map<string, { workflow: string; step: StepSummary }> {
  return new Map(
    summary.workflows.flatMap(({ name, steps }) =>
      steps.map((step) => {
        const key = workflowKey(summary, name);
        return [
          key === "" ? step.name : `${key} / ${step.name}`,
          { workflow: name, step },
        ] as const;
      }),
    ),
  );
}

function rawRow(pair: Pair, metric: Metric): RawRow {
  switch (metric) {
    case "rate":
      return rateRow(pair);
    case "p50":
    case "p95":
    case "p99":
      return quantileRow(pair, metric);
    case "errors":
      return errorRow(pair);
    default:
      return assertNever(metric);
  }
}

function rateRow(pair: Pair): RawRow {
  const { before, after } = pair;
  const head = headOf(pair, "rate", before.ratePerSecond, after.ratePerSecond);
  // A step that stopped answering has no windows to judge it from, and needs none.
  const [one, other] = [before.requests, after.requests];
  if (Math.min(one, other) === 0 && Math.max(one, other) >= REQUESTS_MIN) {
    return { ...head, change: one === 0 ? null : -1, interval: null, p: 0 };
  }
  return ratioRow(head, spreadOfRate(before), spreadOfRate(after));
}

const FRACTIONS = { p50: 0.5, p95: 0.95, p99: 0.99 } as const;

function quantileRow(pair: Pair, metric: keyof typeof FRACTIONS): RawRow {
  const { before, after } = pair;
  const head = headOf(pair, metric, before.latencyMs[metric], after.latencyMs[metric]);
  const spread = (step: StepSummary) => spreadOfQuantile(step, FRACTIONS[metric]);
  return ratioRow(head, spread(before), spread(after));
}

type Head = Pick<RawRow, "workflow" | "step" | "metric" | "before" | "after">;

/** Welch's t test on the logarithms, which makes twice as slow and twice as fast equally far. */
function ratioRow(head: Head, one: Spread | null, other: Spread | null): RawRow {
  const change = head.before > 0 ? head.after / head.before - 1 : null;
  if (one === null || other === null || head.before <= 0 || head.after <= 0) {
    return { ...head, change, interval: null, p: null };
  }
  const log = Math.log(head.after / head.before);
  const error = Math.hypot(one.logError, other.logError);
  if (error === 0) return { ...head, change, interval: null, p: log === 0 ? 1 : 0 };
  const degrees = welch(one.logError ** 2, one.worth, other.logError ** 2, other.worth);
  const reach = studentQuantile(SIGNIFICANCE, degrees) * error;
  return {
    ...head,
    change,
    interval: [Math.exp(log - reach) - 1, Math.exp(log + reach) - 1],
    p: studentP(log / error, degrees),
  };
}

/** Two shares: pooled test, widened when failures come in bursts; exact when they are few. */
function errorRow(pair: Pair): RawRow {
  const { before, after } = pair;
  const shareOf = ({ failed, requests }: StepSummary) => (requests === 0 ? 0 : failed / requests);
  const head = headOf(pair, "errors", shareOf(before), shareOf(after));
  const change = head.after - head.before;
  if (Math.min(before.requests, after.requests) < REQUESTS_MIN) {
    return { ...head, change, interval: null, p: null };
  }
  const pooled = (before.failed + after.failed) / (before.requests + after.requests);
  const [one, other] = [burstiness(before), burstiness(after)];
  const rarer = Math.min(pooled, 1 - pooled) * Math.min(before.requests, after.requests);
  // Without bursts the number of requests is what counts, and it is large.
  const degrees = Math.min(Math.max(one.worth + other.worth - 2, 1), DEGREES_MANY);
  const variance = pooled * (1 - pooled);
  const error = Math.sqrt(
    (variance * one.factor) / before.requests + (variance * other.factor) / after.requests,
  );
  const p =
    rarer < EXPECTED_MIN
      ? fisherP(before.failed, before.requests, after.failed, after.requests)
      : studentP(change / error, degrees);
  return { ...head, change, interval: errorInterval(pair, [one.factor, other.factor], degrees), p };
}

/** Agresti and Caffo: one success and one failure added to each side keep it honest near zero. */
function errorInterval(
  { before, after }: Pair,
  factors: readonly [number, number],
  degrees: number,
): readonly [number, number] {
  const share = ({ failed, requests }: StepSummary) => (failed + 1) / (requests + 2);
  const variance = (step: StepSummary, factor: number) =>
    (share(step) * (1 - share(step)) * factor) / (step.requests + 2);
  const error = Math.sqrt(variance(before, factors[0]) + variance(after, factors[1]));
  const reach = studentQuantile(SIGNIFICANCE, degrees) * error;
  const middle = share(after) - share(before);
  return [Math.max(-1, middle - reach), Math.min(1, middle + reach)];
}

/** Welch and Satterthwaite's degrees of freedom of a difference of two means. */
function welch(varianceA: number, countA: number, varianceB: number, countB: number): number {
  const total = varianceA + varianceB;
  return total ** 2 / (varianceA ** 2 / (countA - 1) + varianceB ** 2 / (countB - 1));
}

function judge(row: RawRow, options: CompareOptions): RowResult {
  const { p, interval, metric } = row;
  if (p === null) return "too little data";
  if (isWithoutFailures(row)) return "same";
  const limit = metric === "errors" ? options.errorLimit : options.limit;
  const change = row.change ?? Number.POSITIVE_INFINITY;
  if (p < SIGNIFICANCE) {
    if (Math.abs(change) <= limit) return "within limit";
    return change > 0 === (metric === "rate") ? "improvement" : "regression";
  }
  // No interval: neither run varied at all.
  if (interval === null) return change === 0 ? "same" : "unclear";
  return interval[0] >= -limit && interval[1] <= limit ? "same" : "unclear";
}

function headOf(
  { workflow, before: step }: Pair,
  metric: Metric,
  before: number,
  after: number,
): Head {
  return { workflow, step: step.name, metric, before, after };
}
