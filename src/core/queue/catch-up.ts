/** Which ticks of a schedule are submitted when nobody looked for a while. */

export const CATCH_UPS = ["none", "last", "all"] as const;
/** Of missed ticks: none, the last one, or each. */
export type CatchUp = (typeof CATCH_UPS)[number];

/** A tick that is later than this was missed: a change of leader takes less. */
const MISSED_AFTER_MS = 60_000;
/** How far back the newest ticks are looked for, step by step: most expressions have enough of them near. */
const SPANS_MS = [
  3_600_000,
  86_400_000,
  32 * 86_400_000,
  367 * 86_400_000,
  Number.POSITIVE_INFINITY,
];

/** The first tick after a moment. */
type NextTick = (afterMs: number) => number | undefined;

/** Ticks to submit now, oldest first. `firstMs` is the oldest that was not; `most` bounds `all` to the newest. */
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
