/**
 * The table of steps in the live picture. Columns are chosen by worth: a narrow terminal shows name and percentiles, a
 * wide one everything and the trend of p95.
 */

import { clean, shorten, textWidth } from "../core/base/terminal-text.ts";
import {
  formatBytes,
  formatCompact,
  formatCompactRate,
  formatCount,
  formatMs,
} from "../core/load/results/format.ts";
import type { LiveRun } from "../core/load/results/live.ts";
import type { Distribution } from "../core/load/results/model.ts";
import { drawSpark } from "./chart.ts";
import { drawRule } from "./draw.ts";
import type { Grid, Rect } from "./grid.ts";
import { focusOf, pageWith, type Scene, type StepRow, stepRows } from "./scene.ts";
import { peakColumns } from "./series.ts";
import { Style, type StyleId } from "./style.ts";

interface StepColumn {
  readonly title: string;
  /** 1 is shown first where space is short. */
  readonly worth: number;
  readonly width: number;
  readonly style: StyleId;
  readonly text: (row: StepRow) => string;
}

/** In the order of the screen. */
const STEP_COLUMNS: readonly StepColumn[] = [
  {
    title: "requests",
    worth: 6,
    width: 13,
    style: Style.text,
    text: ({ total }) => count(total?.requests),
  },
  {
    title: "failed",
    worth: 5,
    width: 9,
    style: Style.text,
    text: ({ total }) => count(total?.failed),
  },
  {
    title: "rate",
    worth: 4,
    width: 10,
    style: Style.bold,
    text: ({ live }) => formatCompactRate(live.ratePerSecond),
  },
  { title: "p50", worth: 3, width: 9, style: Style.p50, text: ({ live }) => known(live.p50) },
  { title: "p95", worth: 2, width: 9, style: Style.p95, text: ({ live }) => known(live.p95) },
  { title: "p99", worth: 1, width: 9, style: Style.p99, text: ({ live }) => known(live.p99) },
  {
    title: "run max",
    worth: 7,
    width: 9,
    style: Style.text,
    text: ({ total }) => ofMeasured(total?.latencyMs, "max"),
  },
  {
    title: "run first byte",
    worth: 10,
    width: 15,
    style: Style.dim,
    text: ({ total }) => ofMeasured(total?.firstByteMs, "p50"),
  },
  {
    title: "received",
    worth: 8,
    width: 10,
    style: Style.dim,
    text: ({ total }) => bytes(total?.bytesIn),
  },
  {
    title: "sent",
    worth: 9,
    width: 10,
    style: Style.dim,
    text: ({ total }) => bytes(total?.bytesOut),
  },
];

const BY_WORTH = [...STEP_COLUMNS].sort((a, b) => a.worth - b.worth);
/** Columns up to this worth may shorten the name; the others are shown only when it fits. */
const BASIC_WORTH = 6;

function count(value: number | undefined): string {
  return value === undefined ? "–" : value < 1e9 ? formatCount(value) : formatCompact(value);
}

/** Nothing takes no time: a zero is a step without calls. */
function known(ms: number): string {
  return ms === 0 ? "–" : formatMs(ms);
}

function ofMeasured(times: Distribution | undefined, figure: "p50" | "max"): string {
  return times === undefined || times.count === 0 ? "–" : formatMs(times[figure]);
}

function bytes(value: number | undefined): string {
  return value === undefined ? "–" : formatBytes(value);
}

/** "▸ " before the step in focus. */
const MARK_CELLS = 2;
const NAME_MIN = 16;
const NAME_WANTED = 40;
const NAME_MAX = 60;
const SPARK_MIN = 16;
const SPARK_MAX = 40;
const SPARK_GAP = 4;

