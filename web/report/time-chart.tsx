/**
 * One chart over time (uPlot on a canvas) with a legend that shows the values under the pointer.
 * Drag to zoom, double-click to see all again. Drawn when it comes near the window, so a report of
 * a hundred steps opens at once; all are drawn before printing.
 */

import { createContext } from "preact";
import { useContext, useLayoutEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import { asTick } from "../../src/core/run/results/format.ts";
import { useNear } from "./near.ts";
import { cssColor, useTheme } from "./theme.ts";

export interface Line {
  readonly label: string;
  readonly values: readonly (number | null)[];
  /** Name of a custom property of styles.css. */
  readonly color: string;
  readonly dash?: readonly number[];
  /** Area under the line. */
  readonly filled?: boolean;
  readonly width?: number;
}

interface TimeChartProps {
  readonly title: string;
  /** Read to those who do not see the canvas. */
  readonly description: string;
  readonly atSeconds: readonly number[];
  readonly lines: readonly Line[];
  readonly format: (value: number) => string;
  /** For the axis, which is narrow. */
  readonly formatTick: (value: number) => string;
  /** Charts with the same key move their cursors together. */
  readonly group: string;
  readonly height?: number;
  /** Follows the scale the reader chose for latencies; others begin at zero. */
  readonly latency?: boolean;
}

export type Scale = "logarithmic" | "linear";
export const ScaleContext = createContext<Scale>("logarithmic");

export function TimeChart(props: TimeChartProps) {
  const logarithmic = useContext(ScaleContext) === "logarithmic" && props.latency === true;
  const { title, description, lines, format } = props;
  const holder = useRef<HTMLDivElement>(null);
  const near = useNear(holder);
  const theme = useTheme();
  const [index, setIndex] = useState<number | null>(null);

  // Before the paint that a print is made from, hence a layout effect.
  useLayoutEffect(() => {
    const element = holder.current;
    if (element === null || !near) return;
    const options = optionsOf({ ...props, logarithmic }, element.clientWidth, setIndex);
    const chart = new uPlot(options, dataOf({ ...props, logarithmic }), element);
    const observer = new ResizeObserver(() => {
      const width = element.clientWidth;
      if (width > 0 && width !== chart.width) chart.setSize({ width, height: chart.height });
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      chart.destroy();
    };
  }, [near, theme, props.lines, logarithmic]);

  return (
    <figure class="chart">
      <figcaption>
        <span class="chart-title">{title}</span>
        <span class="legend">
          {lines.map((line) => (
            <LegendItem key={line.label} line={line} value={valueAt(line, index)} format={format} />
          ))}
        </span>
      </figcaption>
      <div
        class="canvas"
        ref={holder}
        role="img"
        aria-label={description}
        style={{ minHeight: `${heightOf(props)}px` }}
      />
    </figure>
  );
}

function LegendItem(props: { line: Line; value: number | null; format: (v: number) => string }) {
  const { line, value, format } = props;
  const stroke = { stroke: `var(${line.color})`, "stroke-dasharray": line.dash?.join(" ") };
  return (
    <span class="legend-item">
      <svg width="18" height="8" aria-hidden="true">
        <line x1="0" x2="18" y1="4" y2="4" stroke-width="2.5" {...stroke} />
      </svg>
      {line.label}
      <b>{value === null ? "" : format(value)}</b>
    </span>
  );
}

function valueAt(line: Line, index: number | null): number | null {
  return index === null ? null : (line.values[index] ?? null);
}

function heightOf({ height }: TimeChartProps): number {
  return height ?? 190;
}

interface Drawn extends TimeChartProps {
  readonly logarithmic: boolean;
}

function dataOf({ atSeconds, lines, logarithmic }: Drawn): uPlot.AlignedData {
  // A logarithmic axis has no zero.
  const positive = (value: number | null) => (value !== null && value > 0 ? value : null);
  return [
    [...atSeconds],
    ...lines.map(({ values }) => (logarithmic ? values.map(positive) : [...values])),
  ];
}

function optionsOf(
  props: Drawn,
  width: number,
  onIndex: (index: number | null) => void,
): uPlot.Options {
  const axis = {
    stroke: cssColor("--muted"),
    grid: { stroke: cssColor("--grid"), width: 1 },
    ticks: { stroke: cssColor("--grid"), width: 1, size: 4 },
    font: "11px system-ui, sans-serif",
  };
  const ticks = (_: uPlot, values: (number | null)[]) =>
    values.map((value) => (value === null ? "" : asTick(props.formatTick(value))));
  return {
    width: Math.max(width, 1),
    height: heightOf(props),
    padding: [8, 8, 0, 0],
    legend: { show: false },
    cursor: { sync: { key: props.group }, points: { size: 6 }, y: false },
    scales: {
      x: { time: false },
      y: props.logarithmic ? { distr: 3 } : { range: fromZero },
    },
    axes: [
      { ...axis, values: (_, values) => values.map(clock), space: 60, size: 30 },
      { ...axis, values: ticks, size: 64, space: props.logarithmic ? 24 : 34 },
    ],
    series: [{}, ...props.lines.map(seriesOf)],
    hooks: { setCursor: [(chart) => onIndex(chart.cursor.idx ?? null)] },
  };
}

function seriesOf(line: Line): uPlot.Series {
  const stroke = cssColor(line.color);
  return {
    label: line.label,
    stroke,
    width: line.width ?? 1.5,
    points: { show: false },
    ...(line.dash === undefined ? {} : { dash: [...line.dash] }),
    ...(line.filled === true ? { fill: `${stroke}22` } : {}),
  };
}

function fromZero(_: uPlot, __: number | null, max: number | null): uPlot.Range.MinMax {
  return [0, max === null || max <= 0 ? 1 : max * 1.06];
}

/** 0:00, 1:30, 1:02:30; tenths when the chart is zoomed into less than that. */
function clock(seconds: number | null): string {
  if (seconds === null) return "";
  const whole = Math.floor(seconds + 1e-6);
  const rest = Math.round((seconds - whole) * 10);
  const pad = (value: number) => String(value).padStart(2, "0");
  const hours = Math.floor(whole / 3_600);
  const minutes = Math.floor((whole % 3_600) / 60);
  const head = hours > 0 ? `${hours}:${pad(minutes)}` : String(minutes);
  return `${head}:${pad(whole % 60)}${rest > 0 ? `.${rest}` : ""}`;
}
