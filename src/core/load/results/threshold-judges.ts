/** The thresholds of a run and of its workflows, with their judges. */

import { type WorkflowManifest, withParts } from "../job/manifest.ts";
import { parseThreshold, ThresholdJudge, type ThresholdSpec } from "./thresholds.ts";

export interface JudgedRun {
  readonly manifests: readonly WorkflowManifest[];
  /** Thresholds of the whole run, from the command line. */
  readonly thresholds: readonly string[];
  /** Every threshold that fails after this much measured time ends the run; null: only those that say so. */
  readonly abortAfterMs: number | null;
}

export function thresholdJudges({
  abortAfterMs,
  manifests,
  thresholds,
}: JudgedRun): ThresholdJudge[] {
  const aborting = (spec: ThresholdSpec): ThresholdSpec =>
    abortAfterMs === null || spec.abortOnFail
      ? spec
      : { ...spec, abortOnFail: true, afterMs: abortAfterMs };
  const specs = [
    ...thresholds.map((expression) => ({
      spec: { expression, abortOnFail: false, afterMs: 0 },
      workflow: null,
    })),
    // Thresholds of a search judge its probes instead of the whole run.
    ...withParts(manifests).flatMap(({ load, name, thresholds: own }) =>
      load.kind === "search" ? [] : own.map((spec) => ({ spec, workflow: name })),
    ),
  ];
  return specs.flatMap(({ spec, workflow }) => {
    const parsed = parseThreshold(spec.expression);
    // A threshold of one workflow needs no prefix when it is the only one.
    return parsed.ok ? [new ThresholdJudge(parsed.threshold, aborting(spec), workflow)] : [];
  });
}
