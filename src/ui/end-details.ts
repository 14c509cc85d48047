/** The tables of the end result: per step, arrivals, errors, checks, custom metrics. */

import { clean, wrap } from "../core/base/terminal-text.ts";
import {
  formatBytes,
  formatChecked,
  formatCount,
  formatMs,
  formatPercent,
  formatRate,
  formatSeconds,
} from "../core/load/results/format.ts";
import { metricFigures } from "../core/load/results/metric-figures.ts";
import type {
  Distribution,
  ErrorSample,
  MetricSummary,
  RunSummary,
  StepSummary,
  WorkflowSummary,
} from "../core/load/results/model.ts";
import { type Line, line, type Span, span } from "./lines.ts";
import { totals } from "./side-panels.ts";
import { Style, type StyleId } from "./style.ts";
import { type Cell, type Column, type Table, tableLines, tableWidth } from "./table.ts";

export function detailLines(summary: RunSummary, width: number): Line[] {
  return [
    ...stepSection(summary, width),
    ...arrivalSection(summary, width),
    ...errorSection(summary, width),
    ...groupSection(summary, width),
    ...asideSection(summary, width),
    ...checkSection(summary, width),
    ...metricSection(summary, width),
  ];
}

const left = (title: string): Column => ({ title, align: "left" });
const right = (title: string): Column => ({ title, align: "right" });

interface StepRow {
  readonly workflow: WorkflowSummary;
  /** Null for the line that names the workflow. */
  readonly step: StepSummary | null;
}

function stepSection({ workflows }: RunSummary, width: number): Line[] {
  if (workflows.length === 0) return [];
  const rows = workflows.flatMap((workflow): StepRow[] => [
    { workflow, step: null },
    ...workflow.steps.map((step) => ({ workflow, step })),
  ]);
  const counts = { columns: COUNT_COLUMNS, cells: countCells };
  const times = { columns: TIME_COLUMNS, cells: timeCells };
  const all = {
    columns: [...COUNT_COLUMNS, ...TIME_COLUMNS.slice(1)],
    cells: (row: StepRow) => [...countCells(row), ...timeCells(row).slice(1)],
  };
  const whole = stepTable(rows, all);
  const tables =
    tableWidth(whole) <= width ? [whole] : [stepTable(rows, counts), stepTable(rows, times)];
  const corrected = workflows.some((workflow) => workflow.corrected);
  return [
    [],
    line(span("Workflows and steps", Style.heading)),
    ...workflowLines(workflows, width),
    ...tables.flatMap((table) => [[], ...tableLines(table, width)]),
    ...(corrected
      ? [
          line(
            span(
              "  Latency counts from the intended start, service time from the actual start.",
              Style.dim,
            ),
          ),
        ]
      : []),
  ];
}

function counted(count: number, style: StyleId): Span {
  return span(formatCount(count), count > 0 ? style : Style.dim);
}

function workflowLines(workflows: readonly WorkflowSummary[], width: number): Line[] {
  // Only flows have other outcomes.
  const flows = workflows.some(({ iterations: { ended = 0, failed = 0 } }) => ended + failed > 0);
  const rows = workflows.map(
    ({ name, status, iterations, elapsedSeconds, load }): readonly Cell[] => [
      span(name, Style.bold),
      span(status, status === "completed" ? Style.good : Style.warn),
      formatCount(iterations.completed),
      ...(flows
        ? [counted(iterations.ended ?? 0, Style.warn), counted(iterations.failed ?? 0, Style.bad)]
        : []),
      iterations.interrupted > 0
        ? span(formatCount(iterations.interrupted), Style.warn)
        : span("0", Style.dim),
      formatSeconds(elapsedSeconds),
      span(load, Style.dim),
    ],
  );
  const columns = [
    left("workflow"),
    left("status"),
    right("iterations"),
    ...(flows ? [right("ended"), right("failed")] : []),
    right("interrupted"),
    right("time"),
    left("load"),
  ];
  const errors = workflows.flatMap(({ name, error }) =>
    error === null
      ? []
      : wrap(`${name}: ${error}`, width - 4).map((text) => line(span(`  ! ${text}`, Style.bad))),
  );
  const table = { columns, rows };
  if (tableWidth(table) <= width) return [...tableLines(table, width), ...errors];
  // A truncated load is useless: it gets lines of its own.
  const loads = workflows.flatMap(({ load, name }) =>
    wrap(`${name}: ${load}`, width - 4).map((text) => line(span(`    ${text}`, Style.dim))),
  );
  const figures = { columns: columns.slice(0, -1), rows: rows.map((row) => row.slice(0, -1)) };
  return [...tableLines(figures, width), ...loads, ...errors];
}

