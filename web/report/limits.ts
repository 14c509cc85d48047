/** Thresholds as lines of charts: which limit applies to which latencies. */

import type { RunSummary, ThresholdOutcome } from "../../src/core/load/results/model.ts";
import { parseThreshold, type Threshold } from "../../src/core/load/results/thresholds.ts";
import type { Limit } from "../shared/plot.ts";
import type { StepView } from "./run-view.ts";

interface Parsed {
  readonly outcome: ThresholdOutcome;
  readonly threshold: Threshold;
}

/** Thresholds on latencies; gates in free text have none. */
function latencyThresholds({ thresholds }: RunSummary): Parsed[] {
  return thresholds.flatMap((outcome) => {
    const parsed = parseThreshold(outcome.expression);
    if (!parsed.ok || parsed.threshold.metric !== "latency") return [];
    const { figure, op } = parsed.threshold;
    if (figure.kind === "count" || (op !== "<" && op !== "<=")) return [];
    return [{ outcome, threshold: parsed.threshold }];
  });
}

/** Tags that select steps; `ok` selects calls. */
function tagsOf({ tags }: Threshold): [string, string][] {
  return Object.entries(tags).filter(([key]) => key !== "ok");
}

function limitsOf(found: readonly Parsed[]): Limit[] {
  return found.map(({ outcome, threshold }) => ({
    label: outcome.expression,
    value: threshold.value,
  }));
}

/** All limits of latencies, whatever their scope. */
export function latencyLimits(summary: RunSummary): number[] {
  return latencyThresholds(summary).map(({ threshold }) => threshold.value);
}

/** Limits over all steps together. */
export function runLimits(summary: RunSummary): Limit[] {
  const several = summary.workflows.length > 1;
  return limitsOf(
    latencyThresholds(summary).filter(
      ({ outcome, threshold }) =>
        tagsOf(threshold).length === 0 && !(several && outcome.workflow !== null),
    ),
  );
}

/** Limits of one step: those that name it, or a tag that it has. */
export function stepLimits(summary: RunSummary, step: StepView): Limit[] {
  return limitsOf(
    latencyThresholds(summary).filter(
      (parsed) => tagsOf(parsed.threshold).length > 0 && concerns(parsed, step),
    ),
  );
}

/** `kind` selects failures. */
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

/** Steps that a threshold covers. */
export function stepsOf(outcome: ThresholdOutcome, steps: readonly StepView[]): StepView[] {
  const parsed = parseThreshold(outcome.expression);
  if (!parsed.ok) return [];
  return steps.filter((step) => concerns({ outcome, threshold: parsed.threshold }, step));
}

/** Step of a threshold, if it covers only one. */
export function stepOf(
  outcome: ThresholdOutcome,
  steps: readonly StepView[],
): StepView | undefined {
  const parsed = parseThreshold(outcome.expression);
  const named = parsed.ok && parsed.threshold.tags["step"] !== undefined;
  return named ? stepsOf(outcome, steps)[0] : undefined;
}
