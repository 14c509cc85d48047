/** A threshold judged over one stretch of a run, between a mark and a later time. */

import type { Threshold } from "./threshold.ts";
import {
  copyOf,
  difference,
  figureOf,
  holds,
  type Judgement,
  type MetricQuery,
  type MetricSource,
  nothingOf,
  type Reading,
} from "./threshold-judge.ts";
import { showActual } from "./threshold-value.ts";

export class ThresholdSpan {
  readonly threshold: Threshold;
  readonly #query: MetricQuery;
  #markedMs = 0;
  #marked: Reading | null = null;

  constructor(threshold: Threshold, workflow: string) {
    this.threshold = threshold;
    const { custom, metric, tags } = threshold;
    const own = metric.startsWith("generator.") ? null : workflow;
    this.#query = { workflow: threshold.workflow ?? own, metric, custom, tags };
  }

  mark(source: MetricSource): void {
    const reading = source.read(this.#query);
    this.#marked = reading === null ? null : copyOf(reading);
    this.#markedMs = source.measuredMs(this.#query.workflow);
  }

  /** Missing data does not pass. */
  judge(source: MetricSource): Judgement {
    const reading = source.read(this.#query);
    const nothing = { passed: false, actual: null, actualText: "no data" };
    if (reading === null) return nothing;
    const before = { atMs: this.#markedMs, reading: this.#marked ?? nothingOf(reading) };
    const now = source.measuredMs(this.#query.workflow);
    const actual = figureOf(difference(reading, before, now), this.threshold);
    if (actual === null) return nothing;
    const { unit, value } = this.threshold;
    return {
      passed: holds(actual, this.threshold),
      actual: Number((actual / unit.scale).toPrecision(12)),
      actualText: showActual(actual, value, unit),
    };
  }
}