interface StepColumns {
  readonly columns: readonly Column[];
  readonly cells: (row: StepRow) => readonly Cell[];
}

/** One workflow needs no line of its own in the table; several get one each. */
function stepTable(rows: readonly StepRow[], { columns, cells }: StepColumns): Table {
  const several = rows.filter(({ step }) => step === null).length > 1;
  const body = rows.flatMap((row): (readonly Cell[])[] => {
    if (row.step === null) return several ? [[span(row.workflow.name, Style.bold)]] : [];
    const lines = [cells(row)];
    const hasTimes = columns.some(({ title }) => title === "p50");
    if (hasTimes && row.workflow.corrected && differs(row.step))
      lines.push(serviceCells(row.step, columns));
    return lines;
  });
  return { columns, rows: several ? body : body.map(unindented) };
}

/** Steps are indented below the name of their workflow, where there is one. */
function unindented([first, ...rest]: readonly Cell[]): readonly Cell[] {
  if (first === undefined) return rest;
  const cut = (text: string): string => text.replace(/^ {2}/, "");
  return [typeof first === "string" ? cut(first) : { ...first, text: cut(first.text) }, ...rest];
}

const COUNT_COLUMNS = [
  left("step"),
  right("requests"),
  right("ok"),
  right("failed"),
  right("rate"),
  right("received"),
  right("sent"),
];

function countCells({ step }: StepRow): readonly Cell[] {
  if (step === null) return [];
  const failed = formatCount(step.failed);
  return [
    stepName(step),
    formatCount(step.requests),
    formatCount(step.ok),
    step.failed > 0 ? span(failed, Style.bad) : span(failed, Style.dim),
    formatRate(step.ratePerSecond),
    formatBytes(step.bytesIn),
    formatBytes(step.bytesOut),
  ];
}

function stepName(step: StepSummary): Span {
  return span(`  ${clean(step.name)}`);
}

const TIME_COLUMNS = [
  left("step"),
  right("p50"),
  right("p90"),
  right("p95"),
  right("p99"),
  right("p99.9"),
  right("max"),
];

function timeCells({ step }: StepRow): readonly Cell[] {
  return step === null ? [] : [stepName(step), ...distributionCells(step.latencyMs)];
}

/** Later calls of a flow are due when they are reached: their latency is their service time. */
function differs({ latencyMs, serviceMs }: StepSummary): boolean {
  return distributionCells(latencyMs).join() !== distributionCells(serviceMs).join();
}

function serviceCells(step: StepSummary, columns: readonly Column[]): readonly Cell[] {
  const times = distributionCells(step.serviceMs).map((cell) => span(cell, Style.dim));
  const blanks = columns.length - 1 - times.length;
  return [span("    service", Style.dim), ...Array.from({ length: blanks }, () => ""), ...times];
}

function distributionCells({ count, p50, p90, p95, p99, p99_9, max }: Distribution): string[] {
  return [p50, p90, p95, p99, p99_9, max].map((value) => (count === 0 ? "–" : formatMs(value)));
}

function arrivalSection({ workflows }: RunSummary, width: number): Line[] {
  const rows = workflows.flatMap(({ name, arrivals }): (readonly Cell[])[] => {
    if (arrivals === null) return [];
    const { targetPerSecond, achievedPerSecond, started, missed, sendLagMs } = arrivals;
    const short = achievedPerSecond < targetPerSecond * 0.98;
    return [
      [
        name,
        formatRate(targetPerSecond),
        span(formatRate(achievedPerSecond), short ? Style.bad : Style.good),
        formatCount(started),
        span(formatCount(missed), missed > 0 ? Style.bad : Style.dim),
        ...[sendLagMs.p50, sendLagMs.p99, sendLagMs.max].map((ms) => formatMs(ms)),
      ],
    ];
  });
  const columns = [
    left("workflow"),
    right("target"),
    right("achieved"),
    right("started"),
    right("missed"),
    right("send lag p50"),
    right("p99"),
    right("max"),
  ];
  return section("Arrivals", { columns, rows }, width);
}

function groupSection({ workflows }: RunSummary, width: number): Line[] {
  const rows = workflows.flatMap(({ groups = [], name: workflow }) =>
    groups.map(({ activeMs, durationMs, failed, name, ok }): readonly Cell[] => [
      `${workflows.length > 1 ? `${workflow} › ` : ""}${clean(name)}`,
      formatCount(ok),
      counted(failed, Style.bad),
      ...distributionCells(durationMs),
      activeMs.count === 0 ? "–" : formatMs(activeMs.p50),
    ]),
  );
  const columns = [
    ...[left("group"), right("ok"), right("failed")],
    ...TIME_COLUMNS.slice(1),
    right("active p50"),
  ];
  return section("Groups", { columns, rows }, width);
}

