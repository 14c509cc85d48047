/**
 * A run as reported to the gate that merges it with other parts of the same load: the statistics of its workflows as
 * frames, when each began, and what it waits for. Frames are written against the ones that the receiver retains, so any
 * of them may be lost or repeated.
 */

import type { CoreVitals } from "../job/core-messages.ts";
import type { WorkflowStatus } from "../results/model.ts";
import type { RunAggregate, RunRemarks } from "../results/run-aggregate.ts";
import type { WorkflowTiming } from "../results/workflow-aggregate.ts";
import type { JointWait } from "./phase-types.ts";

export interface ToldRun {
  readonly workflows: readonly ToldWorkflow[];
  readonly waits: readonly JointWait[];
}

export interface ToldWorkflow {
  readonly name: string;
  readonly status: WorkflowStatus;
  readonly error: string | null;
  /** Vitals of the busiest core, with the users of all together. */
  readonly vitals: CoreVitals;
  /** Wall-clock milliseconds; null: it has not begun. */
  readonly startedAtMs: number | null;
  readonly timing: WorkflowTiming;
  readonly frame: Uint8Array;
  /** Cores that ran it were lost; absent in earlier versions, and where none was. */
  readonly hasLostLoad?: boolean | undefined;
}

/** Report of a finished run, beside its summary. */
export interface ToldEnd extends ToldRun {
  readonly remarks: RunRemarks;
}

/** The frame of a workflow that the receiver retains. */
export interface HeldFrame {
  readonly workflow: string;
  readonly frame: number;
}

/** Calls so far. */
export interface RunCounts {
  readonly requests: number;
  readonly failed: number;
}

export function countsOf({ measured }: RunAggregate): RunCounts {
  const steps = measured.flatMap((workflow) => workflow.data().steps);
  return {
    requests: steps.reduce((sum, { totals }) => sum + totals.requests, 0),
    failed: steps.reduce((sum, { totals }) => sum + totals.failedCount, 0),
  };
}

/** Workflows that are not in `held` are reported in full. `wallMs`: wall-clock time at time 0 of the run. */
export function toldWorkflows(
  { measured }: RunAggregate,
  held: readonly HeldFrame[],
  wallMs: number,
): readonly ToldWorkflow[] {
  return measured.map((workflow) => {
    const { cores, error, hasLostLoad, manifest, startedAtMs, status, timing, vitals } = workflow;
    const { name } = manifest;
    const hasBegun = status !== "waiting" && status !== "not run" && cores.length > 0;
    return {
      ...{ name, status, error, timing, vitals },
      startedAtMs: hasBegun ? Math.round(wallMs + startedAtMs) : null,
      ...(hasLostLoad ? { hasLostLoad } : {}),
      frame: workflow.tell(held.find((one) => one.workflow === name)?.frame ?? 0),
    };
  });
}
