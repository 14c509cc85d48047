/**
 * Gates of a workflow that hold without being declared:
 *
 *   every check passes                          unless a threshold on `checks` says otherwise
 *   every step succeeded at least once          unless one on `errors` covers the step
 *   at most 1 % of the arrivals were missed     unless one on `arrivals` or `arrivals.missed` does
 *   at most 1 % of the calls were unanswered    unless `maxUnanswered` says otherwise
 *   at most half of the users of a closed model ended without an answer: the same
 *   at most 1 % of a plan's iterations were lost with their cores
 *   at least one iteration finished             unless one on `iterations` does
 *   every step measured something, and nothing went wrong beside the steps: always
 *
 * A search for the breakpoint makes loads that fail: there only the second and the last hold.
 * What was not measured, or not done, must not look like success.
 */

import type { Fault } from "../job/faults.ts";
import { formatCount, formatPercent } from "./format.ts";
import type { ThresholdOutcome } from "./model.ts";
import type { Threshold } from "./threshold.ts";
import type { ThresholdJudge } from "./threshold-judge.ts";
import { matchingSteps } from "./threshold-windows.ts";
import type { StepData, WorkflowData } from "./workflow-data.ts";

/** Share of the arrivals, or of the planned iterations, that may be missed without failing the run. */
const MISSED_SHARE_MAX = 0.01;
/** Share of the calls, and of the iterations, that may be unanswered without failing the run. */
const UNANSWERED_SHARE_MAX = 0.01;

/** Share of the users of a closed model that may wait for an answer when the run ends. */
const STUCK_SHARE_MAX = 0.5;

/** Steps that the text of a gate names. */
const NAMED_MAX = 3;

type Base = Pick<ThresholdOutcome, "workflow" | "implicit" | "aborted">;

export function implicitGates(
  workflow: WorkflowData,
  judges: readonly ThresholdJudge[],
  searching = false,
): ThresholdOutcome[] {
  const own = judges
    .filter(({ threshold, workflow: declaredIn }) => {
      const about = threshold.workflow ?? declaredIn;
      return about === null || about === workflow.name || about === workflow.mix;
    })
    .map(({ threshold }) => threshold);
  const declared = (...metrics: string[]): boolean =>
    own.some(({ metric }) => metrics.includes(metric));
  // A count of arrivals says nothing of those that were missed.
  const allowsMissed = own.some(
    ({ figure, metric }) =>
      metric === "arrivals.missed" || (metric === "arrivals" && figure.kind === "rate"),
  );
  const base: Base = { workflow: workflow.name, implicit: true, aborted: false };
  return [
    ...(searching ? [] : checksGate(workflow, own, base)),
    ...successGate(workflow, own, base),
    ...measuredGate(workflow, base),
    ...(searching || allowsMissed ? [] : missedGate(workflow, base)),
    ...(searching ? [] : unansweredGates(workflow, base)),
    ...iterationsGate(workflow, base),
    ...(searching || declared("iterations") ? [] : endedGate(workflow, base)),
    ...faultGates(workflow.faults, base.workflow),
  ];
}

/** One gate per broken rule; null for those of the whole run. */
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

