/**
 * The live picture: a function of the run, the scene and the size of the terminal.
 *
 *   HYPERSCALE  checkout.ts                       RUNNING  00:12 / 00:30
 *   ✓ latency.p99 < 200ms  48.1 ms    ✗ errors.rate < 1%  1.4 %
 *   browse    ██████████░░░░  42 %  64 VUs   1,031/s
 *   ── per second ── requests failed  ── latency of login ──────────
 *    …                                …
 *   ── steps ──────────── requests   failed   rate   p50   p95   p99
 *    …
 *   ── errors ─────────────────────  ── load generator ────────────
 *   › messages
 *   p pause   + - load ±10 %   o report   q quit with results   ? help
 *
 * Rows are distributed by need: every part first gets its minimum height, then steps, charts and lists grow in that
 * order until the screen is full. Below 60×16 charts are dropped; below that only lines remain.
 */

import { clean } from "../core/base/terminal-text.ts";
import {
  formatClock,
  formatCompactPercent,
  formatCompactRate,
  formatMs,
} from "../core/load/results/format.ts";
import type { LiveRun } from "../core/load/results/live.ts";
import { drawLatencyChart, drawRateChart } from "./chart.ts";
import { drawRule, drawSpans } from "./draw.ts";
import { Grid, type Rect } from "./grid.ts";
import { drawHistogramChart } from "./histogram-chart.ts";
import { drawHeader, drawVerdicts, drawWorkflows, verdictRows } from "./panels.ts";
import { EMPTY_SCENE, focusOf, type Scene, type StepRow, stepRows } from "./scene.ts";
import { timeSpan } from "./series.ts";
import {
  checkEntries,
  drawGenerator,
  drawHelp,
  drawKeys,
  drawList,
  drawMessages,
  errorEntries,
  type ListPanel,
  limitLines,
  statusEntries,
} from "./side-panels.ts";
import { drawSteps } from "./steps-panel.ts";
import { Style } from "./style.ts";

const FULL_COLUMNS_MIN = 60;
const FULL_ROWS_MIN = 16;
const LINES_COLUMNS_MIN = 30;
const LINES_ROWS_MIN = 6;

export function renderDashboard(
  live: LiveRun,
  columns: number,
  rows: number,
  scene: Scene = EMPTY_SCENE,
): Grid {
  const grid = new Grid(columns, rows);
  drawDashboard(grid, live, scene);
  return grid;
}

/**
 * Draws into a grid that may contain an older picture. Returns the area of the workflows, for `drawMoving`; null when
 * there is none and the next picture must be drawn completely.
 */
export function drawDashboard(grid: Grid, live: LiveRun, scene: Scene): Rect | null {
  grid.clear();
  const workflows = drawParts(grid, live, scene);
  if (!scene.help) return workflows;
  drawHelp(grid);
  return null;
}

function drawParts(grid: Grid, live: LiveRun, scene: Scene): Rect | null {
  const { columns, rows } = grid;
  if (columns >= FULL_COLUMNS_MIN && rows >= FULL_ROWS_MIN) return drawFull(grid, live, scene);
  if (columns >= LINES_COLUMNS_MIN && rows >= LINES_ROWS_MIN) drawCompact(grid, live, scene);
  else drawTiny(grid, live);
  return null;
}

function drawFull(grid: Grid, live: LiveRun, scene: Scene): Rect {
  const width = grid.columns;
  const steps = stepRows(live);
  const lists = listPanels(live, width);
  const heights = shareRows(grid.rows, {
    verdicts: verdictRows(live, width),
    workflows: live.workflows.length,
    steps: steps.length,
    list: Math.max(
      4 + live.summary.generator.cores.length,
      ...lists.map(({ entries }) => entries.length),
    ),
    messages: scene.messages.length,
    warning: limitLines(live, Math.floor(width / (lists.length + 1)) - 4).length,
  });
  const workflowsAt = 1 + heights.verdicts + heights.gap;
  let y = workflowsAt + heights.workflows + heights.gap;
  const take = (height: number): Rect => {
    const area = { x: 0, y, width, height };
    y += height;
    return area;
  };
  drawVerdicts(grid, { x: 0, y: 1, width, height: heights.verdicts }, live, scene);
  drawCharts(grid, take(heights.charts), live, scene);
  drawSteps(grid, take(heights.steps), live, scene);
  y += heights.gap;
  drawLists(grid, take(heights.list), live, { lists, scene });
  drawMessages(grid, take(heights.messages), scene);
  drawKeys(grid, take(1), live, scene);
  const workflows = { x: 0, y: workflowsAt, width, height: heights.workflows };
  drawMoving(grid, workflows, live, scene);
  return workflows;
}

/** Redraws the moving parts over an older picture: the clock and the progress of the workflows. */
export function drawMoving(grid: Grid, workflows: Rect, live: LiveRun, scene: Scene): void {
  grid.clearRows(0, 1);
  grid.clearRows(workflows.y, workflows.height);
  drawHeader(grid, { x: 0, y: 0, width: grid.columns, height: 1 }, live);
  drawWorkflows(grid, workflows, live, scene);
}

