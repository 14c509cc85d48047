/**
 * Percentiles over time with enough values. With a dozen values p95 and p99 are both the longest one, so windows with
 * too few are merged with those that follow until there are enough:
 *
 *      values    12   9  14 │ 40 │ 18   3   7 │ 31          p95, of 20 and more
 */

import { SparseCells } from "./sparse-cells.ts";

/** Values that each percentile needs. */
const VALUES_MIN = { p50: 1, p95: 20, p99: 100 } as const;
const FRACTIONS = { p50: 0.5, p95: 0.95, p99: 0.99 } as const;
export type Percentile = keyof typeof FRACTIONS;

/** Results of stretches by their first window: while its windows are the same, a stretch is not summed again. */
const known = new WeakMap<SparseCells, Known[]>();

interface Known {
  readonly percentile: Percentile;
  readonly windows: readonly SparseCells[];
  readonly ms: number | null;
}

interface Stretch {
  readonly from: number;
  /** End of the stretch, exclusive. */
  to: number;
  /** The stretch has the values that the percentile needs. */
  readonly isEnough: boolean;
}

/** A line that grows with its windows: settled stretches are not visited again. */
export class SteadyLine {
  readonly #percentile: Percentile;
  readonly #stretches: Stretch[] = [];
  #values: (number | null)[] = [];

  constructor(percentile: Percentile) {
    this.#percentile = percentile;
  }

  /** One value per window, in milliseconds; null where there are never enough values. A copy. */
  get values(): (number | null)[] {
    return this.#values.slice();
  }

  /**
   * Windows from `changedFrom` on are new or have changed. `follows` tells whether a window follows the one before
   * without a gap: no gap is bridged.
   */
  update(
    windows: readonly SparseCells[],
    changedFrom: number,
    follows: (at: number) => boolean,
  ): void {
    // A stretch that ends where it changes may continue.
    while ((this.#stretches.at(-1)?.to ?? -1) >= changedFrom) this.#stretches.pop();
    let from = this.#stretches.at(-1)?.to ?? 0;
    this.#values.length = from;
    const min = VALUES_MIN[this.#percentile];
    while (from < windows.length) {
      let to = from;
      let count = 0;
      do {
        count += windows[to]?.total ?? 0;
        to++;
      } while (count < min && to < windows.length && follows(to));
      this.#add(windows, { from, to, isEnough: count >= min }, follows(from));
      from = to;
    }
  }

  /** The rest before a gap or at the end belongs to the previous stretch. */
  #add(windows: readonly SparseCells[], stretch: Stretch, isAdjacent: boolean): void {
    const before = this.#stretches.at(-1);
    const isJoined = !stretch.isEnough && isAdjacent && before?.isEnough === true;
    const { from, to, isEnough } = isJoined ? { ...before, to: stretch.to } : stretch;
    if (isJoined) before.to = to;
    else this.#stretches.push(stretch);
    const value = isEnough ? percentileOf(windows.slice(from, to), this.#percentile) : null;
    this.#values.length = from;
    for (let at = from; at < to; at++) this.#values.push(value);
  }
}

/** Computes the whole line at once. */
export function steadyPercentile(
  windows: readonly SparseCells[],
  percentile: Percentile,
  follows: (at: number) => boolean,
): (number | null)[] {
  const line = new SteadyLine(percentile);
  line.update(windows, 0, follows);
  return line.values;
}

function percentileOf(windows: readonly SparseCells[], percentile: Percentile): number | null {
  const [first] = windows;
  if (first === undefined) return null;
  if (windows.length === 1) return inMs(first.quantile(FRACTIONS[percentile]));
  const results = known.get(first) ?? [];
  const before = results.find((one) => one.percentile === percentile);
  if (before !== undefined && areSame(before.windows, windows)) return before.ms;
  const ms = inMs(SparseCells.quantilesOfSum(windows, [FRACTIONS[percentile]])[0] ?? null);
  known.set(first, [
    ...results.filter((one) => one.percentile !== percentile),
    { percentile, windows, ms },
  ]);
  return ms;
}

function inMs(micros: number | null): number | null {
  return micros === null ? null : micros / 1_000;
}

function areSame(some: readonly SparseCells[], others: readonly SparseCells[]): boolean {
  return some.length === others.length && some.every((window, at) => window === others[at]);
}
