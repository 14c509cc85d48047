/** Points as plain numbers with names, for formats without histograms. */

import type { Distribution } from "../../core/load/results/model.ts";
import { labelsKey } from "../labels.ts";
import type { Frame, Point } from "../reporter.ts";

/** Metrics sent of a distribution; the minimum and finer percentiles are in summary.json. */
const SENT_FIGURES = [
  "count",
  "mean",
  "p50",
  "p90",
  "p95",
  "p99",
  "p99_9",
  "max",
] as const satisfies readonly (keyof Distribution)[];

/** Cached names of distributions. */
const FIGURES_MAX = 256;

interface NamedValue {
  /** "requests", "latency_ms_p99". */
  readonly name: string;
  readonly value: number;
}

/** Shared by the reporters that send the same points. */
const madeValues = new WeakMap<Point, readonly NamedValue[]>();

/** A counter gives its total, a distribution the metrics of its interval; empty ones give nothing. */
export function valuesOf(point: Point): readonly NamedValue[] {
  const known = madeValues.get(point);
  if (known !== undefined) return known;
  const made = namedValues(point);
  madeValues.set(point, made);
  return made;
}

function namedValues(point: Point): NamedValue[] {
  const { figure } = point;
  switch (point.kind) {
    case "counter":
      return [{ name: figure, value: point.total }];
    case "gauge":
      return [{ name: figure, value: point.value }];
    case "distribution": {
      const { figures } = point;
      const names = figures.count === 0 ? (["count"] as const) : SENT_FIGURES;
      return names.map((name) => ({ name: valueName(figure, name), value: figures[name] }));
    }
  }
}

/** Distributions have few metrics. */
const valueNames = new Map<string, Map<string, string>>();

function valueName(figure: string, name: string): string {
  let names = valueNames.get(figure);
  if (names === undefined) {
    names = new Map();
    // Custom metrics are as many as a run defines.
    if (valueNames.size < FIGURES_MAX) valueNames.set(figure, names);
  }
  const known = names.get(name);
  if (known !== undefined) return known;
  const made = `${figure}_${name}`;
  names.set(name, made);
  return made;
}

/** Points of one scope with the same labels. */
interface PointGroup {
  /** "step"; in the summary "summary_step", so that an interval and the whole run are never one series. */
  readonly scope: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly points: readonly Point[];
}

export function groupsOf({ kind, points }: Frame): PointGroup[] {
  const groups = new Map<string, PointGroup & { points: Point[] }>();
  for (const point of points) {
    const key = `${point.scope} ${labelsKey(point.labels)}`;
    const held = groups.get(key);
    if (held !== undefined) held.points.push(point);
    else
      groups.set(key, {
        scope: kind === "summary" ? `summary_${point.scope}` : point.scope,
        labels: point.labels,
        points: [point],
      });
  }
  return [...groups.values()];
}
