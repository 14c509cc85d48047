/**
 * CSV for spreadsheets and scripts (RFC 4180): steps.csv has one line per step, series.csv one line
 * per step and window. Columns are only ever added at the end.
 */

import type { Distribution, RunSummary } from "../../core/run/results/model.ts";

type Cell = string | number | null;

const FIGURES = [
  "min",
  "mean",
  "p50",
  "p75",
  "p90",
  "p95",
  "p99",
  "p99_9",
  "p99_99",
  "max",
] as const;

export function stepsCsv(summary: RunSummary): string {
  const header = [
    ...["workflow", "step", "protocol", "requests", "ok", "failed", "interrupted"],
    ...["rate_per_second", "bytes_in", "bytes_out"],
    ...FIGURES.map((figure) => `latency_ms_${figure}`),
    ...FIGURES.map((figure) => `service_ms_${figure}`),
  ];
  const rows = summary.workflows.flatMap(({ name, steps }) =>
    steps.map((step): Cell[] => [
      ...[name, step.name, step.protocol, step.requests, step.ok, step.failed, step.interrupted],
      ...[step.ratePerSecond, step.bytesIn, step.bytesOut],
      ...figures(step.latencyMs),
      ...figures(step.serviceMs),
    ]),
  );
  return csv([header, ...rows]);
}

export function seriesCsv(summary: RunSummary): string {
  const header = [
    ...["workflow", "step", "at_seconds", "window_ms", "requests", "failed"],
    ...["latency_ms_p50", "latency_ms_p95", "latency_ms_p99"],
  ];
  const rows = summary.workflows.flatMap(({ name, steps }) =>
    steps.flatMap(({ name: step, series }) =>
      series.atSeconds.map((at, i): Cell[] => [
        ...[name, step, at, series.windowMs, series.requests[i] ?? 0, series.failed[i] ?? 0],
        ...[series.p50[i] ?? null, series.p95[i] ?? null, series.p99[i] ?? null],
      ]),
    ),
  );
  return csv([header, ...rows]);
}

/** Nothing measured is an empty cell, not a row of zeros that looks like very fast answers. */
function figures(distribution: Distribution): Cell[] {
  return FIGURES.map((figure) => (distribution.count === 0 ? null : distribution[figure]));
}

function csv(rows: readonly (readonly Cell[])[]): string {
  return rows.map((row) => `${row.map(cellText).join(",")}\r\n`).join("");
}

function cellText(cell: Cell): string {
  if (cell === null) return "";
  const text = typeof cell === "string" ? harmless(cell) : String(cell);
  return /[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** A spreadsheet takes text that begins like a formula for one; behind an apostrophe it is text. */
function harmless(text: string): string {
  return /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
}
