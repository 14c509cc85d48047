/**
 * Percentiles over time that deserve the name. Of a dozen values p95 and p99 are both the longest one,
 * so windows with too few are joined with those that follow until there are enough:
 *
 *      values    12   9  14 │ 40 │ 18   3   7 │ 31          p95, of 20 and more
 */

import { SparseCells } from "./sparse-cells.ts";

/** Values that each percentile needs. */
const VALUES_MIN = { p50: 1, p95: 20, p99: 100 } as const;
const FRACTIONS = { p50: 0.5, p95: 0.95, p99: 0.99 } as const;
export type Percentile = keyof typeof FRACTIONS;

/** What a stretch came to: as long as its ends are these, it need not be added up again. */
const known = new WeakMap<
  SparseCells,
  { readonly percentile: Percentile; readonly last: SparseCells; readonly ms: number | null }[]
>();

/**
 * One value per window, in milliseconds; nothing where there are never enough values. `follows` says
 * whether a window follows the one before without a gap: no gap is bridged.
 */
export function steadyPercentile(
  windows: readonly SparseCells[],
  percentile: Percentile,
  follows: (at: number) => boolean,
): (number | null)[] {
  const line = new Array<number | null>(windows.length).fill(null);
  let from = 0;
  /** Where the stretch before begins. */
  let previous: number | null = null;
  while (from < windows.length) {
    let to = from;
    let count = 0;
    do {
      count += windows[to]?.total ?? 0;
      to++;
    } while (count < VALUES_MIN[percentile] && to < windows.length && follows(to));
    const short = count < VALUES_MIN[percentile];
    // What is left at the end belongs to the stretch before it.
    const joined: boolean = short && previous !== null && follows(from);
    const first: number = joined && previous !== null ? previous : from;
    if (!short || joined) line.fill(percentileOf(windows.slice(first, to), percentile), first, to);
    previous = short && !joined ? null : first;
    from = to;
  }
  return line;
}

function percentileOf(windows: readonly SparseCells[], percentile: Percentile): number | null {
  const [first, last] = [windows[0], windows.at(-1)];
  if (first === undefined || last === undefined) return null;
  const told = known.get(first) ?? [];
  const before = told.find((one) => one.percentile === percentile && one.last === last);
  if (before !== undefined) return before.ms;
  const micros = SparseCells.sum(windows).quantile(FRACTIONS[percentile]);
  const ms = micros === null ? null : micros / 1_000;
  known.set(first, [
    ...told.filter((one) => one.percentile !== percentile),
    { percentile, last, ms },
  ]);
  return ms;
}
