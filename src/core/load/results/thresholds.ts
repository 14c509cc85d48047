/**
 * Thresholds as people write them, read into data.
 *
 *   [workflow.]metric[{tag=value, …}].figure [over 10s] op value
 *
 *   latency.p99 < 200ms            errors{kind=timeout}.count == 0       cart_value.p95 < 30
 *   latency{ok}.p99 < 200ms        of calls that succeeded
 *   duration.p95 < 10s             of whole iterations; active leaves pauses out
 *   duration{group=pay}.p99 < 2s   of a group of a flow
 *   latency{step=login}.p95<=1.5s  requests.rate over 10s > 1000/s       generator.cpu < 90%
 *
 * Names that are not ours are custom metrics. Names and tag values with dots, spaces or operators
 * are written in double quotes. With `over`, the threshold must hold in every stretch of that
 * length; without it, over the whole run. Judging is in `threshold-judge.ts`.
 */

import { parseDuration } from "../../base/duration.ts";
import { didYouMean } from "../../base/nearest.ts";
import { type Figure, figureText, type Threshold } from "./threshold.ts";
import { Scanner } from "./threshold-scanner.ts";
import { parseValue, type ValueKind } from "./threshold-value.ts";

export type { ThresholdSpec } from "../job/manifest.ts";
export type { Threshold } from "./threshold.ts";
export * from "./threshold-judge.ts";

type ThresholdResult =
  | { readonly ok: true; readonly threshold: Threshold }
  /** `at` is the character the problem begins at, from 0. */
  | { readonly ok: false; readonly problem: string; readonly at: number };

/** Existing names, where they are known at this point: then names are checked, too. */
export interface KnownNames {
  readonly workflows?: readonly string[];
  readonly customMetrics?: readonly string[];
}

type Family = "distribution" | "count" | "share" | "value" | "missed";

/** The metrics every run has. The compiler reads this table and the next, too. */
const METRICS = {
  latency: "distribution",
  service: "distribution",
  firstByte: "distribution",
  connect: "distribution",
  tls: "distribution",
  requests: "count",
  errors: "share",
  checks: "share",
  iterations: "count",
  duration: "distribution",
  active: "distribution",
  bytesIn: "count",
  bytesOut: "count",
  arrivals: "count",
  "arrivals.missed": "missed",
  "arrivals.lag": "distribution",
  "generator.cpu": "value",
  "generator.lag": "distribution",
} as const satisfies Record<string, Family>;

export type ThresholdMetrics = typeof METRICS;
const FAMILIES: ReadonlyMap<string, Family> = new Map(Object.entries(METRICS));
export const THRESHOLD_METRICS: readonly string[] = [...FAMILIES.keys()];

const FIGURES = {
  distribution: ["min", "mean", "max", "p50", "p95", "p99", "p99.9", "count"],
  count: ["count", "rate"],
  share: ["count", "rate"],
  value: [],
  /** One number by itself, and a share of all. */
  missed: ["rate"],
} as const satisfies Record<Family, readonly string[]>;

export type ThresholdFigures = typeof FIGURES;
const CUSTOM_FIGURES = [...FIGURES.distribution, "rate", "last"] as const;
const ALIASES = { avg: "mean", med: "p50", median: "p50" } as const;
export type ThresholdAlias = keyof typeof ALIASES;
const ALIAS_OF: ReadonlyMap<string, string> = new Map(Object.entries(ALIASES));
const TEXT_MAX = 1_000;

export function parseThreshold(text: string, known: KnownNames = {}): ThresholdResult {
  if (text.length > TEXT_MAX)
    return refuse(TEXT_MAX, `a threshold has at most ${TEXT_MAX} characters`);
  const scanner = new Scanner(text);
  const parts = scanner.read();
  if (!parts.ok) return parts;
  const target = resolve(parts.path, parts.tagsAfter, known);
  if (!target.ok) return target;
  let overMs: number | null = null;
  if (parts.over !== null) {
    const duration = parseDuration(parts.over.text);
    if (!duration.ok) return refuse(parts.over.at, duration.problem);
    if (duration.ms <= 0) return refuse(parts.over.at, "a stretch of time is longer than nothing");
    overMs = duration.ms;
  }
  const value = parseValue(parts.value.text, valueKind(target));
  if (!value.ok) return refuse(parts.value.at, value.problem);
  const { workflow, metric, custom, figure } = target;
  const data = { workflow, metric, custom, figure, overMs, tags: parts.tags, op: parts.op };
  const rest = { value: value.value, unit: value.unit };
  const expression = format(data, value.text, parts.over?.text ?? null);
  return { ok: true, threshold: { expression, ...data, ...rest } };
}

function refuse(at: number, problem: string): { ok: false; problem: string; at: number } {
  return { ok: false, problem, at };
}

interface Segment {
  readonly text: string;
  readonly at: number;
  readonly quoted: boolean;
}

interface Target {
  readonly ok: true;
  readonly workflow: string | null;
  readonly metric: string;
  readonly custom: boolean;
  readonly family: Family | null;
  readonly figure: Figure;
}

type Refusal = ReturnType<typeof refuse>;

