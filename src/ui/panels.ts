/**
 * The parts of the live picture, each drawn into a rectangle it is given and never beyond: header,
 * verdict strip, progress per workflow, steps, errors, generator, messages, keys. Which part gets
 * which rectangle is decided in dashboard.ts.
 */

import type { LiveRun, LiveWorkflow, RunPhase } from "../results/live.ts";
import { drawSpark } from "./chart.ts";
import {
  formatBytes,
  formatClock,
  formatCompact,
  formatCount,
  formatMs,
  formatNumber,
  formatRate,
} from "./format.ts";
import type { Grid, Rect } from "./grid.ts";
import {
  focusOf,
  pageOf,
  pageWith,
  type Scene,
  type StepRow,
  stepRows,
  summaryOf,
} from "./scene.ts";
import { peakColumns } from "./series.ts";
import { Style, type StyleId } from "./style.ts";
import { clean, shorten, textWidth } from "./text.ts";

const RULE = 0x2500;
const BAR = 0x2501;
const BAR_HALF = 0x2578;

/** A title on a rule: "── steps ─────────── p50 p95 ──"; returns where the title ends. */
export function drawRule(grid: Grid, { x, y, width }: Rect, title: string): number {
  for (let column = x; column < x + width; column++) grid.set(column, y, RULE, Style.rule);
  if (title === "" || width < 6) return x;
  const used = grid.text(x + 1, y, ` ${shorten(title, width - 4)} `, Style.heading, width - 2);
  return x + 1 + used;
}

/** Text in several styles, cut at `width`; returns the cells drawn. */
export function drawSpans(
  grid: Grid,
  { x, y, width }: Rect,
  spans: readonly (readonly [string, StyleId])[],
): number {
  let used = 0;
  for (const [text, style] of spans) {
    if (used >= width) break;
    used += grid.text(x + used, y, text, style, width - used);
  }
  return used;
}

/** A thin bar with half steps; bars of neighbouring rows stay apart. */
export function drawBar(grid: Grid, { x, y, width }: Rect, share: number, style: StyleId): void {
  const halves = Math.round(Math.min(1, Math.max(0, share)) * width * 2);
  for (let column = 0; column < width; column++) {
    const here = halves - column * 2;
    if (here >= 2) grid.set(x + column, y, BAR, style);
    else if (here === 1) grid.set(x + column, y, BAR_HALF, style);
    else grid.set(x + column, y, RULE, Style.barBack);
  }
}

const BRAND = ["HY", "PE", "RS", "CA", "LE"];
const BRAND_STYLES = [Style.brand0, Style.brand1, Style.brand2, Style.brand3, Style.brand4];

export function drawHeader(grid: Grid, area: Rect, live: LiveRun): void {
  const right = area.x + area.width;
  const total = live.totalSeconds === null ? "" : ` / ${formatClock(live.totalSeconds)}`;
  const clock = `${formatClock(live.elapsedSeconds)}${total}`;
  const phase = ` ${live.phase.toUpperCase()} `;
  const clockAt = right - textWidth(clock);
  grid.text(clockAt, area.y, clock, Style.bold);
  const phaseAt = clockAt - 1 - textWidth(phase);
  if (phaseAt > area.x) grid.text(phaseAt, area.y, phase, phaseStyle(live.phase));
  const room = phaseAt - 1 - area.x;
  if (room < 10) return;
  const brand = BRAND.map((part, index) => [part, BRAND_STYLES[index] ?? Style.bold] as const);
  const figure = `  ${formatRate(live.ratePerSecond)}`;
  const nameRoom = room - 12 - textWidth(figure);
  const name = nameRoom >= 6 ? `  ${shorten(clean(live.summary.name), nameRoom)}` : "";
  const spans = [...brand, [name, Style.text] as const, [figure, Style.bold] as const];
  drawSpans(grid, { ...area, width: room }, room < 10 + textWidth(figure) ? brand : spans);
}

function phaseStyle(phase: RunPhase): StyleId {
  if (phase === "running") return Style.goodBadge;
  if (phase === "paused" || phase === "stopping") return Style.warnBadge;
  return Style.infoBadge;
}

