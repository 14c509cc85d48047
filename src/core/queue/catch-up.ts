/** Ticks of a schedule to submit after a time without a leader. */

export const CATCH_UPS = ["none", "last", "all"] as const;
/** Policy for missed ticks: none, the last one, or each. */
export type CatchUp = (typeof CATCH_UPS)[number];

/** A tick later than this was missed: a change of leader takes less. */
const MISSED_AFTER_MS = 60_000;
/** Spans searched for the newest ticks, in steps: most expressions have enough of them near. */
const SPANS_MS = [
  3_600_000,
  86_400_000,
  32 * 86_400_000,
  367 * 86_400_000,
  Number.POSITIVE_INFINITY,
];

/** Returns the first tick after a time. */
type NextTick = (afterMs: number) => number | undefined;

/**
 * Ticks to submit now, oldest first. `firstMs` is the oldest that was not submitted; `most` limits `all` to the newest.
 */
export function dueTicks(
  next: NextTick,
  { firstMs, nowMs }: { readonly firstMs: number; readonly nowMs: number },
  catchUp: CatchUp,
  most: number,
): readonly number[] {
  const newest = newestTicks(next, firstMs, nowMs, catchUp === "all" ? most : 1);
  return catchUp === "none" ? newest.filter((tick) => nowMs - tick <= MISSED_AFTER_MS) : newest;
}

function newestTicks(next: NextTick, firstMs: number, nowMs: number, most: number): number[] {
  for (const spanMs of SPANS_MS) {
    const from = Math.max(firstMs - 1, nowMs - spanMs);
    const ticks: number[] = [];
    for (let tick = next(from); tick !== undefined && tick <= nowMs; tick = next(tick))
      ticks.push(tick);
    if (ticks.length >= most || from < firstMs) return ticks.slice(-most);
  }
  return [];
}
