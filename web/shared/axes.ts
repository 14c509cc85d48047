/** Axes of charts: ticks that a clock has, and colours that a canvas cannot take from a style sheet. */

import type uPlot from "uplot";
import { asTick } from "../../src/core/run/results/format.ts";
import { logTicks } from "../../src/core/run/results/ticks.ts";
import { cssColor } from "./theme.ts";

/** Seconds between ticks: steps of a clock, not of ten. */
const CLOCK_STEPS = [
  ...[0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30],
  ...[60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 14_400, 28_800, 86_400],
];
/** All charts of a page have their plots at the same place. */
const Y_AXIS_WIDTH = 64;
/** Half of the widest label of the time axis, which stands at its very end. */
export const RIGHT_PADDING = 26;

/** 0:00, 1:30, 1:02:30; with fractions where the ticks need them. */
function clockText(seconds: number, digits = 0): string {
  const unit = 10 ** digits;
  const rounded = Math.round(Math.abs(seconds) * unit) / unit;
  const whole = Math.floor(rounded + 1e-9);
  const pad = (value: number) => String(value).padStart(2, "0");
  const hours = Math.floor(whole / 3_600);
  const minutes = Math.floor((whole % 3_600) / 60);
  const head = hours > 0 ? `${hours}:${pad(minutes)}` : String(minutes);
  const rest = digits === 0 ? "" : (rounded - whole).toFixed(digits).slice(1);
  return `${seconds < 0 && rounded > 0 ? "-" : ""}${head}:${pad(whole % 60)}${rest}`;
}

/** As exact as windows of this width are. */
export function clockAt(seconds: number, windowSeconds: number): string {
  return clockText(seconds, windowSeconds < 1 ? 1 : 0);
}

export function axesOf(
  formatTick: (value: number) => string,
  logarithmic: boolean,
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
        values.map((value) => (value === null ? "" : clockText(value, step < 1 ? 1 : 0))),
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

/** Round figures, about every 30 pixels. */
function logSplits({ bbox }: uPlot, _: number, low: number, high: number): number[] {
  return logTicks(low, high, Math.max(3, Math.floor(bbox.height / devicePixelRatio / 30)));
}
