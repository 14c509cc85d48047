/**
 * Judges a threshold by the measurements. One without `over` uses the totals of the run. One with `over` must hold in
 * every stretch of that length, and remembers the worst. Its time is the measured time of its workflow, from the first
 * instant to the last: warm-up, other workflows and the time after its end are in no stretch.
 *
 * Stretches consist of the workflow's windows where those contain the metric, and are judged when they are complete.
 * Otherwise (checks, groups, arrivals, custom metrics, several workflows at once) the judge keeps about ten earlier
 * readings of the totals and subtracts the newest that is a whole stretch old: such a stretch ends at a check and is at
 * most a fifth longer than required, and rates are over its true length.
 */

import type { ThresholdSpec } from "../job/manifest.ts";
import { Histogram } from "../stats/histogram.ts";
import { WINDOW_MS } from "../stats/window-store.ts";
import { figureText, type Threshold, type ThresholdOp } from "./threshold.ts";
import { showActual } from "./threshold-value.ts";

export interface MetricQuery {
  readonly workflow: string | null;
  readonly metric: string;
  readonly custom: boolean;
  readonly tags: Readonly<Record<string, string>>;
}

/** Current value of a metric: totals since the measurement began. */
export type Reading =
  /** Thousandths of the unit: microseconds for times. */
  | {
      readonly kind: "distribution";
      readonly histogram: Histogram;
      /** Values in it that are not calls. */
      readonly uncounted?: number;
    }
  /** `inside`: the part of the count that ended inside those seconds; calls in the graceful stop did not. */
  | {
      readonly kind: "count";
      readonly count: number;
      readonly inside: number;
      readonly seconds: number;
    }
  | { readonly kind: "share"; readonly hits: number; readonly total: number }
  | { readonly kind: "value"; readonly last: number; readonly min: number; readonly max: number };

export interface MetricSource {
  /** Null when there is no such metric (yet). */
  read(query: MetricQuery): Reading | null;
  /** How long this workflow (null: any) has been measured so far. */
  measuredMs(workflow: string | null): number;
  /** True when no more will be measured of it. */
  ended?(workflow: string | null): boolean;
  /** Value in a stretch of whole windows; undefined where windows do not contain it. */
  stretch?(query: MetricQuery, stretch: Stretch): Reading | null | undefined;
}

/** A stretch of measured time. */
export interface Stretch {
  readonly fromMs: number;
  readonly toMs: number;
  /** Measured time in it: less than its length only in the last one. */
  readonly seconds: number;
  /** The stretch ends with the measured time. */
  readonly last: boolean;
}

export interface Judgement {
  readonly passed: boolean;
  /** In the unit of the expression; null when there was nothing to measure. */
  readonly actual: number | null;
  readonly actualText: string;
}

const READINGS_PER_STRETCH = 10;
const READING_MS_MIN = 100;
const OBSERVE_MS_MAX = 500;
/** Stretches consist of whole windows while those are kept individually. */
const STRETCH_MS_MAX = 60_000;

interface Earlier {
  readonly atMs: number;
  readonly reading: Reading;
}

export class ThresholdJudge {
  readonly threshold: Threshold;
  readonly spec: ThresholdSpec;
  /** Workflow it was declared in; null for one of the whole run. */
  readonly workflow: string | null;
  readonly #query: MetricQuery;
  #earlier: Earlier[] = [];
  /** Result of the last check. */
  latest: { readonly holds: boolean; readonly text: string } | null = null;
  /** End of the last stretch of windows that was judged. */
  #judgedMs = 0;
  /** Worst value of all stretches so far. */
  #worst: number | null = null;
  #aborted = false;

  constructor(threshold: Threshold, spec: ThresholdSpec, workflow: string | null) {
    this.threshold = threshold;
    this.spec = spec;
    this.workflow = workflow;
    const { metric, custom, tags } = threshold;
    // The generator is one for all workflows.
    const own = metric.startsWith("generator.") ? null : workflow;
    this.#query = { workflow: threshold.workflow ?? own, metric, custom, tags };
  }

  /** Often enough to resolve a stretch to a tenth of its length. */
  get observeEveryMs(): number {
    const { overMs } = this.threshold;
    return overMs === null ? OBSERVE_MS_MAX : Math.min(OBSERVE_MS_MAX, readingEveryMs(overMs));
  }

  /** True when it requires a minimum: later data may still make it hold. */
  get isFloor(): boolean {
    const { figure, op } = this.threshold;
    return op.startsWith(">") && (figure.kind === "count" || figure.kind === "rate");
  }