/** Every threshold with its value now, flowing over the rows given; more than fit take turns. */
export function drawVerdicts(grid: Grid, area: Rect, live: LiveRun, scene: Scene): void {
  const items = verdictItems(live, area.width);
  if (items.length === 0) {
    grid.text(area.x, area.y, "no thresholds: this run judges nothing", Style.dim, area.width);
    return;
  }
  const rows = flow(items, area.width);
  const { from, to } = pageOf(rows.length, area.height, scene.nowMs);
  rows.slice(from, to).forEach((row, index) => {
    let x = area.x;
    for (const item of row) {
      x += drawSpans(grid, { ...area, x, y: area.y + index }, item.spans) + FLOW_GAP;
    }
  });
}

const FLOW_GAP = 3;

interface VerdictItem {
  readonly spans: readonly (readonly [string, StyleId])[];
  readonly width: number;
}

function verdictItems(live: LiveRun, width: number): VerdictItem[] {
  // What fails is what one looks for: it stands first.
  const sorted = [...live.summary.thresholds].sort((a, b) => Number(a.passed) - Number(b.passed));
  return sorted.map(({ expression, passed, actual, actualText }) => {
    const unknown = actual === null;
    const style = unknown ? Style.dim : passed ? Style.good : Style.bad;
    const mark = unknown ? "·" : passed ? "✓" : "✗";
    const value = clean(actualText);
    const name = shorten(clean(expression), Math.max(4, width - textWidth(value) - 4));
    const spans = [
      [`${mark} `, style],
      [`${name}  `, Style.text],
      [value, style],
    ] as const;
    return { spans, width: textWidth(name) + textWidth(value) + 4 };
  });
}

/** As many items per row as fit. */
function flow(items: readonly VerdictItem[], width: number): VerdictItem[][] {
  const rows: VerdictItem[][] = [];
  let used = Infinity;
  for (const item of items) {
    if (used + FLOW_GAP + item.width > width) {
      rows.push([]);
      used = -FLOW_GAP;
    }
    rows.at(-1)?.push(item);
    used += FLOW_GAP + item.width;
  }
  return rows;
}

export function verdictRows(live: LiveRun, width: number): number {
  return Math.max(1, flow(verdictItems(live, width), width).length);
}

/** One line per workflow: name, bar, virtual users, rate against target. */
export function drawWorkflows(grid: Grid, area: Rect, live: LiveRun, scene: Scene): void {
  const all = live.workflows.length;
  const { from, to } = pageOf(all, area.height, scene.nowMs);
  const part = to - from < all ? `  ${from + 1}–${to} of ${all}` : "";
  const width = area.width - textWidth(part);
  grid.text(area.x + width, area.y, part, Style.dim);
  const shown = live.workflows.slice(from, to);
  const longest = Math.max(0, ...live.workflows.map(({ name }) => textWidth(clean(name))));
  const details = shown.map((workflow) => workflowDetails(live, workflow, scene));
  const detailWidth = Math.max(0, ...details.map((spans) => spansWidth(spans)));
  const room = width - detailWidth - PERCENT_CELLS;
  // A long name gives way to the bar down to a few cells: the header has a URL in full.
  const nameMost = Math.max(NAME_MIN, Math.min(Math.floor(width / 4), room - BAR_WANTED));
  const nameWidth = Math.min(longest, nameMost);
  const barWidth = Math.min(BAR_MAX, room - nameWidth);
  shown.forEach((workflow, index) => {
    const y = area.y + index;
    grid.text(area.x, y, clean(workflow.name), Style.bold, nameWidth);
    let x = area.x + nameWidth + 1;
    if (barWidth >= BAR_MIN) {
      drawBar(grid, { x, y, width: barWidth, height: 1 }, workflow.progress, barStyle(workflow));
      x += barWidth + 1;
    }
    const percent = Math.floor(Math.min(1, Math.max(0, workflow.progress)) * 100);
    grid.textRight(x + 5, y, `${percent} %`, Style.text);
    const rest = { x: x + 7, y, width: area.x + width - x - 7, height: 1 };
    drawSpans(grid, rest, details[index] ?? []);
  });
}