/** Checks that a threshold on `checks` covers are judged by that alone. */
function checksGate(
  workflow: WorkflowData,
  thresholds: readonly Threshold[],
  base: Base,
): ThresholdOutcome[] {
  const covering = thresholds.filter(({ metric }) => metric === "checks");
  const checks = workflow.checks.filter(
    ({ name }) => !covering.some(({ tags }) => (tags["check"] ?? name) === name),
  );
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

/** Steps covered by a threshold on `errors` are judged by that alone. */
function successGate(
  workflow: WorkflowData,
  thresholds: readonly Threshold[],
  base: Base,
): ThresholdOutcome[] {
  const covered = new Set(
    thresholds
      // A threshold on one kind of error says nothing of the others.
      .filter(({ metric, tags }) => metric === "errors" && tags["kind"] === undefined)
      .flatMap(({ tags }) => matchingSteps([workflow], tags)),
  );
  const steps = workflow.steps.filter((step) => !covered.has(step));
  const requests = steps.reduce((sum, step) => sum + step.totals.requests, 0);
  const cutOff = steps.reduce((sum, step) => sum + step.totals.interrupted, 0);
  if (requests + cutOff === 0) return [];
  const ok = steps.reduce((sum, step) => sum + step.totals.ok, 0);
  const broken = steps.filter(({ totals }) => totals.ok === 0 && totals.requests > 0);
  const actualText =
    requests === 0
      ? `none of ${formatCount(cutOff)} finished in time`
      : ok > 0 && broken.length > 0
        ? neverSucceeded(broken)
        : `${formatCount(ok)} of ${formatCount(requests)} succeeded`;
  const expression = "every step succeeded at least once";
  const passed = ok > 0 && broken.length === 0;
  return [{ ...base, expression, passed, actual: ok, actualText }];
}

function neverSucceeded(steps: readonly StepData[]): string {
  const named = steps
    .slice(0, NAMED_MAX)
    .map(({ name, totals }) => `none of ${formatCount(totals.requests)} of "${name}"`);
  const others = steps.length - named.length;
  return [...named, ...(others > 0 ? [`and ${formatCount(others)} more steps`] : [])].join(", ");
}

/** Present only when broken: a step of which no call finished, in a finished workflow. */
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
  if (arrivals === null) return [];
  const { missed, missedByLosses, started } = arrivals;
  const lost = missedByLosses === 0 ? "" : `, ${formatCount(missedByLosses)} with lost cores`;
  return shareGate("arrivals.missed.rate", missed, missed + started, MISSED_SHARE_MAX, base, lost);
}

function iterationsGate({ iterationsMissed }: WorkflowData, base: Base): ThresholdOutcome[] {
  if (iterationsMissed === null) return [];
  const { missed, planned } = iterationsMissed;
  const of = " of the plan";
  return shareGate("iterations.lost.rate", missed, planned, MISSED_SHARE_MAX, base, of);
}

/** Present only when broken: iterations began, and the end of the run cut all of them off in their steps or pauses. */
function endedGate(workflow: WorkflowData, base: Base): ThresholdOutcome[] {
  const { ended, iterationsInside, iterationsInterrupted, measures, unanswered } = workflow;
  const begun = unanswered.iterationsOver;
  if (!ended || !measures || begun === 0 || iterationsInside > 0) return [];
  if (iterationsInterrupted < begun || unanswered.iterations === begun) return [];
  const actualText = `the end of the run cut off all ${formatCount(begun)}`;
  const expression = "iterations.count >= 1";
  return [{ ...base, expression, passed: false, actual: 0, actualText }];
}

/** Gates for calls without an answer and iterations whose code never finished. */
function unansweredGates({ steps, unanswered }: WorkflowData, base: Base): ThresholdOutcome[] {
  const { calls, iterations, iterationsOver, shareMax, users } = unanswered;
  const requests = steps.reduce((sum, { totals }) => sum + totals.requests, 0);
  const most = shareMax ?? UNANSWERED_SHARE_MAX;
  // Iterations that have hung since the warm-up have no outcome.
  const over = Math.max(iterations, iterationsOver);
  return [
    ...shareGate("unanswered.rate", calls, requests, most, base),
    ...stuckGate(calls + iterations, users, Math.max(most, STUCK_SHARE_MAX), base),
    ...shareGate("iterations.unresolved.rate", iterations, over, most, base),
  ];
}

/**
 * Only when it is broken: most users of a closed model wait for an answer, or for code or a set-up that never finishes,
 * when the run ends. Each has one call or iteration, a tiny share of all when the target was fast before.
 */
function stuckGate(
  waiting: number,
  users: number | null,
  most: number,
  base: Base,
): ThresholdOutcome[] {
  if (users === null || waiting <= most * users) return [];
  return shareGate("users.unanswered.rate", Math.min(waiting, users), users, most, base);
}

/** Empty where there is nothing to report. */
function shareGate(
  metric: string,
  count: number,
  total: number,
  most: number,
  base: Base,
  remark = "",
): ThresholdOutcome[] {
  if (count === 0) return [];
  const share = count / total;
  return [
    {
      ...base,
      expression: `${metric} <= ${Number((100 * most).toPrecision(6))}%`,
      passed: share <= most,
      actual: Number((100 * share).toPrecision(6)),
      actualText: `${formatPercent(share)}, ${formatCount(count)} of ${formatCount(total)}${remark}`,
    },
  ];
}
