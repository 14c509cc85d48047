/**
 * Smaller parts of the live picture: errors by kind, status codes, checks, generator health, messages, key hints and
 * the help page. Same rule as panels.ts: each stays in its rectangle.
 */

import { clean, textWidth, wrap } from "../core/base/terminal-text.ts";
import {
  formatBytes,
  formatCompact,
  formatCompactPercent,
  formatCount,
  formatMs,
  formatPercent,
  formatSeconds,
} from "../core/load/results/format.ts";
import type { LiveRun } from "../core/load/results/live.ts";
import { drawBar, drawRule, drawSpans } from "./draw.ts";
import type { Grid, Rect } from "./grid.ts";
import { pageOf, type Scene, stepRows } from "./scene.ts";
import { Style, type StyleId } from "./style.ts";

/** A line of a list panel: a name, a number at the right, and the share its bar shows. */
interface Entry {
  readonly name: string;
  readonly figure: string;
  readonly style: StyleId;
}

/** Adds up records of counts over all steps, highest first. */
export function totals(records: readonly Readonly<Record<string, number>>[]): [string, number][] {
  const sums = new Map<string, number>();
  for (const record of records) {
    for (const [key, value] of Object.entries(record)) sums.set(key, (sums.get(key) ?? 0) + value);
  }
  return [...sums].filter(([, value]) => value > 0).sort(([, a], [, b]) => b - a);
}

function allSteps(live: LiveRun) {
  return live.summary.workflows.flatMap(({ steps }) => steps);
}

export function errorEntries(live: LiveRun): Entry[] {
  const steps = allSteps(live);
  const requests = steps.reduce((sum, step) => sum + step.requests, 0);
  const errors = totals(steps.map((step) => step.errors)).map(([kind, failed]) => ({
    name: clean(kind),
    figure: `${formatCount(failed)}${formatPercent(requests === 0 ? 0 : failed / requests).padStart(9)}`,
    style: Style.bad,
  }));
  const losses = live.summary.lost.map(({ what, atSeconds }) => ({
    name: `lost: ${clean(what)}`,
    figure: `at ${formatSeconds(atSeconds)}`,
    style: Style.bad,
  }));
  return [...losses, ...errors];
}

export function checkEntries(live: LiveRun): Entry[] {
  return live.summary.workflows
    .flatMap(({ checks }) => checks)
    .map(({ name, passed, failed }) => {
      const ran = passed + failed;
      const mark = ran === 0 ? "·" : failed === 0 ? "✓" : "✗";
      return {
        name: `${mark} ${clean(name)}`,
        figure:
          failed === 0
            ? formatCompact(passed)
            : `${formatCompact(failed)} failed  ${formatPercent(failed / ran)}`,
        style: ran === 0 ? Style.dim : failed === 0 ? Style.good : Style.bad,
        failed,
      };
    })
    .sort((a, b) => b.failed - a.failed);
}

export function statusEntries(live: LiveRun): Entry[] {
  return totals(allSteps(live).map((step) => step.statuses)).map(([status, answers]) => ({
    name: clean(status),
    figure: formatCount(answers),
    style: /^[45]/.test(status) ? Style.bad : /^3/.test(status) ? Style.warn : Style.good,
  }));
}

export interface ListPanel {
  readonly title: string;
  readonly entries: readonly Entry[];
  readonly empty: string;
}

export function drawList(grid: Grid, area: Rect, panel: ListPanel, scene: Scene): void {
  const room = area.height - 1;
  const { from, to } = pageOf(panel.entries.length, room, scene.nowMs);
  const part =
    to - from < panel.entries.length ? ` ${from + 1}–${to} of ${panel.entries.length}` : "";
  drawRule(grid, area, `${panel.title}${part}`);
  if (room < 1) return;
  if (panel.entries.length === 0)
    grid.text(area.x + 1, area.y + 1, panel.empty, Style.dim, area.width - 1);
  panel.entries.slice(from, to).forEach(({ name, figure, style }, index) => {
    const y = area.y + 1 + index;
    const nameRoom = area.width - 2 - textWidth(figure) - 1;
    grid.text(area.x + 1, y, name, style, nameRoom);
    if (nameRoom > 0) grid.textRight(area.x + area.width - 1, y, figure, Style.text);
  });
}

