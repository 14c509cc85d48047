/**
 * Reasons to doubt that two runs are comparable, as far as their summaries show: a difference means something only if
 * nothing else changed.
 */

import { doubtOf } from "../../core/load/results/doubt.ts";
import type { RunSummary } from "../../core/load/results/model.ts";

/** Warns about runs whose measured times differ by more than this factor. */
const DURATION_RATIO_MAX = 1.5;

function sidesOf(before: RunSummary, after: RunSummary) {
  return [
    { name: "before", run: before },
    { name: "after", run: after },
  ] as const;
}

/** Runs whose figures cannot be trusted, with the reason: a difference between them means nothing. */
export function untrustedRuns(before: RunSummary, after: RunSummary): string[] {
  return sidesOf(before, after).flatMap(({ name, run }) => {
    const doubt = doubtOf(run);
    return doubt === null ? [] : [`the run ${name} is not to be trusted: ${doubt}`];
  });
}

export function differencesOfConditions(before: RunSummary, after: RunSummary): string[] {
  const found: string[] = [];
  for (const { name, run } of sidesOf(before, after)) {
    if (run.verdict === "interrupted") found.push(`The run ${name} was interrupted.`);
  }
  return [...found, ...environmentDifferences(before, after), ...loadDifferences(before, after)];
}

function environmentDifferences(before: RunSummary, after: RunSummary): string[] {
  const names = {
    cpuModel: "CPU",
    cpus: "number of CPUs",
    cores: "number of executor cores",
    node: "Node version",
    hyperscale: "Hyperscale version",
    platform: "platform",
  } as const;
  const keys = Object.keys(names) as (keyof typeof names)[];
  const changes = keys.flatMap((key) => {
    const [was, is] = [before.environment[key], after.environment[key]];
    return was === is ? [] : [`The ${names[key]} changed: ${was} before, ${is} after.`];
  });
  const [was, is] = [placesOf(before), placesOf(after)];
  return was === is ? changes : [...changes, `It ran elsewhere: ${was} before, ${is} after.`];
}

function placesOf({ cluster }: RunSummary): string {
  if (cluster === undefined) return "on one machine or in one datacenter";
  return `in ${cluster.datacenters
    .map(({ name }) => name)
    .sort()
    .join(", ")}`;
}

/** Host and port of a run of a single URL; null for a run of a file. */
function targetOf({ name }: RunSummary): string | null {
  return URL.canParse(name) && /^[a-z][a-z0-9+.-]*:\/\//i.test(name) ? new URL(name).host : null;
}

/** A run of a URL names its workflow after the host: two hosts are compared as one workflow. */
export function workflowKey(summary: RunSummary, workflow: string): string {
  return workflow === targetOf(summary) ? "" : workflow;
}

function loadDifferences(before: RunSummary, after: RunSummary): string[] {
  const found: string[] = [];
  const [target, other] = [targetOf(before), targetOf(after)];
  if (target !== other && target !== null && other !== null)
    found.push(`The target changed: ${target} before, ${other} after.`);
  const workflows = new Map(after.workflows.map((one) => [workflowKey(after, one.name), one]));
  for (const was of before.workflows) {
    const is = workflows.get(workflowKey(before, was.name));
    if (is === undefined) continue;
    if (was.load !== is.load) {
      found.push(`The load of ${was.name} changed: ${was.load} before, ${is.load} after.`);
    }
    const shorter = Math.min(was.elapsedSeconds, is.elapsedSeconds);
    const longer = Math.max(was.elapsedSeconds, is.elapsedSeconds);
    if (was.load === is.load && longer > shorter * DURATION_RATIO_MAX) {
      found.push(
        `${was.name} was measured for ${was.elapsedSeconds} s before, ${is.elapsedSeconds} s after.`,
      );
    }
  }
  return found;
}