/** `tagsAfter` is the number of segments before the braces, when there are any. */
function resolve(
  path: readonly Segment[],
  tagsAfter: number | null,
  known: KnownNames,
): Target | Refusal {
  const single = longestKnown(path, (family) => family === "value" || family === "missed");
  if (single !== null) {
    const before = path.slice(0, path.length - single.length);
    return withWorkflow(valueTarget(single.metric), before, known);
  }
  const last = path.at(-1);
  const first = path[0];
  if (last === undefined || first === undefined)
    return refuse(0, "a threshold begins with a metric");
  if (tagsAfter !== null && tagsAfter !== path.length - 1) {
    return refuse(last.at, "after the tags comes one figure: latency{step=login}.p99");
  }
  const names = path.slice(0, -1);
  if (names.length === 0) return missingFigure(first);
  const ours = longestKnown(names, (family) => family !== "value");
  if (ours === null) return resolveCustom(names, last, known);
  const figure = parseFigure(last, ours.metric, FIGURES[ours.family]);
  if ("problem" in figure) return figure;
  const before = names.slice(0, names.length - ours.length);
  const { metric, family } = ours;
  return withWorkflow(
    { ok: true, workflow: null, metric, custom: false, family, figure },
    before,
    known,
  );
}

function valueTarget(metric: string): Target {
  return {
    ok: true,
    workflow: null,
    metric,
    custom: false,
    family: "value",
    figure: { kind: "value" },
  };
}

function missingFigure(only: Segment): Refusal {
  const family = FAMILIES.get(only.text);
  const figures = family === undefined ? CUSTOM_FIGURES : FIGURES[family];
  const metric = family === undefined ? "latency" : only.text;
  const example = family === "count" || family === "share" ? "rate" : "p99";
  return refuse(
    only.at + only.text.length,
    `"${only.text}" needs a metric and a figure, such as ${metric}.${example} (${figures.join(", ")})`,
  );
}

function longestKnown(
  path: readonly Segment[],
  accept: (family: Family) => boolean,
): { readonly metric: string; readonly family: Family; readonly length: number } | null {
  for (const length of [2, 1]) {
    if (path.length < length) continue;
    const tail = path.slice(-length);
    if (tail.some(({ quoted }) => quoted)) continue;
    const metric = tail.map(({ text }) => text).join(".");
    const family = FAMILIES.get(metric);
    if (family !== undefined && accept(family)) return { metric, family, length };
  }
  return null;
}

function resolveCustom(
  names: readonly Segment[],
  last: Segment,
  known: KnownNames,
): Target | Refusal {
  const name = names.at(-1);
  if (name === undefined) return refuse(last.at, "a metric is missing");
  const custom = known.customMetrics ?? [];
  if (!custom.includes(name.text)) {
    const all = [...THRESHOLD_METRICS, ...custom];
    const near = name.quoted ? "" : didYouMean(name.text, all);
    if (near !== "" || known.customMetrics !== undefined) {
      const hint = near || `; there are: ${all.join(", ")}`;
      return refuse(name.at, `no metric is called "${name.text}"${hint}`);
    }
  }
  const figure = parseFigure(last, name.text, CUSTOM_FIGURES);
  if ("problem" in figure) return figure;
  const target = { metric: name.text, custom: true, family: null, figure };
  return withWorkflow({ ok: true, workflow: null, ...target }, names.slice(0, -1), known);
}

function withWorkflow(
  target: Target,
  before: readonly Segment[],
  known: KnownNames,
): Target | Refusal {
  const first = before[0];
  if (first === undefined) return target;
  const workflow = before.map(({ text }) => text).join(".");
  if (known.workflows !== undefined && !known.workflows.includes(workflow)) {
    const hint =
      didYouMean(workflow, known.workflows) ||
      `; for a step write ${target.metric}{step=${workflow}}`;
    return refuse(first.at, `no workflow is called "${workflow}"${hint}`);
  }
  return { ...target, workflow };
}

function parseFigure(
  { text, at }: Segment,
  metric: string,
  figures: readonly string[],
): Figure | Refusal {
  const name = ALIAS_OF.get(text) ?? text;
  const percentile = /^p(\d{1,3})(?:[._](\d{1,6}))?$/.exec(name);
  if (percentile !== null && figures.includes("p99")) {
    const percent = Number(`${percentile[1]}.${percentile[2] ?? 0}`);
    if (percent <= 100) return { kind: "percentile", percent };
    return refuse(at, `"${text}" is above p100`);
  }
  const kind = SIMPLE.find((figure) => figure === name);
  if (kind !== undefined && figures.includes(kind)) return { kind };
  const hint = didYouMean(text, figures) || `; it has ${figures.join(", ")}`;
  return refuse(at, `${metric} has no "${text}"${hint}`);
}

const SIMPLE = ["min", "mean", "max", "count", "rate", "last"] as const;

function valueKind({ metric, family, figure, custom }: Target): ValueKind {
  if (custom) return "any";
  if (metric === "generator.cpu") return "share";
  if (figure.kind === "count" || figure.kind === "value") return "number";
  if (family === "share" || family === "missed") return "share";
  return family === "distribution" ? "duration" : "perSecond";
}

function format(
  data: Pick<Threshold, "workflow" | "metric" | "custom" | "tags" | "figure" | "op">,
  valueText: string,
  overText: string | null,
): string {
  const workflow = data.workflow === null ? "" : `${quoteName(data.workflow)}.`;
  const metric = data.custom ? quoteName(data.metric, true) : data.metric;
  const pairs = Object.entries(data.tags).map(([key, value]) =>
    key === "ok" && value === "true" ? "ok" : `${quoteName(key)}=${quoteName(value)}`,
  );
  const tags = pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
  const figure = data.figure.kind === "value" ? "" : `.${figureText(data.figure)}`;
  const over = overText === null ? "" : ` over ${overText}`;
  return `${workflow}${metric}${tags}${figure}${over} ${data.op} ${valueText}`;
}

/** Quotes only where parsing it back needs them; a custom name equal to a built-in one does. */
function quoteName(name: string, metric = false): string {
  const plain = /^[^\s.{}<>=!",]+$/.test(name);
  const ambiguous = metric && didYouMean(name, THRESHOLD_METRICS) !== "";
  return plain && !ambiguous ? name : `"${name}"`;
}
