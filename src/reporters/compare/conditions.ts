/**
 * A difference between two runs means something only if nothing else was different. These are the
 * reasons to doubt that, as far as the summaries tell.
 */

import type { RunSummary } from "../../core/run/results/model.ts";
import { partialOf } from "../../core/run/results/partial.ts";

/** Runs whose measured times differ by more than this factor are remarked. */
const DURATION_RATIO_MAX = 1.5;

export function differencesOfConditions(before: RunSummary, after: RunSummary): string[] {
  const sides = [
    { name: "before", run: before },
    { name: "after", run: after },
  ] as const;
  const found: string[] = [];
  for (const { name, run } of sides) {
    if (run.generator.limited) {
      found.push(
        `The load generator was the limit of the run ${name}; it hides what the target can do.`,
      );
    }
    if (run.verdict === "interrupted") found.push(`The run ${name} was interrupted.`);
    const partial = partialOf(run);
    if (partial !== null) found.push(`The result of the run ${name} is partial: ${partial}.`);
    if (run.lost.length > 0) found.push(`The run ${name} lost parts of its load or results.`);
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

function loadDifferences(before: RunSummary, after: RunSummary): string[] {
  const found: string[] = [];
  for (const was of before.workflows) {
    const is = after.workflows.find(({ name }) => name === was.name);
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
