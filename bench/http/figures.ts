/** Tables of the benchmark: tools side by side, and results against their goals. */

import type { Random } from "../../src/core/base/random.ts";
import type { ToolResult } from "./rotation.ts";
import { type Interval, microsecondsPerRequest, ratio } from "./statistics.ts";
import { WRK } from "./tools.ts";

/** One value of the table of goals; null when it could not be measured. */
export interface Figure {
  readonly name: string;
  readonly measured: number | null;
  readonly text: string;
  readonly must: number;
  readonly aim: number;
}

interface Comparison {
  readonly results: readonly ToolResult[];
  readonly ours: string;
  readonly theirs: string;
  readonly must: number;
  readonly aim: number;
  readonly random: Random;
}

export function ratioFigure(
  name: string,
  { results, ours, theirs, must, aim, random }: Comparison,
): Figure {
  const a = results.find((result) => result.name === ours);
  const b = results.find((result) => result.name === theirs);
  const absent = [a, b].find((result) => result === undefined || result.skipped !== null);
  if (a === undefined || b === undefined || absent !== undefined) {
    const text = `not measured: no ${absent?.name ?? ours}`;
    return { name, measured: null, text, must, aim };
  }
  const interval = ratio(a.slices, b.slices, random);
  return { name, measured: interval.value, text: intervalText(interval), must, aim };
}

function intervalText({ value, low, high }: Interval): string {
  return `${value.toFixed(2)} [${low.toFixed(2)}, ${high.toFixed(2)}]`;
}

export function printResults(results: readonly ToolResult[], random: Random): void {
  const base = results.find(({ name, skipped }) => name === WRK && skipped === null);
  const rows = results.map(({ name, slices, sliceSeconds, skipped }) => {
    if (skipped !== null) return [name, "skipped", "", "", skipped];
    const requests = slices.reduce((sum, slice) => sum + slice.requests, 0);
    return [
      name,
      microsecondsPerRequest(slices).toFixed(2),
      String(requests),
      (requests / sliceSeconds).toFixed(0),
      base === undefined ? "no wrk" : intervalText(ratio(slices, base.slices, random)),
    ];
  });
  printTable(["tool", "CPU us/request", "requests", "requests/s", "ratio to wrk [95 %]"], rows);
}

export function printFigures(figures: readonly Figure[]): void {
  const rows = figures.map(({ name, measured, text, must, aim }) => {
    const verdict =
      measured === null ? "-" : measured <= aim ? "aim" : measured <= must ? "reached" : "MISSED";
    return [name, text, `<= ${must}`, `<= ${aim}`, verdict];
  });
  process.stdout.write("\n");
  printTable(["figure", "measured", "must", "aim", ""], rows);
}

function printTable(head: readonly string[], rows: readonly (readonly string[])[]): void {
  const widths = head.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => (row[column] ?? "").length)),
  );
  const line = (cells: readonly string[]): string =>
    `| ${widths.map((width, column) => (cells[column] ?? "").padEnd(width)).join(" | ")} |`;
  const rule = widths.map((width) => "-".repeat(width));
  process.stdout.write(`${[line(head), line(rule), ...rows.map(line)].join("\n")}\n`);
}