/** Above these the generator is close to being the limit itself. */
const CPU_HIGH = 0.85;
const LAG_MS_HIGH = 20;

/** The most important warning: shown completely, in as many lines as it takes. */
export function limitLines(live: LiveRun, width: number): string[] {
  const { limited, reason } = live.summary.generator;
  if (reason === null && !limited) return [];
  const text = clean(reason ?? "generator saturated");
  return wrap(limited ? `! the limit is here: ${text}` : `! ${text}`, width);
}

export function drawGenerator(grid: Grid, area: Rect, live: LiveRun): void {
  drawRule(grid, area, "load generator");
  const { cpu, lagMsP99, reason, cores } = live.summary.generator;
  const inner = { x: area.x + 1, y: area.y + 1, width: area.width - 2, height: 1 };
  const bottom = area.y + area.height;
  // A running process has memory: before its first report nothing is known.
  const measured = cores.some(({ residentBytes }) => residentBytes > 0);
  const lines: ((row: Rect) => void)[] = limitLines(live, inner.width).map(
    (text) => (row) => drawSpans(grid, row, [[text, Style.bad]]),
  );
  lines.push((row) =>
    measured
      ? drawMeter(grid, row, "busiest core", cpu, cpu >= CPU_HIGH ? Style.bad : Style.good)
      : drawSpans(grid, row, [["busiest core –", Style.dim]]),
  );
  const lagStyle = lagMsP99 >= LAG_MS_HIGH ? Style.bad : Style.good;
  lines.push((row) =>
    drawSpans(grid, row, [
      ["loop lag p99 ", Style.text],
      [measured ? formatMs(lagMsP99) : "–", measured ? lagStyle : Style.dim],
    ]),
  );
  const alive = cores.filter((core) => core.alive).length;
  const memory = cores.reduce((sum, core) => sum + core.residentBytes, 0);
  lines.push((row) =>
    drawSpans(grid, row, [
      [live.datacenters === undefined ? "cores " : "datacenters ", Style.text],
      [`${alive}/${cores.length}`, alive < cores.length ? Style.bad : Style.text],
      [`   memory ${measured ? formatBytes(memory) : "–"}`, Style.dim],
    ]),
  );
  if (reason === null && cores.length > 1) {
    for (const core of cores) {
      const own = live.datacenters?.[core.core] ?? `core ${core.core}`;
      const name = core.alive ? clean(own) : `${clean(own)} lost`;
      lines.push((row) => drawMeter(grid, row, name, core.cpu, core.alive ? Style.bar : Style.bad));
    }
  }
  lines.slice(0, Math.max(0, bottom - inner.y)).forEach((line, index) => {
    line({ ...inner, y: inner.y + index });
  });
}

function drawMeter(grid: Grid, row: Rect, name: string, share: number, style: StyleId): void {
  const figure = ` ${formatCompactPercent(Math.min(99, share))}`.padStart(6);
  const used = grid.text(row.x, row.y, `${name} `, Style.text, row.width - figure.length);
  const barWidth = Math.min(30, row.width - Math.max(13, used) - figure.length);
  const barAt = row.x + Math.max(13, used);
  if (barWidth >= 4)
    drawBar(grid, { x: barAt, y: row.y, width: barWidth, height: 1 }, share, style);
  grid.text(
    barAt + Math.max(0, barWidth),
    row.y,
    figure,
    style,
    row.x + row.width - barAt - Math.max(0, barWidth),
  );
}

/** The newest messages, newest last; a confirmation of a key briefly replaces the last line. */
export function drawMessages(grid: Grid, area: Rect, scene: Scene): void {
  const newest = scene.messages.slice(-area.height);
  newest.forEach((line, index) => {
    const style = index === newest.length - 1 ? Style.text : Style.dim;
    drawSpans(grid, { ...area, y: area.y + index }, [
      ["› ", Style.rule],
      [line, style],
    ]);
  });
  if (scene.notice === null || area.height < 1) return;
  const y = area.y + Math.min(area.height - 1, newest.length);
  grid.fill({ ...area, y, height: 1 }, 0x20, Style.text);
  drawSpans(grid, { ...area, y }, [
    ["› ", Style.key],
    [scene.notice, Style.key],
  ]);
}

