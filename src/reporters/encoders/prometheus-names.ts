/** Names of points in Prometheus and compatible formats: base units, and suffixes by kind. */

import type { FigureUnit } from "../../core/load/results/figures.ts";
import type { Frame, Point } from "../reporter.ts";

/** Seconds instead of milliseconds, as every dashboard expects. */
export const SECONDS_PER_MS = 1e-3;

/** "hyperscale_step_latency_seconds", "hyperscale_step_requests_total", "hyperscale_summary_run_passed". */
export function prometheusName(point: Point, frameKind: Frame["kind"]): string {
  const prefix = frameKind === "summary" ? "hyperscale_summary" : "hyperscale";
  const figure = point.figure.replace(/_ms(?=_|$)/, "_seconds");
  const suffix = point.kind === "counter" && frameKind === "interval" ? "_total" : "";
  return `${prefix}_${point.scope}_${figure}${unitSuffix(point.unit, figure)}${suffix}`;
}

function unitSuffix(unit: FigureUnit, figure: string): string {
  if (unit === "bytes" && !figure.includes("bytes")) return "_bytes";
  return unit === "seconds" && !figure.includes("seconds") ? "_seconds" : "";
}

/** Converts a value to the unit of its name. */
export function inBaseUnit(value: number, unit: FigureUnit): number {
  return unit === "ms" ? value * SECONDS_PER_MS : value;
}

/**
 * Labels reduced to valid characters, in the order that remote write demands. If two names become equal the first is
 * kept, as a receiver rejects the whole batch for one such pair: ours before tags, then by name.
 */
export function prometheusLabels(
  run: Frame["labels"],
  own: Point["labels"],
  more: Readonly<Record<string, string>> = {},
): (readonly [string, string])[] {
  const labels = new Map<string, string>();
  const given = Object.entries({ ...run, ...own, ...more });
  // Names that are valid unchanged come first, as ours are.
  const [exact, changed] = [true, false].map((wanted) =>
    given.filter(([name]) => (labelName(name) === name) === wanted).sort(byName),
  );
  for (const [name, value] of [...(exact ?? []), ...(changed ?? [])]) {
    const safe = labelName(name);
    if (value !== "" && !labels.has(safe)) labels.set(safe, value);
  }
  return [...labels].sort(byName);
}

function byName([a]: readonly [string, string], [b]: readonly [string, string]): number {
  return a < b ? -1 : 1;
}

function labelName(name: string): string {
  // Names starting with two underscores are reserved by Prometheus.
  const safe = name.replace(/[^a-zA-Z0-9_]/g, "_").replace(/^__+/, "_");
  return /^[0-9]/.test(safe) ? `_${safe}` : safe;
}
