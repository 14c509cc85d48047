/** What all charts of a page have in common: one stretch of time, one scale, one set of marks. */

import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Range } from "./tracks.ts";

export type Scale = "logarithmic" | "linear";

/** Something that happened, marked in every chart. */
export interface ChartEvent {
  /** Since the run began. */
  readonly atSeconds: number;
  readonly kind: string;
  /** The workflow it is about; null for the run. */
  readonly workflow: string | null;
  readonly text: string;
}

export interface ChartsState {
  /** All there is to see. */
  readonly full: Range;
  /** The stretch that is looked at; null for all. */
  readonly range: Range | null;
  /** Stretches begin and end with windows of this width. */
  readonly windowSeconds: number;
  readonly setRange: (range: Range | null) => void;
  /** Of latencies; other axes begin at zero. */
  readonly scale: Scale;
  readonly events: readonly ChartEvent[];
  /** How a moment is told; by default as time since the beginning. */
  readonly momentText?: (seconds: number) => string;
}

const NONE: ChartsState = {
  full: [0, 1],
  range: null,
  windowSeconds: 1,
  setRange: () => {},
  scale: "logarithmic",
  events: [],
};
export const ChartsContext = createContext<ChartsState>(NONE);

export function useCharts(): ChartsState {
  return useContext(ChartsContext);
}

/** A stretch as the address holds it. */
export function rangeText(range: readonly number[]): string {
  return range.map((seconds) => String(Number(seconds.toFixed(3)))).join("-");
}

/** Nobody wants to look at less than this, in seconds. */
const STRETCH_MIN = 0.2;

/** Closer or further by a factor, around a moment, and never beyond what there is. */
export function zoomed({ full, range }: ChartsState, factor: number, around: number): Range | null {
  const [from, to] = range ?? full;
  const width = Math.max((to - from) * factor, STRETCH_MIN);
  if (width >= full[1] - full[0]) return null;
  const start = around - ((around - from) / (to - from)) * width;
  return withinFull(full, [start, start + width]);
}

/** The same stretch earlier or later by a share of its width, in whole windows. */
export function moved({ full, range, windowSeconds }: ChartsState, share: number): Range | null {
  if (range === null) return null;
  const windows = Math.max(
    1,
    Math.round(((range[1] - range[0]) * Math.abs(share)) / windowSeconds),
  );
  const by = Math.sign(share) * windows * windowSeconds;
  return withinFull(full, [range[0] + by, range[1] + by]);
}

function withinFull([first, last]: Range, [from, to]: Range): Range {
  const width = Math.min(to - from, last - first);
  const start = Math.min(Math.max(from, first), last - width);
  return [start, start + width];
}
