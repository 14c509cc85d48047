/**
 * Assigns the threads of the pool to workflows.
 *
 *   priority    range of a pool P          pool 24
 *   low         1 … P/4                     1 … 6
 *   normal      P/4 … 3P/4                  6 … 18
 *   high        3P/4 … P                   18 … 24
 *   exclusive   P                              24
 *   auto        1 … P                       1 … 24
 *
 * Sorted by priority, workflows fill a batch while their minimums fit the pool. Each gets its minimum; the rest goes,
 * thread by thread, to the workflow with the fewest that may have more. Workflows that measure nothing form a batch of
 * their own, first, outside the arithmetic (PRIO-4).
 *
 * A pool that can grow (`sideBySide`) needs no second batch: the ranges stay those of the pool, and
 * it grows until every minimum fits. Only exclusive workflows still run alone.
 */

import { assert } from "../../base/assert.ts";
import { didYouMean } from "../../base/nearest.ts";

/** Highest first; the order of PRIO-3. */
export const PRIORITIES = ["exclusive", "high", "normal", "auto", "low"] as const;
export type Priority = (typeof PRIORITIES)[number];

interface Candidate {
  readonly name: string;
  readonly priority: Priority;
  readonly isTest: boolean;
}

interface Allocation {
  readonly name: string;
  readonly priority: Priority;
  /** Zero for a workflow that measures nothing; at dispatch it takes one core. */
  readonly threads: number;
}

export type Batch = readonly Allocation[];

type PriorityResult =
  | { readonly ok: true; readonly priority: Priority }
  | { readonly ok: false; readonly problem: string };

export function parsePriority(value: unknown): PriorityResult {
  const text = typeof value === "string" ? value.trim().toLowerCase() : "";
  const priority = PRIORITIES.find((known) => known === text);
  if (priority !== undefined) return { ok: true, priority };
  const shown = typeof value === "string" ? `"${value}"` : String(value);
  const hint = didYouMean(text, PRIORITIES) || `; use one of ${PRIORITIES.join(", ")}`;
  return { ok: false, problem: `${shown} is not a priority${hint}` };
}

export function threadRange(
  priority: Priority,
  pool: number,
): { readonly min: number; readonly max: number } {
  switch (priority) {
    case "low":
      return { min: 1, max: Math.ceil(pool * 0.25) };
    case "normal":
      return { min: Math.ceil(pool * 0.25), max: Math.ceil(pool * 0.75) };
    case "high":
      return { min: Math.ceil(pool * 0.75), max: pool };
    case "exclusive":
      return { min: pool, max: pool };
    case "auto":
      return { min: 1, max: pool };
  }
}

/** Batches in the order they start; same input, same output. */
export function partition(pool: number, workflows: readonly Candidate[]): readonly Batch[] {
  assert(Number.isSafeInteger(pool) && pool >= 1, "a pool has at least one thread");
  const sorted = byPriority(workflows);
  const batches = bypass(sorted);
  let members: Candidate[] = [];
  let minimums = 0;
  for (const candidate of sorted) {
    if (!candidate.isTest) continue;
    const { min } = threadRange(candidate.priority, pool);
    if (minimums + min > pool) {
      batches.push(fill(pool, pool, members));
      members = [];
      minimums = 0;
    }
    members.push(candidate);
    minimums += min;
  }
  if (members.length > 0) batches.push(fill(pool, pool, members));
  return batches;
}

/** Like `partition`, with slots for all workflows at once, except exclusive ones. */
export function sideBySide(pool: number, workflows: readonly Candidate[]): readonly Batch[] {
  assert(Number.isSafeInteger(pool) && pool >= 1, "a pool has at least one thread");
  const sorted = byPriority(workflows);
  const tests = sorted.filter(({ isTest }) => isTest);
  const alone = tests.filter(({ priority }) => priority === "exclusive");
  const together = tests.filter(({ priority }) => priority !== "exclusive");
  const minimums = together.reduce((sum, { priority }) => sum + threadRange(priority, pool).min, 0);
  return [
    ...bypass(sorted),
    ...alone.map((one) => fill(pool, pool, [one])),
    ...(together.length === 0 ? [] : [fill(pool, Math.max(pool, minimums), together)]),
  ];
}

function byPriority(workflows: readonly Candidate[]): readonly Candidate[] {
  return workflows.toSorted((a, b) => rank(a.priority) - rank(b.priority));
}

function bypass(sorted: readonly Candidate[]): Batch[] {
  const members = sorted.filter(({ isTest }) => !isTest);
  if (members.length === 0) return [];
  return [members.map(({ name, priority }) => ({ name, priority, threads: 0 }))];
}

function rank(priority: Priority): number {
  return PRIORITIES.indexOf(priority);
}

function fill(pool: number, slots: number, members: readonly Candidate[]): Batch {
  const ranges = members.map(({ priority }) => threadRange(priority, pool));
  const threads = ranges.map(({ min }) => min);
  let left = slots - threads.reduce((sum, n) => sum + n, 0);
  assert(left >= 0, "the minimums of a batch fit its slots");
  for (; left > 0; left--) {
    let poorest = -1;
    for (const [at, range] of ranges.entries()) {
      const has = threads[at] ?? 0;
      // Strictly fewer: ties stay with the higher priority, which comes first.
      if (has < range.max && (poorest < 0 || has < (threads[poorest] ?? 0))) poorest = at;
    }
    if (poorest < 0) break;
    threads[poorest] = (threads[poorest] ?? 0) + 1;
  }
  return members.map(({ name, priority }, at) => ({ name, priority, threads: threads[at] ?? 0 }));
}