interface Needs {
  readonly verdicts: number;
  readonly workflows: number;
  readonly steps: number;
  readonly list: number;
  readonly messages: number;
  /** Lines that must be visible, beside the lists. */
  readonly warning?: number;
}

interface Heights extends Omit<Needs, "warning"> {
  readonly charts: number;
  /** Blank rows between groups. */
  readonly gap: number;
}

/** Header and keys. */
const FRAME_ROWS = 2;
const GAPS = 3;

/** Minimum heights first; the rest goes where it is needed most. Titles count: "+ 1". */
export function shareRows(rows: number, needs: Needs): Heights {
  const roomy = rows >= 34;
  const heights = {
    verdicts: Math.min(needs.verdicts, rows < 20 ? 1 : roomy ? 6 : 2),
    workflows: Math.min(Math.max(1, needs.workflows), roomy ? 8 : rows < 20 ? 1 : 3),
    charts: rows >= 20 ? 6 : 0,
    steps: 3,
    list: 3,
    messages: 1,
    gap: roomy ? 1 : 0,
  };
  const used = (): number =>
    FRAME_ROWS +
    GAPS * heights.gap +
    heights.verdicts +
    heights.workflows +
    heights.charts +
    heights.steps +
    heights.list +
    heights.messages;
  let left = rows - used();
  const grow = (part: "charts" | "steps" | "list" | "messages", to: number): void => {
    const more = Math.max(0, Math.min(left, to - heights[part]));
    heights[part] += more;
    left -= more;
  };
  if (left < 0) heights.workflows = Math.max(1, heights.workflows + left);
  left = Math.max(0, rows - used());
  if ((needs.warning ?? 0) > 0) grow("list", (needs.warning ?? 0) + 1);
  grow("steps", Math.min(needs.steps + 1, 5));
  grow("list", Math.min(needs.list + 1, 4));
  if (rows >= 20) grow("charts", 8);
  grow("list", Math.min(needs.list + 1, 5));
  grow("steps", Math.min(needs.steps + 1, Math.floor(rows / 3)));
  grow("charts", rows >= 20 ? Math.floor(rows / 3) : 0);
  grow("list", Math.min(needs.list + 1, 10));
  grow("messages", Math.min(needs.messages, 5));
  grow("steps", needs.steps + 1);
  grow("charts", rows >= 20 ? rows : 0);
  grow("steps", rows);
  return heights;
}

const COLUMN_GAP = 2;

/** Cuts a width into equal columns with gaps. */
function split({ x, y, width, height }: Rect, parts: number): Rect[] {
  const each = Math.floor((width - COLUMN_GAP * (parts - 1)) / parts);
  return Array.from({ length: parts }, (_, index) => {
    const left = x + index * (each + COLUMN_GAP);
    return { x: left, y, height, width: index === parts - 1 ? x + width - left : each };
  });
}

/** From this width on, the latency histogram is beside the two charts over time. */
const THREE_CHARTS_COLUMNS_MIN = 150;

function drawCharts(grid: Grid, area: Rect, live: LiveRun, scene: Scene): void {
  if (area.height < 3) return;
  const [left, middle, right] = split(area, area.width >= THREE_CHARTS_COLUMNS_MIN ? 3 : 2);
  if (left === undefined || middle === undefined) return;
  const axis = {
    untilSeconds: timeSpan(live.elapsedSeconds, live.totalSeconds),
    nowSeconds: live.elapsedSeconds,
  };
  drawTitle(grid, left, "per second", [
    ["requests", Style.rate],
    ["failed", Style.failed],
    ...(scene.targets.some(({ perSecond }) => perSecond > 0) ? TARGET_LEGEND : []),
  ]);
  const all = live.summary.workflows.flatMap(({ steps }) => steps.map(({ series }) => series));
  drawRateChart(grid, below(left), all, { ...axis, targets: scene.targets });
  const rows = stepRows(live);
  const focus: StepRow | undefined = rows[focusOf(rows.length, scene)];
  const name = focus === undefined ? "" : ` of ${clean(focus.live.name)}`;
  drawTitle(grid, middle, `latency${name}`, PERCENTILE_LEGEND);
  if (focus?.total != null) drawLatencyChart(grid, below(middle), focus.total.series, axis);
  if (right === undefined) return;
  drawTitle(grid, right, `spread${name}`, PERCENTILE_LEGEND);
  if (focus?.total != null) drawHistogramChart(grid, below(right), focus.total);
}

const TARGET_LEGEND = [["target", Style.target]] as const;
const PERCENTILE_LEGEND = [
  ["p50", Style.p50],
  ["p95", Style.p95],
  ["p99", Style.p99],
] as const;

