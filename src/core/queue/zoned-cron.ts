/**
 * Ticks of a cron expression by the clocks of a time zone, across changes of its offset.
 *
 * An expression for certain hours follows the wall clock: a skipped time ticks at the time of the change, and several
 * of them once; a repeated time ticks the first time only. One for every hour follows elapsed time: every minute that
 * matches and really occurs, also the second time. So "30 2 * * *" ticks once on every day, and "0 * * * *" every 60
 * minutes, whatever the clocks do.
 */

import { type Cron, nextTick } from "./cron.ts";

/** Offset of a time zone from UTC at a time, in whole minutes; both in milliseconds. */
export type OffsetAt = (utcMs: number) => number;

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
/** No change of clocks is larger than a day: at most this many minutes are skipped or doubled. */
const STEPS_MAX = 2_000;

/** Returns the first tick after `afterMs`; undefined when there is none within 41 years. */
export function nextTickIn(cron: Cron, afterMs: number, offsetAt: OffsetAt): number | undefined {
  return cron.hours.size === 24
    ? nextByElapsedTime(cron, afterMs, offsetAt)
    : nextByWallClock(cron, afterMs, offsetAt);
}

function nextByWallClock(cron: Cron, afterMs: number, offsetAt: OffsetAt): number | undefined {
  let local = afterMs + offsetAt(afterMs);
  for (let step = 0; step < STEPS_MAX; step++) {
    const next = nextTick(cron, local);
    if (next === undefined) return undefined;
    const at = momentOf(next, offsetAt);
    if (at > afterMs) return at;
    // Ticked already, before the clocks were set back.
    local = next;
  }
  return undefined;
}

/** When clocks show this time for the first time, or are set past it. */
function momentOf(local: number, offsetAt: OffsetAt): number {
  const [from, to] = [local - DAY_MS, local + DAY_MS];
  const before = offsetAt(from);
  for (const offset of [before, offsetAt(to)])
    if (offsetAt(local - offset) === offset) return local - offset;
  return changeWithin(from, to, before, offsetAt);
}

function nextByElapsedTime(cron: Cron, afterMs: number, offsetAt: OffsetAt): number | undefined {
  let at = Math.floor(afterMs / MINUTE_MS) * MINUTE_MS + MINUTE_MS;
  for (let step = 0; step < STEPS_MAX; step++) {
    const offset = offsetAt(at);
    const local = nextTick(cron, at + offset - MINUTE_MS);
    if (local === undefined) return undefined;
    const next = local - offset;
    if (next - at > 2 * DAY_MS) {
      at = next - 2 * DAY_MS;
      continue;
    }
    const end = Math.min(next, at + HOUR_MS);
    if (offsetAt(end) !== offset) at = changeWithin(at, end, offset, offsetAt);
    else if (end === next) return next;
    else at = end;
  }
  return undefined;
}

/** The first minute with another offset than `before`, which applies at `from` and not at `to`. */
function changeWithin(from: number, to: number, before: number, offsetAt: OffsetAt): number {
  let [low, high] = [Math.floor(from / MINUTE_MS), Math.ceil(to / MINUTE_MS)];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (offsetAt(middle * MINUTE_MS) === before) low = middle;
    else high = middle;
  }
  return high * MINUTE_MS;
}
