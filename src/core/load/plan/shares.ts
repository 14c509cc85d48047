/**
 * Which of several flows an iteration belongs to, by its number alone: after n iterations each flow
 * has had its share of n to within one. This is Tijdeman's solution of the chairman assignment
 * problem: among the flows that may have a turn, the one whose turn must come first.
 */

import { assert } from "../../base/assert.ts";

/** Weights are brought to whole numbers whose sum is the length of the pattern. */
const PATTERN_MAX = 10_000;

export class Shares {
  readonly #pattern: Uint16Array;
  #next = 0;

  constructor(weights: readonly number[]) {
    assert(weights.length > 0 && weights.length < 0xffff, "a mix has flows");
    this.#pattern = patternOf(wholeNumbers(weights));
  }

  /** The flow of the next iteration. */
  take(): number {
    const flow = this.#pattern[this.#next] as number;
    this.#next = (this.#next + 1) % this.#pattern.length;
    return flow;
  }

  /** How many of the next `count` iterations belong to each flow. */
  ahead(count: number, flows: number): number[] {
    const result = new Array<number>(flows).fill(0);
    const { length } = this.#pattern;
    const whole = Math.floor(count / length);
    for (const flow of this.#pattern) result[flow] = (result[flow] ?? 0) + whole;
    for (let i = 0; i < count - whole * length; i++) {
      const flow = this.#pattern[(this.#next + i) % length] as number;
      result[flow] = (result[flow] ?? 0) + 1;
    }
    return result;
  }
}

function wholeNumbers(weights: readonly number[]): number[] {
  assert(
    weights.every((weight) => weight > 0 && Number.isFinite(weight)),
    "weights are positive",
  );
  const sum = weights.reduce((all, weight) => all + weight, 0);
  const whole = weights.every((weight) => Number.isInteger(weight)) && sum <= PATTERN_MAX;
  if (!whole) return weights.map((weight) => Math.max(1, Math.round((weight / sum) * PATTERN_MAX)));
  const divisor = weights.reduce(greatestCommonDivisor);
  return weights.map((weight) => weight / divisor);
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}

function patternOf(weights: readonly number[]): Uint16Array {
  const sum = weights.reduce((all, weight) => all + weight, 0);
  const slack = weights.length === 1 ? 0 : 1 / (2 * weights.length - 2);
  const taken = weights.map(() => 0);
  return Uint16Array.from({ length: sum }, (_, at) => {
    let best = 0;
    let bestDeadline = Number.POSITIVE_INFINITY;
    for (const [flow, weight] of weights.entries()) {
      const due = (weight * (at + 1)) / sum - (taken[flow] ?? 0);
      if (due < slack - 1e-9) continue;
      const deadline = ((1 - slack - due) * sum) / weight;
      if (deadline < bestDeadline) [best, bestDeadline] = [flow, deadline];
    }
    taken[best] = (taken[best] ?? 0) + 1;
    return best;
  });
}
