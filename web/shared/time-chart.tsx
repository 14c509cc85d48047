/**
 * One chart over time: the canvas (plot.ts), a legend that isolates a line and shows the values under the cursor, and
 * the same data as a table. By keyboard it is a slider over the windows: arrows move, plus and minus zoom, Escape shows
 * all.
 */

import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type uPlot from "uplot";
import { RIGHT_PADDING } from "./axes.ts";
import { type ChartsState, moved, useCharts, zoomed } from "./charts.ts";
import { clockAt } from "./clock.ts";
import { useFragment } from "./fragment.ts";
import { useNear } from "./near.ts";
import { type Limit, type Line, listenToTouch, newPlot, type PlotProps } from "./plot.ts";
import { Table, TableToggle } from "./table.tsx";
import { useTheme } from "./theme.ts";
import type { Range } from "./tracks.ts";

interface TimeChartProps {
  /** Unique on the page: its key in the address. */
  readonly id: string;
  readonly title: string;
  /** Source of one point: "1 s windows". */
  readonly note?: string;
  /** Text for screen readers. */
  readonly description: string;
  readonly windowSeconds: number;
  /** The middle of each window. */
  readonly atSeconds: readonly number[];
  readonly lines: readonly Line[];
  /** Legend texts for the selected stretch, by label; by default means of the lines. */
  readonly stretch?: ReadonlyMap<string, string> | undefined;
  readonly limits?: readonly Limit[];
  readonly format: (value: number) => string;
  /** For the axis, which is narrow. */
  readonly formatTick: (value: number) => string;
  readonly height?: number;
  /** Follows the scale the reader chose for latencies; others begin at zero. */
  readonly latency?: boolean;
  /** Independent of the reader's choice. */
  readonly logarithmic?: boolean;
  readonly ends?: readonly [number, number];
  readonly paint?: (chart: uPlot) => void;
}

const HEIGHT = 180;
const NO_LIMITS: readonly Limit[] = [];

export function TimeChart(props: TimeChartProps) {
  const { atSeconds, description, format, id, lines, note, title, windowSeconds } = props;
  const fragment = useFragment();
  const charts = useCharts();
  const { range } = charts;
  const moment = (at: number) => momentAt(charts, startOf(props, at), windowSeconds);
  const [pointed, setPointed] = useState<{ index: number; left: number } | null>(null);
  const [asTable, setAsTable] = useState(false);
  const only = fragment.get(`only.${id}`);
  const isolated = lines.some(({ label }) => label === only) ? only : null;
  const isolate = (label: string) =>
    fragment.set({ [`only.${id}`]: isolated === label ? null : label });
  const { holder, plot } = usePlot(props, isolated, (index, left) =>
    setPointed(index === null || left < 0 ? null : { index, left }),
  );
  const index = pointed?.index ?? null;
  return (
    <figure class="chart" data-chart={id}>
      <figcaption>
        <span class="chart-title">{title}</span>
        <span class="legend">
          {lines.map((line) => (
            <LegendItem
              key={line.label}
              line={line}
              text={index === null ? textAtRest(props, line, range) : textAt(line, index, format)}
              faded={isolated !== null && isolated !== line.label}
              pressed={isolated === line.label}
              onClick={lines.length > 1 ? () => isolate(line.label) : null}
            />
          ))}
        </span>
        <span class="chart-side">
          {note !== undefined && <span class="chart-note">{note}</span>}
          <TableToggle of={title} on={asTable} set={setAsTable} />
        </span>
      </figcaption>
      <div class="canvas" style={{ minHeight: `${props.height ?? HEIGHT}px` }}>
        <Slider
          {...{ holder, plot, atSeconds }}
          label={`${title}. ${description}`}
          index={index}
          text={(at) => spoken(lines, at, moment(at), format)}
        />
        {pointed !== null && (
          <span class="cursor-time" style={{ left: `${tipLeft(plot.current, pointed.left)}px` }}>
            {moment(pointed.index)}
          </span>
        )}
      </div>
      {asTable && <ChartTable {...props} />}
    </figure>
  );
}

