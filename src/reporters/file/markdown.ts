/** A run as Markdown: for a pull request, a job's summary or a wiki. */

import {
  formatCount,
  formatMs,
  formatPercent,
  formatRate,
  formatSeconds,
} from "../../core/load/results/format.ts";
import type { Distribution, RunSummary } from "../../core/load/results/model.ts";
import { partialOf } from "../../core/load/results/partial.ts";

const MARKS = { passed: "✅", failed: "❌", interrupted: "⚠️" } as const;
/** Rows of a table that people read. */
const STEPS_MAX = 100;

export function summaryMarkdown(summary: RunSummary): string {
  const { name, reasons, thresholds, title, verdict } = summary;
  const partial = partialOf(summary);
  const part = partial === null ? "" : `, in part only: ${cell(partial)}`;
  const mark = partial === null ? MARKS[verdict] : MARKS.interrupted;
  const head = `## ${mark} ${cell(title ?? name)}: ${verdict}${part}`;
  const judged = thresholds.map(({ actualText, expression, passed, workflow }) => [
    passed ? "✅" : "❌",
    code(expression),
    actualText,
    workflow ?? "",
  ]);
  return [
    head,
    figures(summary),
    ...(reasons.length === 0 ? [] : [reasons.map((reason) => `- ${cell(reason)}`).join("\n")]),
    ...(judged.length === 0 ? [] : [table(["", "threshold", "actual", "workflow"], judged)]),
    stepTable(summary),
  ]
    .map((part) => `${part}\n`)
    .join("\n");
}

function figures({ durationSeconds, totals }: RunSummary): string {
  if (totals === undefined) return `${formatSeconds(durationSeconds)}`;
  const { failed, latencyMs, ratePerSecond, requests } = totals;
  return [
    formatSeconds(durationSeconds),
    `${formatCount(requests)} requests`,
    formatRate(ratePerSecond),
    `${formatPercent(requests === 0 ? 0 : failed / requests)} failed`,
    `p95 ${latency(latencyMs, "p95")}`,
    `p99 ${latency(latencyMs, "p99")}`,
  ].join(" · ");
}

/** Empty measurements are not 0 ms. */
function latency(latencies: Distribution, figure: "p50" | "p95" | "p99"): string {
  return latencies.count === 0 ? "–" : formatMs(latencies[figure]);
}

function stepTable({ workflows }: RunSummary): string {
  const rows = workflows.flatMap(({ name, steps }) =>
    steps.map((step) => [
      ...[name, step.name, formatCount(step.requests), formatCount(step.failed)],
      formatRate(step.ratePerSecond),
      ...(["p50", "p95", "p99"] as const).map((figure) => latency(step.latencyMs, figure)),
    ]),
  );
  const shown = table(
    ["workflow", "step", "requests", "failed", "rate", "p50", "p95", "p99"],
    rows.slice(0, STEPS_MAX),
  );
  const more = rows.length - STEPS_MAX;
  return more > 0 ? `${shown}\n\nand ${formatCount(more)} more steps` : shown;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.map(cell).join(" | ")} |`;
  return [line(head), `|${" --- |".repeat(head.length)}`, ...rows.map(line)].join("\n");
}

function code(text: string): string {
  return `\`${text.replaceAll("`", "'")}\``;
}

/** Names come from the user: they must neither end a cell nor become markup of a page. */
function cell(text: string): string {
  const inCell = text.replace(/\s+/g, " ").replaceAll("|", "\\|");
  // Between backticks nothing is markup, and an entity is shown as it is written.
  return /^`[^`]*`$/.test(inCell) ? inCell : inCell.replaceAll("<", "&lt;");
}
