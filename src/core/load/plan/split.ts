/**
 * A plan split over several places that load at the same time, each with its own cores: together they make the
 * load that one place would have made.
 *
 *     users        by largest remainder, at least one in each place
 *     rates        by factor, so that they add up exactly
 *     iterations   consecutive ranges
 *     rows         of feeds that are used once: consecutive ranges, a row for each iteration first
 *     numbers      of users begin in each place behind those of the place before
 *
 * A plan with fewer users or iterations than there are places is made by the first places only.
 */

import { assert, assertNever } from "../../base/assert.ts";
import { type LoadPlan, type PlanPart, planVusMax, type Stage } from "./load.ts";

/** Number of these places that can make a plan together; 0: one place only, as a whole. */
export function placesOf(load: LoadPlan, places: number): number {
  switch (load.kind) {
    // The next load of a search depends on the result of the last one, which is known only where it runs.
    case "search":
      return 0;
    case "once":
      return 1;
    case "shared":
      return Math.min(places, load.vus, load.iterations);
    case "vus":
    case "rate":
    case "perUser":
      return Math.min(places, planVusMax(load));
    default:
      return assertNever(load);
  }
}

/** Part of one place; null: nothing of this plan. */
export function splitPlan(
  load: LoadPlan,
  weights: readonly number[],
  index: number,
): { readonly load: LoadPlan; readonly part: PlanPart } | null {
  const count = placesOf(load, weights.length);
  assert(count > 0, "a plan is split only where it can be");
  if (index >= count) return null;
  const own = weights.slice(0, count);
  const users = apportion(planVusMax(load), own, 1);
  const iterations = load.kind === "shared" ? apportion(load.iterations, own, 1) : [];
  const perUser = load.kind === "perUser" ? users.map((one) => one * load.iterations) : undefined;
  return {
    load: partOf(load, { users, iterations, weights: own, index }),
    part: {
      ...{ index, count, weights: own },
      firstUser: sum(users.slice(0, index)),
      users: sum(users),
      firstIteration: sum(iterations.slice(0, index)),
      iterations: load.kind === "shared" ? iterations : perUser,
    },
  };
}

/** Range of the rows of one part in [0, rows). */
export function rowsOf(
  rows: number,
  { index, iterations, weights }: Pick<PlanPart, "index" | "iterations" | "weights">,
): { readonly from: number; readonly to: number } {
  const parts =
    iterations === undefined
      ? apportion(rows, weights, 0)
      : rowsOfIterations(rows, iterations, weights);
  const from = sum(parts.slice(0, index));
  return { from, to: from + (parts[index] ?? 0) };
}

/** No iteration is without a row while another place has a row without an iteration. */
function rowsOfIterations(
  rows: number,
  iterations: readonly number[],
  weights: readonly number[],
): readonly number[] {
  const spare = rows - sum(iterations);
  if (spare < 0) return apportion(rows, iterations, 0);
  const more = apportion(spare, weights, 0);
  return iterations.map((own, at) => own + (more[at] ?? 0));
}

/** Whole numbers in proportion to the weights that add up to the total; places below the minimum take from others. */
export function apportion(
  total: number,
  weights: readonly number[],
  least: number,
): readonly number[] {
  assert(total >= least * weights.length, "everybody gets the least there is");
  const parts = [...largestRemainder(total, weights)];
  for (let poorest = parts.findIndex((one) => one < least); poorest >= 0; ) {
    const richest = parts.indexOf(Math.max(...parts));
    parts[richest] = (parts[richest] ?? 0) - 1;
    parts[poorest] = (parts[poorest] ?? 0) + 1;
    poorest = parts.findIndex((one) => one < least);
  }
  return parts;
}

function largestRemainder(total: number, weights: readonly number[]): readonly number[] {
  const all = sum(weights);
  assert(all > 0, "somebody has a part");
  const exact = weights.map((weight) => (total * weight) / all);
  const whole = exact.map(Math.floor);
  const left = total - sum(whole);
  const byRemainder = exact
    .map((value, at) => ({ at, remainder: value - Math.floor(value) }))
    .toSorted((a, b) => b.remainder - a.remainder || a.at - b.at);
  const more = new Set(byRemainder.slice(0, left).map(({ at }) => at));
  return whole.map((count, at) => count + (more.has(at) ? 1 : 0));
}

interface Division {
  readonly users: readonly number[];
  readonly iterations: readonly number[];
  readonly weights: readonly number[];
  readonly index: number;
}

function partOf(load: LoadPlan, { index, iterations, users, weights }: Division): LoadPlan {
  const own = users[index] ?? 0;
  const factor = (weights[index] ?? 0) / sum(weights);
  const throttle =
    "rateMax" in load && load.rateMax !== undefined ? { rateMax: load.rateMax * factor } : {};
  switch (load.kind) {
    case "vus": {
      // Computed for each height like for the highest, so that no place needs more users than it has.
      const at = (height: number): number => apportion(Math.round(height), users, 0)[index] ?? 0;
      return { ...load, ...throttle, stages: scaled(load.stages, at) };
    }
    case "rate":
      return { ...load, vusMax: own, stages: scaled(load.stages, (height) => height * factor) };
    case "shared":
      return { ...load, ...throttle, vus: own, iterations: iterations[index] ?? 0 };
    case "perUser":
      return { ...load, ...throttle, vus: own };
    case "search":
    case "once":
      return load;
    default:
      return assertNever(load);
  }
}

function scaled(stages: readonly Stage[], at: (height: number) => number): readonly Stage[] {
  return stages.map(({ durationMs, from, to }) => ({ durationMs, from: at(from), to: at(to) }));
}

function sum(list: readonly number[]): number {
  return list.reduce((all, each) => all + each, 0);
}
