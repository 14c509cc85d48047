/**
 * CSV for spreadsheets and scripts (RFC 4180): steps.csv has one line per step, series.csv one line per step and
 * window. Columns are only ever added at the end.
 */

import {
  DISTRIBUTION_FIGURES,
  figureName,
  figuresOf,
  STEP_FIGURES,
} from "../../core/load/results/figures.ts";
import type { Distribution, RunSummary } from "../../core/load/results/model.ts";

type Cell = string | number | null;

export function stepsCsv(summary: RunSummary): string {
  const figures = figuresOf(STEP_FIGURES).flatMap(([field, { kind }]) =>
    kind === "distribution"
      ? DISTRIBUTION_FIGURES.map((figure) => `${figureName(field)}_${figure}`)
      : [figureName(field)],
  );
  const rows = summary.workflows.flatMap(({ name, steps }) =>
    steps.map((step): Cell[] => [
      ...[name, step.name, step.protocol],
      ...figuresOf(STEP_FIGURES).flatMap(([field]) => cells(step[field], field)),
    ]),
  );
  return csv([["workflow", "step", "protocol", ...figures], ...rows]);
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

/** Empty measurements are empty cells, not zeros that look like very fast answers. */
function cells(value: number | Distribution | undefined, field: keyof typeof STEP_FIGURES): Cell[] {
  if (STEP_FIGURES[field].kind !== "distribution")
    return [typeof value === "number" ? value : null];
  return DISTRIBUTION_FIGURES.map((figure) =>
    typeof value === "object" && value.count > 0 ? value[figure] : null,
  );
}

function csv(rows: readonly (readonly Cell[])[]): string {
  return rows.map((row) => `${row.map(cellText).join(",")}\r\n`).join("");
}

function cellText(cell: Cell): string {
  if (cell === null) return "";
  const text = typeof cell === "string" ? harmless(cell) : String(cell);
  return /[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** A spreadsheet reads text that begins like a formula as one; an apostrophe keeps it text. */
function harmless(text: string): string {
  return /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
}