/** Rate and percentiles of the last five seconds, counts of the whole run. The first row is the title. */
export function drawSteps(grid: Grid, area: Rect, live: LiveRun, scene: Scene): void {
  const rows = stepRows(live);
  const focus = focusOf(rows.length, scene);
  const { from, to } = pageWith(rows.length, area.height - 1, focus);
  const widest = stepNames(rows, Number.POSITIVE_INFINITY).map(textWidth);
  const layout = stepLayout(area.width, Math.max(NAME_MIN, ...widest));
  const names = stepNames(rows, layout.nameWidth);
  const part = to - from < rows.length ? ` ${from + 1}–${to} of ${rows.length}` : "";
  drawTitles(grid, area, `steps${part}`, layout);
  rows.slice(from, to).forEach((row, index) => {
    const at = from + index;
    const focused = at === focus && rows.length > 1;
    const line = { ...area, y: area.y + 1 + index, height: 1 };
    if (focused) grid.text(line.x, line.y, "▸", Style.key);
    const style = row.live.failedPerSecond > 0 ? Style.bad : focused ? Style.bold : Style.text;
    grid.text(line.x + MARK_CELLS, line.y, names[at] ?? "", style, layout.nameWidth);
    drawFigures(grid, line, row, layout);
    drawTrend(grid, line, row, { layout, untilSeconds: Math.max(1, live.elapsedSeconds) });
  });
}

/** With several workflows each step is prefixed with its own, which is cut first, or all steps would look alike. */
function stepNames(rows: readonly StepRow[], width: number): string[] {
  const several = new Set(rows.map(({ workflow }) => workflow.name)).size > 1;
  return rows.map(({ workflow, live: step }) => {
    const name = clean(step.name);
    if (!several) return name;
    const room = Math.max(width - textWidth(name) - 3, Math.floor(width / 3));
    return `${shorten(clean(workflow.name), room)} › ${name}`;
  });
}

function drawTitles(
  grid: Grid,
  area: Rect,
  title: string,
  { columns, nameWidth, spark }: StepLayout,
): void {
  drawRule(grid, { ...area, width: nameWidth + MARK_CELLS }, title);
  let right = area.x + MARK_CELLS + nameWidth;
  for (const column of columns) {
    right += column.width;
    const style = column.style === Style.text ? Style.heading : column.style;
    grid.textRight(right, area.y, column.title, style);
  }
  if (spark > 0) grid.text(right + SPARK_GAP - 1, area.y, "p95 over time", Style.p95, spark);
}

function drawFigures(
  grid: Grid,
  line: Rect,
  row: StepRow,
  { columns, nameWidth }: StepLayout,
): void {
  let right = line.x + MARK_CELLS + nameWidth;
  for (const column of columns) {
    right += column.width;
    const failing = column.title === "failed" && (row.total?.failed ?? 0) > 0;
    const idle = row.live.ratePerSecond === 0 && /^(p\d|rate)/.test(column.title);
    const text = shorten(idle ? "–" : column.text(row), column.width - 1);
    grid.textRight(right, line.y, text, failing ? Style.bad : column.style);
  }
}

interface Trend {
  readonly layout: StepLayout;
  readonly untilSeconds: number;
}

function drawTrend(
  grid: Grid,
  line: Rect,
  { total }: StepRow,
  { layout, untilSeconds }: Trend,
): void {
  const { columns, nameWidth, spark } = layout;
  if (spark === 0 || total === null) return;
  const figures = columns.reduce((sum, { width }) => sum + width, 0);
  const x = line.x + MARK_CELLS + nameWidth + figures + SPARK_GAP - 1;
  const values = peakColumns(
    total.series,
    total.series.steady?.p95 ?? total.series.p95,
    spark,
    untilSeconds,
  );
  drawSpark(grid, { ...line, x, width: spark }, values, Style.p95);
}

interface StepLayout {
  readonly columns: readonly StepColumn[];
  readonly nameWidth: number;
  /** Cells of the p95 sparkline; 0 without space for it. */
  readonly spark: number;
}

function stepLayout(width: number, longest: number): StepLayout {
  const room = width - MARK_CELLS;
  const chosen = new Set<StepColumn>();
  let left = room;
  for (const column of BY_WORTH) {
    const basic = column.worth <= BASIC_WORTH;
    const name = basic ? Math.min(NAME_MIN, Math.floor(room / 3)) : Math.min(longest, NAME_WANTED);
    if (left - column.width < name) break;
    chosen.add(column);
    left -= column.width;
  }
  const columns = STEP_COLUMNS.filter((column) => chosen.has(column));
  const spare = left - Math.min(longest, NAME_WANTED) - SPARK_GAP;
  if (spare < SPARK_MIN) return { columns, nameWidth: Math.min(left, NAME_MAX), spark: 0 };
  const spark = Math.min(SPARK_MAX, spare);
  return { columns, nameWidth: Math.min(longest, left - spark - SPARK_GAP), spark };
}
