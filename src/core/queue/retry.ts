/**
 * How long a failed task waits before its next attempt. (TQ-23)
 *
 * Each task, executor and named queue may define a backoff; the first one defined applies, with missing fields from the
 * node. By default: exponential with full jitter, uniform between zero and the ceiling.
 */

import { assert } from "../base/assert.ts";
import type { Random } from "../base/random.ts";

/** The settings of a node. */
export interface RetryPolicy {
  readonly baseMs: number;
  readonly maxMs: number;
}

export const BACKOFF_KINDS = ["exponential", "linear", "constant"] as const;

/** As written by users. */
export interface Backoff {
  /** How waits grow: times `factor`, by `factor` times `base`, or not. Default exponential. */
  readonly kind?: (typeof BACKOFF_KINDS)[number] | undefined;
  /** Seconds after the first failure. */
  readonly base?: number | undefined;
  /** Default 2 for exponential, 1 for linear. */
  readonly factor?: number | undefined;
  /** Seconds that no wait exceeds. */
  readonly cap?: number | undefined;
  /** Random share of a wait, so that tasks that failed together do not return together. Default 1. */
  readonly jitter?: number | undefined;
}

/** 24 days, as for time limits. */
const SECONDS_MAX = 2_000_000;
const FACTOR_MAX = 1_000;
/** Far beyond the most attempts, while the power is still finite. */
const GROWTH_STEPS_MAX = 100;

/** Returns what is wrong, naming the field; undefined when nothing is. */
export function backoffProblem({ kind, base, factor, cap, jitter }: Backoff): string | undefined {
  if (kind !== undefined && !BACKOFF_KINDS.includes(kind))
    return `kind is one of ${BACKOFF_KINDS.join(", ")}`;
  if (base !== undefined && !within(base, 0, SECONDS_MAX)) return `base is 0 to ${SECONDS_MAX} s`;
  if (cap !== undefined && !within(cap, 0, SECONDS_MAX)) return `cap is 0 to ${SECONDS_MAX} s`;
  if (cap !== undefined && base !== undefined && cap < base) return "cap must not be below base";
  const least = (kind ?? "exponential") === "exponential" ? 1 : 0;
  if (factor !== undefined && !within(factor, least, FACTOR_MAX))
    return `factor is ${least} to ${FACTOR_MAX}`;
  if (jitter !== undefined && !within(jitter, 0, 1)) return "jitter is 0 to 1";
  return undefined;
}

/**
 * Returns the wait before the next attempt. `failures` includes the one that just happened; `said`: task, executor,
 * queue.
 */
export function retryDelayMs(
  policy: RetryPolicy,
  said: readonly (Backoff | null | undefined)[],
  failures: number,
  random: Random,
): number {
  assert(failures >= 1, "failures are counted from 1");
  const chosen = said.find((one) => one !== null && one !== undefined) ?? {};
  const baseMs = chosen.base === undefined ? policy.baseMs : chosen.base * 1_000;
  const capMs = chosen.cap === undefined ? Math.max(policy.maxMs, baseMs) : chosen.cap * 1_000;
  const ceiling = Math.min(capMs, baseMs * growth(chosen, failures - 1));
  const jitter = chosen.jitter ?? 1;
  return Math.floor(ceiling * (1 - jitter + jitter * random.float()));
}

function growth({ kind = "exponential", factor }: Backoff, steps: number): number {
  if (kind === "constant") return 1;
  if (kind === "linear") return 1 + (factor ?? 1) * steps;
  return (factor ?? 2) ** Math.min(steps, GROWTH_STEPS_MAX);
}

function within(value: number, least: number, most: number): boolean {
  return value >= least && value <= most;
}