const NAME_MIN = 12;
const BAR_MIN = 6;
const BAR_WANTED = 16;
const BAR_MAX = 60;
/** " 100 %" and the gaps around it. */
const PERCENT_CELLS = 10;

function barStyle({ status, warmingUp }: LiveWorkflow): StyleId {
  if (status === "failed") return Style.bad;
  if (status === "interrupted" || warmingUp) return Style.warn;
  return status === "completed" ? Style.good : Style.bar;
}

function spansWidth(spans: readonly (readonly [string, StyleId])[]): number {
  return spans.reduce((sum, [text]) => sum + textWidth(text), 0);
}

function workflowDetails(
  live: LiveRun,
  workflow: LiveWorkflow,
  scene: Scene,
): readonly (readonly [string, StyleId])[] {
  const { status, warmingUp, activeVus, targetVus, targetPerSecond } = workflow;
  if (status === "failed") {
    return [
      [`failed: ${clean(summaryOf(live, workflow.name)?.error ?? "see the result")}`, Style.bad],
    ];
  }
  if (status !== "running") return [[status, status === "completed" ? Style.good : Style.dim]];
  const vus =
    activeVus === targetVus
      ? formatCompact(activeVus)
      : `${formatCompact(activeVus)}/${formatCompact(targetVus)}`;
  const spans: (readonly [string, StyleId])[] = [[`${vus} VUs`, Style.text]];
  spans.push([`   ${formatNumber(workflow.ratePerSecond)} req/s`, Style.bold]);
  if (targetPerSecond !== null) spans.push(...targetSpans(workflow, targetPerSecond, scene));
  if (warmingUp) spans.push(["   warming up", Style.warn]);
  return spans;
}

/** Below this share of its target a rate is shown as missing it. */
const ON_TARGET = 0.98;

function targetSpans(
  { name, warmingUp }: LiveWorkflow,
  target: number,
  { arrivals }: Scene,
): readonly (readonly [string, StyleId])[] {
  const achieved = arrivals.get(name);
  const asked = `${formatNumber(target)} arrivals/s`;
  if (achieved === undefined || warmingUp) return [[`   target ${asked}`, Style.target]];
  const style = achieved >= target * ON_TARGET ? Style.good : Style.bad;
  return [
    [`   ${formatNumber(achieved)}`, style],
    [` of ${asked}`, Style.target],
  ];
}

interface StepColumn {
  readonly title: string;
  readonly width: number;
  readonly style: StyleId;
  readonly text: (row: StepRow) => string;
}

const alarm = (row: StepRow): boolean => row.live.failedPerSecond > 0;

/** In order of worth: as many as fit beside the name are shown, in this order. */
const STEP_COLUMNS: readonly StepColumn[] = [
  { title: "p99", width: 9, style: Style.p99, text: ({ live }) => formatMs(live.p99) },
  { title: "p95", width: 9, style: Style.p95, text: ({ live }) => formatMs(live.p95) },
  { title: "p50", width: 9, style: Style.p50, text: ({ live }) => formatMs(live.p50) },
  {
    title: "rate",
    width: 10,
    style: Style.bold,
    text: ({ live }) => formatRate(live.ratePerSecond),
  },
  { title: "failed", width: 9, style: Style.text, text: ({ total }) => count(total?.failed) },
  { title: "requests", width: 13, style: Style.text, text: ({ total }) => count(total?.requests) },
  { title: "max", width: 9, style: Style.text, text: ({ total }) => ms(total?.latencyMs.max) },
  { title: "received", width: 10, style: Style.dim, text: ({ total }) => bytes(total?.bytesIn) },
  { title: "sent", width: 10, style: Style.dim, text: ({ total }) => bytes(total?.bytesOut) },
  {
    title: "first byte",
    width: 11,
    style: Style.dim,
    text: ({ total }) => ms(total?.firstByteMs.p50),
  },
];

/** The order on screen, left to right. */
const STEP_ORDER = [
  "requests",
  "failed",
  "rate",
  "p50",
  "p95",
  "p99",
  "max",
  "first byte",
  "received",
  "sent",
];

function count(value: number | undefined): string {
  return value === undefined ? "–" : value < 1e9 ? formatCount(value) : formatCompact(value);
}

