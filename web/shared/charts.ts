/** State shared by all charts of a page: one stretch of time, one scale, one set of marks. */

import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Range } from "./tracks.ts";

export type Scale = "logarithmic" | "linear";

/** An event, marked in every chart. */
export interface ChartEvent {
  /** Since the run began. */
  readonly atSeconds: number;
  readonly kind: string;
  /** Workflow of the event; null for the run. */
  readonly workflow: string | null;
  readonly text: string;
}

export interface ChartsState {
  /** The whole time axis. */
  readonly full: Range;
  /** The selected stretch; null for all. */
  readonly range: Range | null;
  /** Stretches are aligned to windows of this width. */
  readonly windowSeconds: number;
  readonly setRange: (range: Range | null) => void;
  /** Scale of latencies; other axes begin at zero. */
  readonly scale: Scale;
  readonly events: readonly ChartEvent[];
  /** Formats a time; by default as time since the beginning. */
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

/** A stretch as written to the address. */
export function rangeText(range: readonly number[]): string {
  return range.map((seconds) => String(Number(seconds.toFixed(3)))).join("-");
}

/** Shortest useful stretch, in seconds. */
const STRETCH_MIN = 0.2;

/** Zooms in or out by a factor, around a time, within the full range. */
export function zoomed({ full, range }: ChartsState, factor: number, around: number): Range | null {
  const [from, to] = range ?? full;
  const width = Math.max((to - from) * factor, STRETCH_MIN);
  if (width >= full[1] - full[0]) return null;
  const start = around - ((around - from) / (to - from)) * width;
  return withinFull(full, [start, start + width]);
}

/** Moves a stretch by a share of its width, in whole windows. */
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
