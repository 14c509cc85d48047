/**
 * One uPlot chart over time: the canvas side of time-chart.tsx. Dragging selects a stretch for all charts of the page,
 * a double click resets it; two fingers do the same on a touch screen.
 */

import uPlot from "uplot";
import { axesOf, RIGHT_PADDING } from "./axes.ts";
import { type ChartEvent, type ChartsState, zoomed } from "./charts.ts";
import { cssColor } from "./theme.ts";

export interface Line {
  readonly label: string;
  readonly values: readonly (number | null)[];
  /** Name of a custom property of base.css. */
  readonly color: string;
  readonly dash?: readonly number[];
  /** Area under the line. */
  readonly filled?: boolean;
  readonly width?: number;
  /** Legend text while the pointer is elsewhere. */
  readonly rest?: string;
}

export interface Limit {
  readonly label: string;
  readonly value: number;
}

export interface PlotProps {
  readonly atSeconds: readonly number[];
  readonly lines: readonly Line[];
  readonly limits: readonly Limit[];
  readonly formatTick: (value: number) => string;
  readonly height: number;
  readonly logarithmic: boolean;
  /** Fixed ends of the value axis, where the lines do not determine them. */
  readonly ends: readonly [number, number] | null;
  /** Drawn below the lines. */
  readonly paint: ((chart: uPlot) => void) | null;
}

interface Handlers {
  /** Current state of all charts. */
  readonly charts: () => ChartsState;
  readonly onIndex: (index: number | null, left: number) => void;
}

/** All charts of a page share their cursor. */
const SYNC_KEY = "time";

export function newPlot(element: HTMLElement, props: PlotProps, handlers: Handlers): uPlot {
  const { full, momentText, range } = handlers.charts();
  const [min, max] = range ?? full;
  const options: uPlot.Options = {
    width: Math.max(element.clientWidth, 1),
    height: props.height,
    padding: [10, RIGHT_PADDING, 0, 0],
    legend: { show: false },
    cursor: {
      sync: { key: SYNC_KEY, scales: ["x", null] },
      points: { size: 6 },
      y: false,
      drag: { x: true, y: false, setScale: false },
      bind: {
        dblclick: () => () => {
          handlers.charts().setRange(null);
          return null;
        },
      },
    },
    scales: {
      x: { time: false, auto: false, min, max },
      y: {
        distr: props.logarithmic ? 3 : 1,
        range: (_, low, high) => yRange(props, low, high),
      },
    },
    axes: [...axesOf(props.formatTick, props.logarithmic, momentText)],
    series: [{}, ...props.lines.map(seriesOf)],
    hooks: {
      setCursor: [(chart) => handlers.onIndex(chart.cursor.idx ?? null, chart.cursor.left ?? -1)],
      setSelect: [(chart) => choose(chart, handlers)],
      drawAxes: props.paint === null ? [] : [props.paint],
      draw: [
        (chart) => {
          for (const limit of props.limits) drawLimit(chart, limit);
          for (const event of handlers.charts().events) drawEvent(chart, event);
        },
      ],
    },
  };
  return new uPlot(options, dataOf(props), element);
}

function dataOf({ atSeconds, lines, logarithmic }: PlotProps): uPlot.AlignedData {
  // A logarithmic axis has no zero.
  const positive = (value: number | null) => (value !== null && value > 0 ? value : null);
  return [
    [...atSeconds],
    ...lines.map(({ values }) => (logarithmic ? values.map(positive) : [...values])),
  ];
}

function seriesOf(line: Line): uPlot.Series {
  const stroke = cssColor(line.color);
  return {
    label: line.label,
    stroke,
    width: line.width ?? 1.5,
    points: {
      show: (chart) => (chart.data[0]?.length ?? 0) < 3,
      filter: (chart, series, shown) => (shown ? null : lonePoints(chart.data[series] ?? [])),
    },
    ...(line.dash === undefined ? {} : { dash: [...line.dash] }),
    ...(line.filled === true ? { fill: `${stroke}22` } : {}),
  };
}

/** A value between gaps is on no line: only a point shows it. */
function lonePoints(values: ArrayLike<number | null | undefined>): number[] {
  const isThere = (at: number): boolean => values[at] !== null && values[at] !== undefined;
  const lone: number[] = [];
  for (let at = 0; at < values.length; at++)
    if (isThere(at) && !isThere(at - 1) && !isThere(at + 1)) lone.push(at);
  return lone;
}

