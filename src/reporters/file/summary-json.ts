/**
 * summary.json as text: indented like any JSON a person opens, except that lists of numbers stand on
 * one line, so that a series of 600 windows takes seven lines and not four thousand.
 */

import type { RunSummary } from "../../core/load/results/model.ts";

export function summaryJson(summary: RunSummary): string {
  return `${pretty(summary, "")}\n`;
}

function pretty(value: unknown, indent: string): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const inner = `${indent}  `;
  if (Array.isArray(value)) {
    if (value.every((item) => typeof item !== "object" || item === null)) return flat(value);
    return `[\n${value.map((item) => inner + pretty(item, inner)).join(",\n")}\n${indent}]`;
  }
  const fields = Object.entries(value)
    .filter(([, field]) => field !== undefined)
    .map(([key, field]) => `${inner}${JSON.stringify(key)}: ${pretty(field, inner)}`);
  return fields.length === 0 ? "{}" : `{\n${fields.join(",\n")}\n${indent}}`;
}

function flat(items: readonly unknown[]): string {
  return `[${items.map((item) => JSON.stringify(item) ?? "null").join(", ")}]`;
}
