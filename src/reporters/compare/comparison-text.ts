/** The comparison for a terminal: conditions, one line per row, and the verdict last. */

import { assertNever } from "../../core/base/assert.ts";
import { clean } from "../../core/base/terminal-text.ts";
import { type Align, tableLines } from "../../core/base/text-table.ts";
import {
  formatMs,
  formatNumber,
  formatPercent,
  formatRate,
} from "../../core/load/results/format.ts";
import type { ComparedRow, Comparison, Metric, RowResult } from "./compare.ts";

export interface ComparedRun {
  readonly file: string;
  readonly name: string;
  readonly startedAt: string;
  readonly verdict: string;
}

interface TextOptions {
  readonly before: ComparedRun;
  readonly after: ComparedRun;
  readonly color: boolean;
}

const HEADERS = ["step", "metric", "before", "after", "change", "95 % interval", "p", "result"];
const ALIGNS: readonly Align[] = HEADERS.map((_, at) => (at >= 2 && at <= 6 ? "right" : "left"));
export const METRIC_NAMES: Readonly<Record<Metric, string>> = {
  rate: "rate",
  p50: "p50",
  p95: "p95",
  p99: "p99",
  errors: "errors",
};
const RED = 31;
const GREEN = 32;
const YELLOW = 33;
const DIM = 2;

export function comparisonText(comparison: Comparison, options: TextOptions): string {
  const paint = (code: number, text: string) =>
    options.color ? `\u001b[${code}m${clean(text)}\u001b[0m` : clean(text);
  const lines = [runLine("before", options.before), runLine("after", options.after), ""];
  for (const reason of comparison.untrusted) lines.push(paint(RED, `! ${sentence(reason)}`));
  for (const warning of comparison.warnings) lines.push(paint(YELLOW, `! ${warning}`));
  for (const step of comparison.onlyBefore) lines.push(paint(YELLOW, `! Only before: ${step}`));
  for (const step of comparison.onlyAfter) lines.push(paint(YELLOW, `! Only after: ${step}`));
  if (lines.length > 3) lines.push("");
  const cells = comparison.rows.map((row, index) => {
    const previous = comparison.rows[index - 1];
    const repeated = previous?.step === row.step && previous.workflow === row.workflow;
    return cellsOf(row).map((cell, at) => (at === 0 && repeated ? "" : cell));
  });
  const [head = "", ...body] = tableLines([HEADERS, ...cells], ALIGNS);
  lines.push(paint(DIM, head));
  comparison.rows.forEach(({ result }, index) => {
    const text = body[index] ?? "";
    const code = colorOf(result);
    lines.push(code === null ? text : paint(code, text));
  });
  lines.push("", ...verdictLines(comparison, paint), "");
  return lines.join("\n");
}

function runLine(side: string, { file, name, startedAt, verdict }: ComparedRun): string {
  const at = startedAt.slice(0, 19).replace("T", " ");
  return clean(`${side.padEnd(7)} ${file}: ${name}, ${at} UTC, ${verdict}`);
}

function cellsOf(row: ComparedRow): string[] {
  const { metric, before, after, change, interval, p } = row;
  return [
    `${row.workflow} / ${row.step}`,
    METRIC_NAMES[metric],
    valueText(metric, before),
    valueText(metric, after),
    change === null ? "new" : changeText(metric, change),
    interval === null
      ? ""
      : `${changeText(metric, interval[0])} … ${changeText(metric, interval[1])}`,
    pText(p),
    `${markOf(row.result)} ${row.result}`,
  ];
}

/** Empty when there is too little data. */
export function pText(p: number | null): string {
  return p === null ? "" : p < 0.001 ? "<0.001" : p.toFixed(3);
}

export function valueText(metric: Metric, value: number): string {
  if (metric === "rate") return formatRate(value);
  return metric === "errors" ? formatPercent(value) : formatMs(value);
}

/** Per cent; of error rates percentage points. */
export function changeText(metric: Metric, change: number): string {
  const percent = change * 100;
  const digits = metric === "errors" ? 3 : 1;
  const rounded = Number(percent.toFixed(digits));
  const sign = rounded > 0 ? "+" : "";
  const text = Math.abs(rounded) >= 1_000 ? formatNumber(rounded) : rounded.toFixed(digits);
  return `${sign}${rounded === 0 ? "0" : text} ${metric === "errors" ? "pp" : "%"}`;
}

function markOf(result: RowResult): string {
  return { regression: "✗", improvement: "✓" }[result as string] ?? "·";
}

function colorOf(result: RowResult): number | null {
  return result === "regression" ? RED : result === "improvement" ? GREEN : null;
}

const plural = (count: number, noun: string) => `${count} ${noun}${count === 1 ? "" : "s"}`;

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

function verdictLine(
  { errorLimit, limit, regressions, rows, unclear, untrusted, verdict }: Comparison,
  paint: (code: number, text: string) => string,
): string {
  const limits = `the limit of ${formatPercent(limit)} (${formatNumber(errorLimit * 100)} pp of failures)`;
  switch (verdict) {
    case "regression":
      return paint(RED, `✗ ${plural(regressions, "regression")} beyond ${limits}.`);
    case "no regression":
      return paint(GREEN, `✓ No significant regression beyond ${limits}.`);
    case "undecided":
      return paint(
        YELLOW,
        `? Nothing could be shown: ${unclear} of ${plural(rows.length, "row")} unclear. ` +
          "Run longer, or on a quieter machine.",
      );
    case "untrusted":
      return paint(
        YELLOW,
        `? Not judged: ${untrusted.join("; ")}. Repeat that run, or judge anyway with --allow-untrusted.`,
      );
    default:
      return assertNever(verdict);
  }
}

function verdictLines(
  comparison: Comparison,
  paint: (code: number, text: string) => string,
): string[] {
  const { improvements, rows, unclear } = comparison;
  const few = rows.filter(({ result }) => result === "too little data").length;
  const lines = [verdictLine(comparison, paint)];
  if (improvements > 0) lines.push(`  ${plural(improvements, "improvement")}.`);
  if (unclear > 0 && comparison.verdict === "no regression")
    lines.push(`  ${unclear} of ${plural(rows.length, "row")} unclear: a longer run would tell.`);
  if (few > 0) {
    lines.push(`  ${few} of ${rows.length} rows have too little data to judge: run longer.`);
  }
  return lines;
}
