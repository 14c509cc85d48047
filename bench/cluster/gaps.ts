/** Gaps in load: the longest time without a request from a core that should send them. */

import { seconds } from "./row.ts";

/** Beyond the longest pause without a loss: an occasional delay of a busy machine is no gap in load. */
const GAP_MS_MIN = 250;

export interface Gap {
  /** Gap of a surviving core, beyond its pauses when nothing happens. */
  readonly gapMs: number;
  readonly longestMs: number;
  readonly longestBeforeMs: number;
}

export function gapBetween(longestBeforeMs: number, longestMs: number): Gap {
  return { gapMs: Math.max(0, longestMs - longestBeforeMs), longestMs, longestBeforeMs };
}

export function gapOf(all: readonly Gap[]): { readonly text: string; readonly holds: boolean } {
  const gaps = all.filter(({ gapMs }) => gapMs >= GAP_MS_MIN).map(({ gapMs }) => gapMs);
  const longest = Math.max(...all.map(({ longestMs }) => longestMs));
  const before = Math.max(...all.map(({ longestBeforeMs }) => longestBeforeMs));
  const gap = gaps.length === 0 ? "0" : seconds(Math.max(...gaps));
  const between = `at most ${longest.toFixed(0)} ms between two requests, before ${before.toFixed(0)}`;
  return { text: `${gap} (${between})`, holds: gaps.length === 0 };
}