function asideSection({ workflows }: RunSummary, width: number): Line[] {
  const rows = workflows.flatMap(({ aside = [], name: workflow }) =>
    aside.map((step): readonly Cell[] => [
      `${workflows.length > 1 ? `${workflow} › ` : ""}${step.tags["phase"]}: ${clean(step.name)}`,
      formatCount(step.requests),
      counted(step.failed, Style.bad),
      ...distributionCells(step.latencyMs),
    ]),
  );
  const columns = [left("call"), right("requests"), right("failed"), ...TIME_COLUMNS.slice(1)];
  return section("Beside the iterations, in no figure above", { columns, rows }, width);
}

function section(title: string, table: Table, width: number): Line[] {
  if (table.rows.length === 0) return [];
  return [[], line(span(title, Style.heading)), ...tableLines(table, width)];
}

function errorSection({ workflows }: RunSummary, width: number): Line[] {
  const several = workflows.length > 1;
  const all = workflows.flatMap((workflow) =>
    workflow.steps.map((step) => ({
      name: several ? `${workflow.name} › ${step.name}` : step.name,
      step,
    })),
  );
  const requests = all.reduce((sum, { step }) => sum + step.requests, 0);
  const samples = all.flatMap(({ step }) => step.samples ?? []);
  const rows = totals(all.map(({ step }) => step.errors)).flatMap(([kind, count]) => {
    const steps = all
      .map(({ name, step }) => ({ name, count: step.errors[kind] ?? 0 }))
      .filter((entry) => entry.count > 0)
      .sort((a, b) => b.count - a.count)
      .map((entry) => `${clean(entry.name)} ${formatCount(entry.count)}`)
      .join(", ");
    const share = formatPercent(requests === 0 ? 0 : count / requests);
    const row: readonly Cell[] = [span(kind, Style.bad), formatCount(count), share, steps];
    const sample = samples.find((one) => one.kind === kind);
    return sample === undefined ? [row] : [row, ["", "", "", span(exampleOf(sample), Style.dim)]];
  });
  const columns = [left("kind"), right("count"), right("share"), left("steps")];
  return section("Errors", { columns, rows }, width);
}

/** The kind alone does not distinguish a wrong password from a missing table. */
function exampleOf({ call, status, text }: ErrorSample): string {
  const parts = ["e.g.", clean(call), status > 0 ? String(status) : "", clean(text)];
  return parts.filter((part) => part !== "").join(" ");
}

function checkSection({ workflows }: RunSummary, width: number): Line[] {
  const rows = workflows.flatMap(({ name: workflow, checks }) =>
    checks.map((check): readonly Cell[] => {
      const { failed, name, passed } = check;
      const ran = passed + failed;
      const style = failed > 0 ? Style.bad : ran === 0 ? Style.dim : Style.good;
      const mark = failed > 0 ? "✗" : ran === 0 ? "·" : "✓";
      return [
        span(`${mark} ${workflows.length > 1 ? `${workflow} › ` : ""}${name}`, style),
        formatCount(passed),
        span(formatCount(failed), failed > 0 ? Style.bad : Style.dim),
        formatChecked(check),
      ];
    }),
  );
  const columns = [left("check"), right("passed"), right("failed"), right("share")];
  return section("Checks", { columns, rows }, width);
}

function metricSection({ workflows }: RunSummary, width: number): Line[] {
  const rows = workflows.flatMap(({ metrics }) =>
    metrics.map((metric): readonly Cell[] => [
      metricName(metric),
      metric.kind,
      metricValues(metric),
    ]),
  );
  const columns = [left("metric"), left("kind"), left("values")];
  return section("Metrics", { columns, rows }, width);
}

function metricName({ name, tags }: MetricSummary): string {
  const pairs = Object.entries(tags).map(([key, value]) => `${key}=${value}`);
  return pairs.length === 0 ? name : `${name}{${pairs.join(",")}}`;
}

/** Values of a trend that fit on a line; the files have the rest. */
const TREND_SHOWN = ["count", "min", "mean", "p50", "p95", "p99", "max"];

function metricValues(metric: MetricSummary): string {
  return metricFigures(metric)
    .filter(({ label }) => metric.kind !== "trend" || TREND_SHOWN.includes(label))
    .map(({ label, text }) => `${label} ${text}`)
    .join("  ");
}
