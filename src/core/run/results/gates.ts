/**
 * Gates of a workflow that hold without being declared:
 *
 *   every check passes                          unless a threshold on `checks` says otherwise
 *   at least one request succeeded              unless one on `errors` does
 *   at most 1 % of the arrivals were missed     unless one on `arrivals` or `arrivals.missed` does
 *   every step measured something, and nothing went wrong beside the steps: always
 *
 * A search for the breakpoint makes loads that fail: there the first and the third do not hold.
 * What was not measured, or not done, must not look like success.
 */

import type { Fault } from "../job/faults.ts";
import { formatCount, formatPercent } from "./format.ts";
import type { ThresholdOutcome } from "./model.ts";
import type { ThresholdJudge } from "./threshold-judge.ts";
import type { WorkflowData } from "./workflow-data.ts";

/** Share of the arrivals that may be missed without failing the run. */
const MISSED_SHARE_MAX = 0.01;

type Base = Pick<ThresholdOutcome, "workflow" | "implicit" | "aborted">;

export function implicitGates(
  workflow: WorkflowData,
  judges: readonly ThresholdJudge[],
  searching = false,
): ThresholdOutcome[] {
  const declared = (...metrics: string[]): boolean =>
    judges.some(({ threshold, workflow: declaredIn }) => {
      const about = threshold.workflow ?? declaredIn;
      const whose = about === null || about === workflow.name || about === workflow.mix;
      return metrics.includes(threshold.metric) && whose;
    });
  const base: Base = { workflow: workflow.name, implicit: true, aborted: false };
  return [
    ...(searching || declared("checks") ? [] : checksGate(workflow, base)),
    ...(declared("errors") ? [] : successGate(workflow, base)),
    ...measuredGate(workflow, base),
    ...(searching || declared("arrivals", "arrivals.missed") ? [] : missedGate(workflow, base)),
    ...faultGates(workflow.faults, base.workflow),
  ];
}

/** One gate per rule that was broken; null for those of the whole run. */
export function faultGates(faults: readonly Fault[], workflow: string | null): ThresholdOutcome[] {
  const gates = [...new Set(faults.map(({ gate }) => gate))];
  return gates.map((expression) => {
    const actualText = faults
      .filter(({ gate }) => gate === expression)
      .map(({ count, text }) => (count <= 1 ? text : `${text} (${formatCount(count)} times)`))
      .join("; ");
    const base = { workflow, implicit: true, aborted: false };
    return { ...base, expression, passed: false, actual: null, actualText };
  });
}

function checksGate({ checks }: WorkflowData, base: Base): ThresholdOutcome[] {
  const passed = checks.reduce((sum, check) => sum + check.passed, 0);
  const failed = checks.reduce((sum, check) => sum + check.failed, 0);
  if (passed + failed === 0) return [];
  const share = passed / (passed + failed);
  return [
    {
      ...base,
      expression: "checks.rate >= 100%",
      passed: failed === 0,
      actual: Number((100 * share).toPrecision(6)),
      actualText: failed === 0 ? "100 %" : `${formatPercent(share)}, ${formatCount(failed)} failed`,
    },
  ];
}

function successGate({ steps }: WorkflowData, base: Base): ThresholdOutcome[] {
  const requests = steps.reduce((sum, step) => sum + step.totals.requests, 0);
  const ok = steps.reduce((sum, step) => sum + step.totals.ok, 0);
  const cutOff = steps.reduce((sum, step) => sum + step.totals.interrupted, 0);
  if (requests + cutOff === 0) return [];
  const actualText =
    requests > 0
      ? `${formatCount(ok)} of ${formatCount(requests)} succeeded`
      : `none of ${formatCount(cutOff)} finished in time`;
  const expression = "at least one request succeeded";
  return [{ ...base, expression, passed: ok > 0, actual: ok, actualText }];
}

/** Only when it is broken: a step of which no call finished, in a workflow that is over. */
function measuredGate({ ended, measures, steps }: WorkflowData, base: Base): ThresholdOutcome[] {
  const silent = steps.filter(({ totals }) => totals.requests === 0);
  const nothing = measures && steps.length === 0;
  if (!ended || (silent.length === 0 && !nothing)) return [];
  const cutOff = silent.reduce((sum, { totals }) => sum + totals.interrupted, 0);
  const names = silent.map(({ name }) => `"${name}"`).join(", ");
  const whose = silent.length === steps.length ? "" : ` of ${names}`;
  const why = cutOff === 0 ? "" : `: ${formatCount(cutOff)} calls were cut off`;
  const actualText = `nothing was measured${whose}${why}`;
  const expression = "every step was measured";
  const actual = steps.length - silent.length;
  return [{ ...base, expression, passed: false, actual, actualText }];
}

function missedGate({ arrivals }: WorkflowData, base: Base): ThresholdOutcome[] {
  if (arrivals === null || arrivals.missed === 0) return [];
  const { missed, started } = arrivals;
  const share = missed / (missed + started);
  return [
    {
      ...base,
      expression: "arrivals.missed.rate <= 1%",
      passed: share <= MISSED_SHARE_MAX,
      actual: Number((100 * share).toPrecision(6)),
      actualText: `${formatPercent(share)}, ${formatCount(missed)} of ${formatCount(missed + started)}`,
    },
  ];
}