function ms(value: number | undefined): string {
  return value === undefined ? "–" : formatMs(value);
}

function bytes(value: number | undefined): string {
  return value === undefined ? "–" : formatBytes(value);
}

const STEP_NAME_MIN = 16;
const SPARK_MAX = 40;

/** The table: last five seconds for rate and percentiles, the whole run for counts. First row is its title. */
export function drawSteps(grid: Grid, area: Rect, live: LiveRun, scene: Scene): void {
  const rows = stepRows(live);
  const focus = focusOf(rows.length, scene);
  const room = area.height - 1;
  const { from } = pageWith(rows.length, room, focus);
  const shown = rows.slice(from, from + Math.max(0, room));
  const several = new Set(rows.map(({ workflow }) => workflow.name)).size > 1;
  const names = rows.map(({ workflow, live: step }) =>
    several ? `${clean(workflow.name)} › ${clean(step.name)}` : clean(step.name),
  );
  const longest = Math.max(STEP_NAME_MIN, ...names.map(textWidth));
  const { columns, nameWidth, spark } = stepColumns(area.width, longest);
  const part =
    rows.length > shown.length ? ` ${from + 1}–${from + shown.length} of ${rows.length}` : "";
  drawRule(grid, { ...area, width: nameWidth + 2 }, `steps${part}`);
  let right = area.x + 2 + nameWidth;
  for (const column of columns) {
    right += column.width;
    grid.textRight(
      right,
      area.y,
      ` ${column.title}`,
      column.style === Style.text ? Style.heading : column.style,
    );
  }
  if (spark > 0) grid.text(right + 2, area.y, " p95 over time", Style.p95);
  shown.forEach((row, index) => {
    const y = area.y + 1 + index;
    const focused = from + index === focus && rows.length > 1;
    if (focused) grid.text(area.x, y, "▸", Style.key);
    const nameStyle = alarm(row) ? Style.bad : focused ? Style.bold : Style.text;
    grid.text(area.x + 2, y, names[from + index] ?? "", nameStyle, nameWidth);
    drawStepFigures(grid, { x: area.x + 2 + nameWidth, y, width: spark, height: 1 }, row, columns);
    if (spark === 0 || row.total === null) return;
    const until = Math.max(1, live.elapsedSeconds);
    const values = peakColumns(row.total.series, row.total.series.p95, spark, until);
    drawSpark(grid, { x: right + 3, y, width: spark, height: 1 }, values, Style.p95);
  });
}

function drawStepFigures(
  grid: Grid,
  area: Rect,
  row: StepRow,
  columns: readonly StepColumn[],
): void {
  let right = area.x;
  for (const column of columns) {
    right += column.width;
    const failing = column.title === "failed" && (row.total?.failed ?? 0) > 0;
    const idle = row.live.ratePerSecond === 0 && /^(p\d|rate)/.test(column.title);
    const text = idle ? "–" : column.text(row);
    grid.textRight(
      right,
      area.y,
      shorten(text, column.width - 1),
      failing ? Style.bad : column.style,
    );
  }
}

function stepColumns(
  width: number,
  longest: number,
): { readonly columns: StepColumn[]; readonly nameWidth: number; readonly spark: number } {
  const room = width - 2;
  const chosen: StepColumn[] = [];
  let used = 0;
  for (const column of STEP_COLUMNS) {
    // The name keeps its least width; beyond the basics it keeps its whole width.
    const name =
      chosen.length < 6 ? Math.min(STEP_NAME_MIN, Math.floor(room / 3)) : Math.min(longest, 40);
    if (used + column.width + name > room) break;
    chosen.push(column);
    used += column.width;
  }
  const columns = STEP_ORDER.flatMap((title) => chosen.filter((column) => column.title === title));
  const left = room - used;
  const spare = left - Math.min(longest, 48) - 6;
  const spark = spare >= 16 ? Math.min(SPARK_MAX, spare) : 0;
  const nameWidth = Math.max(0, Math.min(longest, left - (spark > 0 ? spark + 4 : 0)));
  return {
    columns,
    nameWidth: spark > 0 ? nameWidth : Math.max(nameWidth, Math.min(left, 60)),
    spark,
  };
}