function momentAt({ momentText }: ChartsState, seconds: number, windowSeconds: number): string {
  return momentText?.(seconds) ?? clockAt(seconds, windowSeconds);
}

function startOf({ atSeconds, windowSeconds }: TimeChartProps, index: number): number {
  return (atSeconds[index] ?? 0) - windowSeconds / 2;
}

/** Keeps the tip inside the canvas, however near its edge the cursor is. */
function tipLeft(chart: uPlot | null, left: number): number {
  if (chart === null) return left;
  const offset = chart.width - chart.over.clientWidth - RIGHT_PADDING;
  return Math.min(Math.max(left + offset, 24), chart.width - 24);
}

type Pointed = (index: number | null, left: number) => void;

/** Canvas of a chart, recreated when its lines or colours change and kept for everything else. */
function usePlot(props: TimeChartProps, isolated: string | null, onIndex: Pointed) {
  const charts = useCharts();
  const holder = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const near = useNear(holder);
  const theme = useTheme();
  const { atSeconds, limits = NO_LIMITS, lines, paint } = props;
  const logarithmic =
    props.logarithmic === true || (charts.scale === "logarithmic" && props.latency === true);
  const now = useRef({ charts, onIndex });
  now.current = { charts, onIndex };
  const drawn = useMemo(
    (): PlotProps => ({
      ...{ atSeconds, limits, lines, logarithmic },
      formatTick: props.formatTick,
      height: props.height ?? HEIGHT,
      ends: props.ends ?? null,
      paint: paint ?? null,
    }),
    [atSeconds, lines, limits, logarithmic, paint],
  );
  // Before the paint that a print is made from, hence layout effects.
  useLayoutEffect(() => {
    const element = holder.current;
    if (element === null || !near) return;
    const chart = newPlot(element, drawn, {
      charts: () => now.current.charts,
      onIndex: (index, left) => now.current.onIndex(index, left),
    });
    plot.current = chart;
    const stopTouch = listenToTouch(chart, () => now.current.charts);
    const observer = new ResizeObserver(() => {
      const width = element.clientWidth;
      if (width > 0 && width !== chart.width) chart.setSize({ width, height: chart.height });
    });
    observer.observe(element);
    return () => {
      observer.disconnect();
      stopTouch();
      chart.destroy();
      plot.current = null;
    };
  }, [near, theme, drawn]);
  const [min, max] = charts.range ?? charts.full;
  useLayoutEffect(() => plot.current?.setScale("x", { min, max }), [min, max]);
  useLayoutEffect(() => {
    lines.forEach(({ label }, at) => {
      plot.current?.setSeries(at + 1, { show: isolated === null || isolated === label });
    });
  }, [isolated, near, theme, drawn]);
  return { holder, plot };
}

interface SliderProps {
  readonly holder: { current: HTMLDivElement | null };
  readonly plot: { readonly current: uPlot | null };
  readonly atSeconds: readonly number[];
  readonly label: string;
  readonly index: number | null;
  readonly text: (index: number) => string;
}