  /** True when this threshold requested the end of the run. */
  get aborted(): boolean {
    return this.#aborted;
  }

  /**
   * To be called every `observeEveryMs` or more often. True when the run should end now because of
   * it.
   */
  observe(source: MetricSource): boolean {
    const reading = source.read(this.#query);
    if (reading === null) return false;
    const { overMs } = this.threshold;
    const measuredMs = source.measuredMs(this.#query.workflow);
    const actual =
      overMs === null
        ? figureOf(reading, this.threshold)
        : this.#over(source, reading, measuredMs, overMs);
    if (actual === null) return false;
    const { unit, value } = this.threshold;
    this.latest = { holds: holds(actual, this.threshold), text: showActual(actual, value, unit) };
    if (this.latest.holds || !this.spec.abortOnFail) return false;
    if (measuredMs < this.spec.afterMs || this.#mayStillHold(actual)) return false;
    this.#aborted = true;
    return true;
  }

  /** Counts of the run only grow: minimums are decided at the end. */
  #mayStillHold(actual: number): boolean {
    const { figure, metric, op, overMs, value } = this.threshold;
    const grows = figure.kind === "count" || metric === "arrivals.missed";
    if (overMs !== null || !grows) return false;
    return op.startsWith(">") || op === "!=" || (op === "==" && actual < value);
  }

  /** Final judgement. Missing data does not pass: a misspelt step must not look like success. */
  judge(source: MetricSource): Judgement {
    const reading = source.read(this.#query);
    const { threshold } = this;
    if (reading !== null && threshold.overMs !== null)
      this.#over(source, reading, source.measuredMs(this.#query.workflow), threshold.overMs);
    const whole = reading === null ? null : figureOf(reading, threshold);
    // A run shorter than the stretch is judged as a whole.
    const actual = threshold.overMs === null ? whole : (this.#worst ?? whole);
    if (actual === null) return { passed: false, actual: null, actualText: this.#nothing(reading) };
    return {
      passed: holds(actual, threshold),
      actual: Number((actual / threshold.unit.scale).toPrecision(12)),
      actualText: showActual(actual, threshold.value, threshold.unit),
    };
  }

  #nothing(reading: Reading | null): string {
    const empty = reading === null || reading.kind === "distribution" || reading.kind === "share";
    return empty ? "no data" : `no ${figureText(this.threshold.figure)} of this metric`;
  }

  /** The worst of the new stretches; null when there is none. */
  #over(source: MetricSource, reading: Reading, nowMs: number, overMs: number): number | null {
    const whole = overMs % WINDOW_MS === 0 && overMs <= STRETCH_MS_MAX;
    if (!whole || source.stretch === undefined) return this.#slide(reading, nowMs, overMs);
    const stepMs = Math.max(WINDOW_MS, Math.round(readingEveryMs(overMs) / WINDOW_MS) * WINDOW_MS);
    let found: number | null = null;
    const judge = (toMs: number, last: boolean): boolean => {
      const fromMs = toMs - overMs;
      const seconds = (Math.min(nowMs, toMs) - fromMs) / 1_000;
      const read = source.stretch?.(this.#query, { fromMs, toMs, seconds, last });
      if (read === undefined) return false;
      const actual = read === null ? null : figureOf(read, this.threshold);
      if (actual !== null && worse(actual, found, this.threshold)) found = actual;
      return true;
    };
    for (; Math.max(overMs, this.#judgedMs + stepMs) <= nowMs; ) {
      const toMs = Math.max(overMs, this.#judgedMs + stepMs);
      if (!judge(toMs, false)) return this.#slide(reading, nowMs, overMs);
      this.#judgedMs = toMs;
    }
    const endMs = Math.ceil(nowMs / WINDOW_MS) * WINDOW_MS;
    if (source.ended?.(this.#query.workflow) === true && nowMs >= overMs) judge(endMs, true);
    if (found !== null && worse(found, this.#worst, this.threshold)) this.#worst = found;
    return found;
  }

  #slide(reading: Reading, nowMs: number, overMs: number): number | null {
    if (nowMs <= 0) return null;
    const last = this.#earlier.at(-1);
    // Measuring begins at zero, so the first stretch begins at the very first instant.
    if (last === undefined || shrunk(reading, last.reading))
      this.#earlier = [{ atMs: last?.atMs ?? 0, reading: nothingOf(reading) }];
    // The newest reading that is a whole stretch old; what is older still is never needed again.
    while ((this.#earlier[1]?.atMs ?? Number.POSITIVE_INFINITY) <= nowMs - overMs)
      this.#earlier.shift();
    const [base] = this.#earlier;
    if (nowMs - (this.#earlier.at(-1)?.atMs ?? 0) >= readingEveryMs(overMs))
      this.#earlier.push({ atMs: nowMs, reading: copyOf(reading) });
    if (base === undefined || base.atMs > nowMs - overMs) return null;
    const actual = figureOf(difference(reading, base, nowMs), this.threshold);
    if (actual !== null && worse(actual, this.#worst, this.threshold)) this.#worst = actual;
    return actual;
  }
}

function readingEveryMs(overMs: number): number {
  return Math.max(READING_MS_MIN, overMs / READINGS_PER_STRETCH);
}

export function nothingOf(reading: Reading): Reading {
  switch (reading.kind) {
    case "distribution":
      return { kind: "distribution", histogram: new Histogram() };
    case "count":
      return { kind: "count", count: 0, inside: 0, seconds: 0 };
    case "share":
      return { kind: "share", hits: 0, total: 0 };
    case "value":
      return reading;
  }
}

/** In base units; null when there is nothing to measure or no such field. */
export function figureOf(reading: Reading, { figure }: Threshold): number | null {
  switch (reading.kind) {
    case "distribution":
      if (figure.kind === "count") return reading.histogram.count - (reading.uncounted ?? 0);
      return distributionFigure(reading.histogram, figure);
    case "count":
      if (figure.kind === "count") return reading.count;
      return figure.kind === "rate" && reading.seconds > 0
        ? reading.inside / reading.seconds
        : null;
    case "share":
      if (figure.kind === "count" || figure.kind === "value") return reading.hits;
      return figure.kind === "rate" && reading.total > 0 ? reading.hits / reading.total : null;
    case "value":
      if (figure.kind === "min") return reading.min;
      if (figure.kind === "max") return reading.max;
      return figure.kind === "value" || figure.kind === "last" ? reading.last : null;
  }
}

function distributionFigure(histogram: Histogram, figure: Threshold["figure"]): number | null {
  if (histogram.count === 0) return null;
  if (figure.kind === "percentile") return histogram.quantile(figure.percent / 100) / 1_000;
  if (figure.kind === "min") return histogram.min / 1_000;
  if (figure.kind === "mean") return histogram.mean / 1_000;
  return figure.kind === "max" ? histogram.max / 1_000 : null;
}

export function holds(actual: number, { op, value }: Threshold): boolean {
  return compare(actual, op, value);
}

function compare(actual: number, op: ThresholdOp, value: number): boolean {
  switch (op) {
    case "<":
      return actual < value;
    case "<=":
      return actual <= value;
    case ">":
      return actual > value;
    case ">=":
      return actual >= value;
    case "==":
      return actual === value;
    case "!=":
      return actual !== value;
  }
}

/** A stretch that fails beats one that holds; then the one further on the wrong side. */
function worse(actual: number, worst: number | null, threshold: Threshold): boolean {
  if (worst === null) return true;
  if (holds(actual, threshold) !== holds(worst, threshold)) return !holds(actual, threshold);
  return threshold.op.startsWith("<")
    ? actual > worst
    : threshold.op.startsWith(">") && actual < worst;
}

export function copyOf(reading: Reading): Reading {
  if (reading.kind !== "distribution") return reading;
  const histogram = new Histogram();
  histogram.merge(reading.histogram);
  return { kind: "distribution", histogram };
}

/** True when the measurement restarted. */
function shrunk(now: Reading, before: Reading): boolean {
  return sizeOf(now) < sizeOf(before) || now.kind !== before.kind;
}

function sizeOf(reading: Reading): number {
  if (reading.kind === "distribution") return reading.histogram.count;
  if (reading.kind === "count") return reading.count;
  return reading.kind === "share" ? reading.total : 0;
}

export function difference(
  now: Reading,
  { reading: before, atMs }: Earlier,
  nowMs: number,
): Reading {
  if (now.kind === "count" && before.kind === "count") {
    return {
      kind: "count",
      count: now.count - before.count,
      inside: now.inside - before.inside,
      seconds: (nowMs - atMs) / 1_000,
    };
  }
  if (now.kind === "share" && before.kind === "share") {
    return { kind: "share", hits: now.hits - before.hits, total: now.total - before.total };
  }
  if (now.kind !== "distribution" || before.kind !== "distribution") return now;
  const histogram = now.histogram.without(before.histogram);
  return { kind: "distribution", histogram };
}
