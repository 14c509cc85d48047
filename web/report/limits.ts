/** Thresholds as lines of charts: which limit belongs to which latencies. */

import type { RunSummary, ThresholdOutcome } from "../../src/core/load/results/model.ts";
import { parseThreshold, type Threshold } from "../../src/core/load/results/thresholds.ts";
import type { Limit } from "../shared/plot.ts";
import type { StepView } from "./run-view.ts";

interface Parsed {
  readonly outcome: ThresholdOutcome;
  readonly threshold: Threshold;
}

/** Percentiles and other figures of latencies; gates that only people can read have none. */
function latencyThresholds({ thresholds }: RunSummary): Parsed[] {
  return thresholds.flatMap((outcome) => {
    const parsed = parseThreshold(outcome.expression);
    if (!parsed.ok || parsed.threshold.metric !== "latency") return [];
    const { figure, op } = parsed.threshold;
    if (figure.kind === "count" || (op !== "<" && op !== "<=")) return [];
    return [{ outcome, threshold: parsed.threshold }];
  });
}

/** Those that choose among steps; `ok` chooses among calls. */
function tagsOf({ tags }: Threshold): [string, string][] {
  return Object.entries(tags).filter(([key]) => key !== "ok");
}

function limitsOf(found: readonly Parsed[]): Limit[] {
  return found.map(({ outcome, threshold }) => ({
    label: outcome.expression,
    value: threshold.value,
  }));
}

/** All limits of latencies, whatever they are about. */
export function latencyLimits(summary: RunSummary): number[] {
  return latencyThresholds(summary).map(({ threshold }) => threshold.value);
}

/** Of all steps together. */
export function runLimits(summary: RunSummary): Limit[] {
  const several = summary.workflows.length > 1;
  return limitsOf(
    latencyThresholds(summary).filter(
      ({ outcome, threshold }) =>
        tagsOf(threshold).length === 0 && !(several && outcome.workflow !== null),
    ),
  );
}

/** Of one step: those that name it, or a tag that it has. */
export function stepLimits(summary: RunSummary, step: StepView): Limit[] {
  return limitsOf(
    latencyThresholds(summary).filter(
      (parsed) => tagsOf(parsed.threshold).length > 0 && concerns(parsed, step),
    ),
  );
}

/** `kind` chooses among failures. */
function concerns({ outcome, threshold }: Parsed, { step, workflow }: StepView): boolean {
  const own = threshold.workflow ?? outcome.workflow;
  return (
    (own === null || own === workflow.name) &&
    tagsOf(threshold).every(
      ([key, value]) =>
        key === "kind" || (key === "step" ? value === step.name : value === step.tags[key]),
    )
  );
}

/** The steps that a threshold is about. */
export function stepsOf(outcome: ThresholdOutcome, steps: readonly StepView[]): StepView[] {
  const parsed = parseThreshold(outcome.expression);
  if (!parsed.ok) return [];
  return steps.filter((step) => concerns({ outcome, threshold: parsed.threshold }, step));
}

/** The step that a threshold is about, if it is about one. */
export function stepOf(
  outcome: ThresholdOutcome,
  steps: readonly StepView[],
): StepView | undefined {
  const parsed = parseThreshold(outcome.expression);
  const named = parsed.ok && parsed.threshold.tags["step"] !== undefined;
  return named ? stepsOf(outcome, steps)[0] : undefined;
}