/** A nearby limit is inside the range; a distant one would flatten everything else. */
function yRange(props: PlotProps, low: number | null, high: number | null): uPlot.Range.MinMax {
  if (props.ends !== null) return [...props.ends];
  const values = props.limits.map(({ value }) => value);
  if (!props.logarithmic) {
    const most = high ?? 0;
    const near = values.filter((value) => value <= most * 2.5);
    const top = Math.max(most, ...near);
    return [0, top > 0 ? top * 1.08 : 1];
  }
  if (low === null || high === null) return [1, 10];
  const near = values.filter((value) => value <= high * 5 && value >= low / 5);
  const [from, to] = [Math.min(low, ...near), Math.max(high, ...near)];
  return to / from < 3 ? [from / 2, to * 2] : [from / 1.15, to * 1.25];
}

function choose(chart: uPlot, { charts }: Handlers): void {
  const { left, width } = chart.select;
  if (width < 4) return;
  const range = [chart.posToVal(left, "x"), chart.posToVal(left + width, "x")] as const;
  chart.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  charts().setRange(range);
}

function drawLimit({ bbox, ctx, valToPos, scales }: uPlot, { label, value }: Limit): void {
  const top = scales["y"]?.max ?? 0;
  const ratio = devicePixelRatio;
  const outside = value > top;
  const y = outside ? bbox.top + 5 * ratio : valToPos(value, "y", true);
  if (y > bbox.top + bbox.height) return;
  ctx.save();
  ctx.strokeStyle = cssColor("--bad");
  ctx.fillStyle = cssColor("--bad");
  ctx.lineWidth = ratio;
  if (!outside) {
    ctx.setLineDash([6 * ratio, 4 * ratio]);
    ctx.beginPath();
    ctx.moveTo(bbox.left, y);
    ctx.lineTo(bbox.left + bbox.width, y);
    ctx.stroke();
  }
  ctx.font = `${10.5 * ratio}px system-ui, sans-serif`;
  ctx.textAlign = "right";
  ctx.textBaseline = outside ? "top" : "bottom";
  const text = outside ? `↑ ${label}` : label;
  ctx.fillText(text, bbox.left + bbox.width - 4 * ratio, y - (outside ? 0 : 2 * ratio));
  ctx.restore();
}

function drawEvent({ bbox, ctx, scales, valToPos }: uPlot, { atSeconds }: ChartEvent): void {
  const { max = 0, min = 0 } = scales["x"] ?? {};
  if (atSeconds < (min ?? 0) || atSeconds > (max ?? 0)) return;
  const x = Math.round(valToPos(atSeconds, "x", true)) + 0.5;
  const ratio = devicePixelRatio;
  ctx.save();
  ctx.strokeStyle = cssColor("--warn");
  ctx.fillStyle = cssColor("--warn");
  ctx.setLineDash([2 * ratio, 3 * ratio]);
  ctx.beginPath();
  ctx.moveTo(x, bbox.top);
  ctx.lineTo(x, bbox.top + bbox.height);
  ctx.stroke();
  ctx.beginPath();
  ctx.moveTo(x - 4 * ratio, bbox.top - 5 * ratio);
  ctx.lineTo(x + 4 * ratio, bbox.top - 5 * ratio);
  ctx.lineTo(x, bbox.top + 2 * ratio);
  ctx.fill();
  ctx.restore();
}

/** One finger points, two zoom. Returns a function that stops listening. */
export function listenToTouch(chart: uPlot, charts: () => ChartsState): () => void {
  let before: { readonly from: number; readonly to: number } | null = null;
  const positions = ({ touches }: TouchEvent) => {
    const { left } = chart.over.getBoundingClientRect();
    return [...touches].map((touch) => touch.clientX - left).sort((a, b) => a - b);
  };
  const start = (event: TouchEvent) => {
    const [a, b] = positions(event);
    before =
      a === undefined || b === undefined
        ? null
        : { from: chart.posToVal(a, "x"), to: chart.posToVal(b, "x") };
    if (a !== undefined && b === undefined) chart.setCursor({ left: a, top: 10 });
  };
  const move = (event: TouchEvent) => {
    const [a, b] = positions(event);
    if (a === undefined) return;
    if (b === undefined || before === null) {
      chart.setCursor({ left: a, top: 10 });
      return;
    }
    event.preventDefault();
    const state = charts();
    const width = chart.over.clientWidth;
    const wanted = ((before.to - before.from) * width) / Math.max(b - a, 1);
    const [from, to] = state.range ?? state.full;
    state.setRange(zoomed(state, wanted / (to - from), (before.from + before.to) / 2));
  };
  chart.over.addEventListener("touchstart", start, { passive: true });
  chart.over.addEventListener("touchmove", move, { passive: false });
  return () => {
    chart.over.removeEventListener("touchstart", start);
    chart.over.removeEventListener("touchmove", move);
  };
}
