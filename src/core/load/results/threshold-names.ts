/**
 * Checks before a run that everything named by a threshold exists. A misspelt step would otherwise be found when the
 * whole run is over. Tags of custom metrics are created while it runs, so any are allowed.
 */

import { didYouMean } from "../../base/nearest.ts";
import type { FlowManifest, WorkflowManifest } from "../job/manifest.ts";
import { figureText, type Threshold } from "./threshold.ts";

/** Fields of custom metrics by their kind; percentiles belong to the fields of a distribution. */
const FIGURES_OF_KIND = {
  counter: ["count", "rate"],
  gauge: ["last", "min", "max"],
  rate: ["rate", "count"],
  trend: ["min", "mean", "max", "count", "percentile"],
} as const;
export type FiguresOfKind = typeof FIGURES_OF_KIND;

/** Built-in metrics whose tags choose among steps. */
const OF_STEPS = [
  ...["latency", "service", "firstByte", "connect", "tls"],
  ...["requests", "errors", "bytesIn", "bytesOut"],
];

/**
 * Texts in the sources of a run. Names of steps, checks and groups of a flow are known only to its body; a name that
 * equals no text of the sources is most likely misspelt.
 */
export interface WrittenTexts {
  has(text: string): boolean;
  /** Candidates for a misspelt name. */
  readonly all: readonly string[];
}

interface KnownBefore {
  readonly manifests: readonly WorkflowManifest[];
  readonly errorKinds: readonly string[];
  /** Null without sources: then every name of a flow is allowed. */
  readonly texts: WrittenTexts | null;
}

/** Description of an unknown name; null when everything exists. `declaredIn` null: the whole run. */
export function unknownName(
  threshold: Threshold,
  declaredIn: string | null,
  known: KnownBefore,
): string | null {
  const { manifests } = known;
  const workflows = manifests.map(({ name }) => name);
  const { custom, metric } = threshold;
  if (threshold.workflow !== null && !workflows.includes(threshold.workflow))
    return missing("workflow", threshold.workflow, workflows);
  const about = threshold.workflow ?? declaredIn;
  const scope = manifests.filter(
    ({ mix, name }) => about === null || name === about || mix?.name === about,
  );
  if (custom) return unknownMetric(threshold, scope);
  if (metric.startsWith("arrivals") && !scope.some(({ corrected }) => corrected))
    return `there are no ${metric}: only open models (rate, rateStages) have arrivals`;
  for (const [key, value] of Object.entries(threshold.tags)) {
    const problem = unknownTag(metric, key, value, { ...known, manifests: scope });
    if (problem !== null) return problem;
  }
  return null;
}

function unknownMetric(
  { figure, metric }: Threshold,
  scope: readonly WorkflowManifest[],
): string | null {
  const declared = scope.flatMap(({ metrics }) => metrics);
  const found = declared.find(({ name }) => name === metric);
  if (found === undefined)
    return missing(
      "metric",
      metric,
      declared.map(({ name }) => name),
    );
  const figures: readonly string[] = FIGURES_OF_KIND[found.kind];
  if (figures.includes(figure.kind)) return null;
  const known = figures.map((one) => (one === "percentile" ? "percentiles such as p99" : one));
  return `the ${found.kind} "${metric}" has no ${figureText(figure)}; it has ${known.join(", ")}`;
}

function unknownTag(
  metric: string,
  key: string,
  value: string,
  { errorKinds, manifests: scope, texts }: KnownBefore,
): string | null {
  const flows = scope.flatMap(({ flow }) => flow ?? []);
  const ofFlow = (what: string, names: readonly string[]): string | null =>
    flows.length === 0 ? missing(what, value, names) : unwritten(what, value, flows, texts);
  if (metric === "checks" && key === "check") {
    const checks = scope.flatMap((workflow) => workflow.checks);
    return checks.includes(value) ? null : ofFlow("check", checks);
  }
  if (metric === "duration" || metric === "active") {
    if (key === "ok") return null;
    if (key !== "group") return `${metric} has no tag "${key}"; it has group and ok`;
    return ofFlow("group", []);
  }
  if (!OF_STEPS.includes(metric)) return `${metric} has no tag "${key}"`;
  if (key === "ok") return metric === "latency" ? null : `only latency has the tag "ok"`;
  if (key === "kind") {
    if (metric !== "errors") return `only errors have the tag "kind"`;
    return errorKinds.includes(value) ? null : missing("kind of error", value, errorKinds);
  }
  const steps = scope.flatMap((workflow) => workflow.steps).filter(({ kind }) => kind === "step");
  if (key === "step") {
    const names = steps.map(({ name }) => name);
    return names.includes(value) ? null : ofFlow("step", names);
  }
  if (flows.some(({ series }) => series.includes(key))) return null;
  const values = steps.flatMap(({ tags }) => tags[key] ?? []);
  if (values.length === 0) {
    const keys = [...new Set(["step", ...steps.flatMap(({ tags }) => Object.keys(tags))])];
    return missing("tag of a step", key, keys);
  }
  return values.includes(value) ? null : missing(`${key} of a step`, value, [...new Set(values)]);
}

/** Null when a body may use this name. */
function unwritten(
  what: string,
  name: string,
  flows: readonly FlowManifest[],
  texts: WrittenTexts | null,
): string | null {
  if (texts === null || flows.some(({ patterns }) => patterns.some((one) => fits(one, name))))
    return null;
  // A group is named with those around it; a step without a name by method and path.
  const parts = what === "group" ? name.split("/") : [name];
  const titled = /^[A-Z]+ (\S+)$/.exec(name)?.[1];
  if (parts.every((part) => texts.has(part)) || (titled !== undefined && texts.has(titled)))
    return null;
  const hint = didYouMean(name, texts.all);
  return (
    `no ${what} is called "${name}"${hint === "" ? "." : hint} ` +
    'Declare generated names: steps: ["item-*"]'
  );
}

/** `*` stands for any text. */
function fits(pattern: string, name: string): boolean {
  const escaped = pattern.split("*").map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${escaped.join(".*")}$`).test(name);
}

function missing(what: string, name: string, known: readonly string[]): string {
  const there = known.length === 0 ? "; there is none" : `; there are: ${known.join(", ")}`;
  return `no ${what} is called "${name}"${didYouMean(name, known) || there}`;
}