export function drawKeys(grid: Grid, area: Rect, live: LiveRun, scene: Scene): void {
  if (live.phase === "stopping") {
    const text = "stopping: waiting for what is in flight; Ctrl-C ends at once";
    grid.text(area.x, area.y, text, Style.warn, area.width);
    return;
  }
  const spans = fitting(hints(live, scene), area.width).flatMap(([key, what]) => [
    [key, Style.key] as const,
    [` ${what}   `, Style.dim] as const,
  ]);
  drawSpans(grid, area, spans);
}

type Hint = readonly [key: string, what: string];

/** Keys that are dropped first where space is short: the help page has them. */
const DISPENSABLE = ["o", "↑ ↓"];

function fitting(all: readonly Hint[], width: number): readonly Hint[] {
  const gap = 3;
  const widthOf = (some: readonly Hint[]): number =>
    some.reduce((sum, [key, what]) => sum + key.length + 1 + what.length + gap, -gap);
  let kept = all;
  for (const dispensable of DISPENSABLE)
    if (widthOf(kept) > width) kept = kept.filter(([key]) => key !== dispensable);
  return kept;
}

function hints(live: LiveRun, scene: Scene): readonly Hint[] {
  if (!scene.keys) return [["Ctrl-C", "end with results"]];
  const several = stepRows(live).length > 1;
  return [
    ["p", live.phase === "paused" ? "resume" : "pause"],
    ["+ -", "load ±10 %"],
    ...(several ? ([["↑ ↓", "step"]] as const) : []),
    ...(scene.report ? ([["o", "report"]] as const) : []),
    ["q", "quit with results"],
    ["?", "help"],
  ];
}

const HELP: readonly (readonly [string, string])[] = [
  ["p", "pause; again: resume"],
  ["+", "10 % more virtual users or arrivals"],
  ["-", "10 % fewer"],
  ["↑ ↓", "choose the step of the latency chart"],
  ["Esc", "let it take turns again (every 3 s)"],
  ["o", "open the report at the end; again: do not"],
  ["q", "stop gracefully, with results"],
  ["Ctrl-C", "interrupt: results are kept, exit 130"],
  ["?", "close this page"],
];

const HELP_NOTES = [
  "Rate and percentiles of steps: last 5 s.",
  "Counts, thresholds, run max and run first byte: the whole run.",
  "Chart columns show their highest window.",
];

export function drawHelp(grid: Grid): void {
  const inner = Math.min(52, grid.columns - 4);
  const notes = HELP_NOTES.flatMap((note) => wrap(note, inner));
  const height = Math.min(grid.rows, HELP.length + notes.length + 5);
  if (inner < 10 || height < 5) return;
  const x = Math.floor((grid.columns - inner - 4) / 2);
  const y = Math.floor((grid.rows - height) / 2);
  drawBox(grid, { x, y, width: inner + 4, height }, " keys ");
  HELP.forEach(([key, what], index) => {
    if (index + 2 >= height - 1) return;
    grid.text(x + 2, y + 2 + index, key, Style.key, 8);
    grid.text(x + 11, y + 2 + index, what, Style.text, inner - 9);
  });
  notes.forEach((note, index) => {
    const row = HELP.length + 3 + index;
    if (row < height - 1) grid.text(x + 2, y + row, note, Style.dim, inner);
  });
}

function drawBox(grid: Grid, { x, y, width, height }: Rect, title: string): void {
  grid.fill({ x, y, width, height }, 0x20, Style.text);
  const bar = "─".repeat(width - 2);
  grid.text(x, y, `╭${bar}╮`, Style.key);
  for (let row = 1; row < height - 1; row++) {
    grid.text(x, y + row, "│", Style.key);
    grid.text(x + width - 1, y + row, "│", Style.key);
  }
  grid.text(x, y + height - 1, `╰${bar}╯`, Style.key);
  grid.text(x + 2, y, title, Style.heading);
}