function Slider({ atSeconds, holder, index, label, plot, text }: SliderProps) {
  const charts = useCharts();
  const [from, to] = charts.range ?? charts.full;
  const inside = atSeconds.flatMap((at, i) => (at >= from && at <= to ? [i] : []));
  const [first = 0, last = 0] = [inside[0], inside.at(-1)];
  const at = Math.min(Math.max(index ?? first, first), last);
  const point = (wanted: number) => {
    const chart = plot.current;
    const seconds = atSeconds[Math.min(Math.max(wanted, first), last)];
    if (chart === null || seconds === undefined) return;
    chart.setCursor({ left: chart.valToPos(seconds, "x"), top: 10 });
  };
  const step = (by: number) => point(index === null ? (by > 0 ? first : last) : at + by);
  const middle = atSeconds[at] ?? (from + to) / 2;
  const keys: Readonly<Record<string, () => void>> = {
    ArrowRight: () => step(1),
    ArrowLeft: () => step(-1),
    PageUp: () => step(10),
    PageDown: () => step(-10),
    Home: () => point(first),
    End: () => point(last),
    "+": () => charts.setRange(zoomed(charts, 0.5, middle)),
    "=": () => charts.setRange(zoomed(charts, 0.5, middle)),
    "-": () => charts.setRange(zoomed(charts, 2, middle)),
    "<": () => charts.setRange(moved(charts, -0.5)),
    ">": () => charts.setRange(moved(charts, 0.5)),
    Escape: () => charts.setRange(null),
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const act = keys[event.key];
    if (act === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  };
  return (
    <div
      class="plot"
      ref={holder}
      role="slider"
      tabIndex={0}
      aria-label={label}
      aria-valuemin={first}
      aria-valuemax={last}
      aria-valuenow={at}
      aria-valuetext={atSeconds.length === 0 ? "nothing was measured" : text(at)}
      onKeyDown={onKeyDown}
    />
  );
}

interface LegendItemProps {
  readonly line: Line;
  readonly text: string;
  readonly faded: boolean;
  readonly pressed: boolean;
  readonly onClick: (() => void) | null;
}

function LegendItem({ faded, line, onClick, pressed, text }: LegendItemProps) {
  const stroke = { stroke: `var(${line.color})`, "stroke-dasharray": line.dash?.join(" ") };
  const content = (
    <>
      <svg width="18" height="8" aria-hidden="true">
        <line x1="0" x2="18" y1="4" y2="4" stroke-width="2.5" {...stroke} />
      </svg>
      <span class="legend-label">{line.label}</span> <b>{text}</b>
    </>
  );
  if (onClick === null) return <span class="legend-item">{content}</span>;
  const title = pressed ? "Show all lines" : `Show only ${line.label}`;
  return (
    <button
      type="button"
      class={`legend-item ${faded ? "faded" : ""}`}
      {...{ title, onClick }}
      aria-pressed={pressed}
    >
      {content}
    </button>
  );
}

function textAt(line: Line, index: number, format: (value: number) => string): string {
  const value = line.values[index] ?? null;
  return value === null ? "–" : format(value);
}

/** Value for the whole run, or for the selected stretch. */
function textAtRest(props: TimeChartProps, line: Line, range: Range | null): string {
  const { atSeconds, format, stretch } = props;
  const text = range === null ? line.rest : stretch?.get(line.label);
  if (text !== undefined) return text;
  const [from, to] = range ?? [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY];
  const known = line.values.filter((value, at) => {
    const seconds = atSeconds[at] ?? 0;
    return value !== null && seconds >= from && seconds <= to;
  });
  const sum = known.reduce<number>((all, value) => all + (value ?? 0), 0);
  return known.length === 0 ? "–" : `mean ${format(sum / known.length)}`;
}

function spoken(
  lines: readonly Line[],
  at: number,
  clock: string,
  format: (value: number) => string,
): string {
  const values = lines.map((line) => `${line.label} ${textAt(line, at, format)}`);
  return `${clock}: ${values.join(", ")}`;
}

/** Rows of a chart's table; more windows than this are thinned out. */
const TABLE_ROWS_MAX = 120;

function ChartTable(props: TimeChartProps) {
  const { atSeconds, format, lines, title, windowSeconds } = props;
  const charts = useCharts();
  const [from, to] = charts.range ?? charts.full;
  const inside = atSeconds.flatMap((at, index) => (at >= from && at <= to ? [index] : []));
  const every = Math.max(1, Math.ceil(inside.length / TABLE_ROWS_MAX));
  const rows = inside.filter((_, at) => at % every === 0);
  const thinned = every > 1 ? `, every ${every}th window: zoom in to see all` : "";
  return (
    <div class="chart-table">
      <Table
        caption={`${title}${thinned}`}
        captioned
        download={props.id}
        columns={[{ title: "At" }, ...lines.map(({ label }) => ({ title: label, numeric: true }))]}
        rows={rows.map((index) => ({
          key: String(index),
          cells: [
            { text: momentAt(charts, startOf(props, index), windowSeconds) },
            ...lines.map((line) => ({ text: textAt(line, index, format) })),
          ],
        }))}
      />
    </div>
  );
}