/** A rule with the title at the left and the legend at the right; the title is shortened first. */
function drawTitle(
  grid: Grid,
  area: Rect,
  title: string,
  legend: readonly (readonly [string, number])[],
): void {
  drawRule(grid, area, "");
  const width = legend.reduce((sum, [text]) => sum + text.length + 1, 1);
  drawRule(grid, { ...area, width: area.width - width - 1 }, title);
  let x = area.x + area.width - 1 - width;
  x += grid.text(x, area.y, " ");
  for (const [text, style] of legend) x += grid.text(x, area.y, `${text} `, style);
}

function below({ x, y, width, height }: Rect): Rect {
  return { x, y: y + 1, width, height: height - 1 };
}

function listPanels(live: LiveRun, width: number): ListPanel[] {
  const errors = { title: "errors", entries: errorEntries(live), empty: "none" };
  const checks = { title: "checks", entries: checkEntries(live), empty: "none declared" };
  const statuses = { title: "answers", entries: statusEntries(live), empty: "none yet" };
  if (width >= 150) return [errors, statuses, checks];
  const failing = checks.entries.some(({ style }) => style === Style.bad);
  if (width >= 110) return [errors, failing || statuses.entries.length === 0 ? checks : statuses];
  if (!failing) return [errors];
  const both = [...errors.entries, ...checks.entries.filter(({ style }) => style === Style.bad)];
  return [{ ...errors, title: "errors and failed checks", entries: both }];
}

function drawLists(
  grid: Grid,
  area: Rect,
  live: LiveRun,
  { lists, scene }: { readonly lists: readonly ListPanel[]; readonly scene: Scene },
): void {
  const parts = split(area, lists.length + 1);
  lists.forEach((panel, index) => {
    const part = parts[index];
    if (part !== undefined) drawList(grid, part, panel, scene);
  });
  const last = parts.at(-1);
  if (last !== undefined) drawGenerator(grid, last, live);
}

/** Small terminals: no charts; errors and generator share one line. */
function drawCompact(grid: Grid, live: LiveRun, scene: Scene): void {
  const width = grid.columns;
  const rows = grid.rows;
  drawHeader(grid, { x: 0, y: 0, width, height: 1 }, live);
  const verdicts = Math.min(verdictRows(live, width), rows >= 10 ? 2 : 1);
  drawVerdicts(grid, { x: 0, y: 1, width, height: verdicts }, live, scene);
  const workflows = Math.min(Math.max(1, live.workflows.length), rows >= 12 ? 3 : 1);
  drawWorkflows(grid, { x: 0, y: 1 + verdicts, width, height: workflows }, live, scene);
  const stepsAt = 1 + verdicts + workflows;
  const messages = rows >= 8 ? 1 : 0;
  const stepsHeight = rows - stepsAt - 2 - messages;
  if (stepsHeight >= 2)
    drawSteps(grid, { x: 0, y: stepsAt, width, height: stepsHeight }, live, scene);
  drawHealthLine(grid, { x: 0, y: rows - 2 - messages, width, height: 1 }, live);
  drawMessages(grid, { x: 0, y: rows - 2, width, height: messages }, scene);
  drawKeys(grid, { x: 0, y: rows - 1, width, height: 1 }, live, scene);
}

function drawHealthLine(grid: Grid, area: Rect, live: LiveRun): void {
  const { cpu, lagMsP99, limited } = live.summary.generator;
  const errors = errorEntries(live);
  const first = errors[0];
  drawSpans(grid, area, [
    first === undefined ? ["no errors", Style.dim] : [`${first.name} ${first.figure}`, Style.bad],
    [errors.length > 1 ? ` +${errors.length - 1} kinds` : "", Style.bad],
    [
      `   core ${formatCompactPercent(Math.min(99, cpu))}  lag ${formatMs(lagMsP99)}`,
      limited ? Style.bad : Style.dim,
    ],
  ]);
}

/** Any size: the most important values, one per line, as many as fit. */
function drawTiny(grid: Grid, live: LiveRun): void {
  const failing = live.summary.thresholds.filter(
    ({ passed, actual }) => !passed && actual !== null,
  );
  const worst = Math.max(0, ...live.workflows.flatMap(({ steps }) => steps.map(({ p99 }) => p99)));
  const lines: (readonly [string, number])[] = [
    [`${formatClock(live.elapsedSeconds)} ${live.phase}`, Style.bold],
    [`${formatCompactRate(live.ratePerSecond)}`, Style.text],
    [`p99 ${formatMs(worst)}`, Style.p99],
    [
      `failed ${formatCompactRate(live.failedPerSecond)}`,
      live.failedPerSecond > 0 ? Style.bad : Style.dim,
    ],
    ...failing.map(
      ({ expression, actualText }) =>
        [`✗ ${clean(expression)} ${clean(actualText)}`, Style.bad] as const,
    ),
  ];
  lines.slice(0, grid.rows).forEach(([text, style], index) => {
    grid.text(0, index, text, style);
  });
}
