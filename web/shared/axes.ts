/** Axes of charts: clock-aligned ticks, and colours that a canvas cannot take from a style sheet. */

import type uPlot from "uplot";
import { asTick } from "../../src/core/load/results/format.ts";
import { logTicks } from "../../src/core/load/results/ticks.ts";
import { clockText } from "./clock.ts";
import { cssColor } from "./theme.ts";

/** Seconds between ticks: steps of a clock, not of ten. */
const CLOCK_STEPS = [
  ...[0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30],
  ...[60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400, 28_800, 86_400],
];
/** Aligns the plots of all charts of a page. */
const Y_AXIS_WIDTH = 64;
/** Half of the widest label of the time axis, which is at its very end. */
export const RIGHT_PADDING = 26;

export function axesOf(
  formatTick: (value: number) => string,
  logarithmic: boolean,
  momentText?: (seconds: number) => string,
): readonly uPlot.Axis[] {
  const axis = {
    stroke: cssColor("--muted"),
    grid: { stroke: cssColor("--grid"), width: 1 },
    ticks: { stroke: cssColor("--grid"), width: 1, size: 4 },
    font: "11px system-ui, sans-serif",
  };
  return [
    {
      ...axis,
      incrs: CLOCK_STEPS,
      space: 64,
      size: 30,
      values: (_, values, __, ___, step) =>
        values.map((value) =>
          value === null ? "" : (momentText?.(value) ?? clockText(value, step < 1 ? 1 : 0)),
        ),
    },
    {
      ...axis,
      size: Y_AXIS_WIDTH,
      space: 34,
      ...(logarithmic ? { splits: logSplits, filter: (_, splits) => splits } : {}),
      values: (_, values) =>
        values.map((value) => (value === null ? "" : asTick(formatTick(value)))),
    },
  ];
}

/** Round values, about every 30 pixels. */
function logSplits({ bbox }: uPlot, _: number, low: number, high: number): number[] {
  return logTicks(low, high, Math.max(3, Math.floor(bbox.height / devicePixelRatio / 30)));
}
