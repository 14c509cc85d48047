/**
 * Parts of the live picture, each drawn into its rectangle and never beyond: header, verdict strip, progress per
 * workflow. The table of steps and the smaller parts have files of their own; dashboard.ts decides which part gets
 * which rectangle.
 */

import { clean, shorten, textWidth } from "../core/base/terminal-text.ts";
import {
  formatClock,
  formatCompact,
  formatCompactNumber,
  formatCompactRate,
  virtualUsers,
} from "../core/load/results/format.ts";
import type { LiveRun, LiveWorkflow, RunPhase } from "../core/load/results/live.ts";
import { drawBar, drawSpans, type Ink, spansWidth } from "./draw.ts";
import type { Grid, Rect } from "./grid.ts";
import { pageOf, type Scene, summaryOf } from "./scene.ts";
import { Style, type StyleId } from "./style.ts";

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
  const figure = `  ${formatCompactRate(live.ratePerSecond)}`;
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

/** Every threshold with its current value, flowing over the given rows; if there are too many, they cycle. */
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
  readonly spans: readonly Ink[];
  readonly width: number;
}

function verdictItems(live: LiveRun, width: number): VerdictItem[] {
  // Failing thresholds come first.
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
  // A long name is shortened in favour of the bar down to a few cells: the header has the full URL.
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

function workflowDetails(live: LiveRun, workflow: LiveWorkflow, scene: Scene): readonly Ink[] {
  const { status, warmingUp, activeVus, targetVus, targetPerSecond } = workflow;
  if (status === "failed") {
    return [
      [`failed: ${clean(summaryOf(live, workflow.name)?.error ?? "see the result")}`, Style.bad],
    ];
  }
  if (workflow.doing !== null) return [[workflow.doing, Style.warn]];
  if (status !== "running") return [[status, status === "completed" ? Style.good : Style.dim]];
  const spans: Ink[] = [[usersText(activeVus, targetVus), Style.text]];
  spans.push([`   ${formatCompactNumber(workflow.ratePerSecond)} req/s`, Style.bold]);
  if (targetPerSecond !== null) spans.push(...targetSpans(workflow, targetPerSecond, scene));
  if (warmingUp) spans.push(["   warming up", Style.warn]);
  if (workflow.search !== undefined) spans.push([`   ${workflow.search}`, Style.warn]);
  return spans;
}

/** "12/14 VUs" while they start, "16→14 VUs" while surplus ones finish their iterations. */
function usersText(active: number, target: number | null): string {
  if (target === null || active === target) return virtualUsers(active);
  const mark = active > target ? "→" : "/";
  return `${formatCompact(active)}${mark}${virtualUsers(target)}`;
}

/** Below this share of its target a rate is shown as missing it. */
const ON_TARGET = 0.98;

function targetSpans(
  { name, warmingUp }: LiveWorkflow,
  target: number,
  { arrivals }: Scene,
): readonly Ink[] {
  const achieved = arrivals.get(name);
  const asked = `${formatCompactNumber(target)} arrivals/s`;
  if (achieved === undefined || warmingUp) return [[`   target ${asked}`, Style.target]];
  const style = achieved >= target * ON_TARGET ? Style.good : Style.bad;
  return [
    [`   ${formatCompactNumber(achieved)}`, style],
    [` of ${asked}`, Style.target],
  ];
}
