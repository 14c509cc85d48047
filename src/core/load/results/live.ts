/**
 * Live state of a run: the summary as if it ended now, plus what only matters while it runs. Views (full terminal,
 * plain lines, none) receive this and nothing else, and answer with controls.
 */

import type { SparseCells } from "../stats/sparse-cells.ts";
import type { RunSummary, StepSummary, WorkflowStatus } from "./model.ts";

export type RunPhase =
  | "starting"
  | "setting up"
  | "warming up"
  | "running"
  | "paused"
  | "tearing down"
  | "stopping"
  | "done";

/** Adds latencies, in one window per step: they cost more, and only remote reporters need them. */
export type LiveDetail = "figures" | "latencies";

export interface LiveRun {
  readonly phase: RunPhase;
  readonly elapsedSeconds: number;
  /** Null when the end is not known in advance (iterations). */
  readonly totalSeconds: number | null;
  /**
   * At most half a second old, like the metrics of steps; the histogram of a step is computed when it is first read.
   */
  readonly summary: RunSummary;
  readonly workflows: readonly LiveWorkflow[];
  /** Sum over all workflows, over about the last second. */
  readonly ratePerSecond: number;
  readonly failedPerSecond: number;
  /** Scale factor of the plan set by hand; 1 is as planned. */
  readonly scale: number;
  /** Datacenters of a run over several: each is listed where a core would be, in their order. */
  readonly datacenters?: readonly string[] | undefined;
}

/** Progress sent to reporters while a run continues; a `LiveRun` with latencies contains it, too. */
export interface RunProgress {
  /** Contains data over time only where a view requests it anyway. */
  readonly summary: RunSummary;
  readonly workflows: readonly Pick<LiveWorkflow, "name" | "activeVus" | "targetPerSecond">[];
  /** All latencies of a step so far, in microseconds; if absent, its windows contain them. */
  readonly latencies?: ReadonlyMap<StepSummary, SparseCells> | undefined;
}

export interface LiveWorkflow {
  readonly name: string;
  readonly status: WorkflowStatus;
  readonly warmingUp: boolean;
  /** Activity beside generating load: "setting up for 12 s"; null otherwise. */
  readonly doing: string | null;
  /** 0 … 1. */
  readonly progress: number;
  readonly activeVus: number;
  /** Required, or the maximum; null for a flow of a mix, whose users depend on what they are busy with. */
  readonly targetVus: number | null;
  readonly ratePerSecond: number;
  /** Open models: the rate required now; null otherwise. */
  readonly targetPerSecond: number | null;
  readonly steps: readonly LiveStep[];
  /** Current action of a breakpoint search: "trying 80/s". */
  readonly search?: string | undefined;
}

/** Over about the last five seconds. */
export interface LiveStep {
  readonly name: string;
  readonly ratePerSecond: number;
  readonly failedPerSecond: number;
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
}

export type RunControl =
  | { readonly kind: "pause" }
  | { readonly kind: "resume" }
  /** Factor on virtual users or rate: 1 is as planned, 1.1 is ten percent more. */
  | { readonly kind: "scale"; readonly factor: number }
  /** End now, gracefully, with results. */
  | { readonly kind: "stop" };

/** Cluster job of a run, as far as it is known. */
export interface RunJob {
  readonly id: string;
  /** Null until it has ended. */
  readonly status: string | null;
  /** Why it ended so. */
  readonly reason: string | null;
}

export interface RunView {
  /** Called before anything runs; `control` controls the run. */
  start(control: (command: RunControl) => void): void;
  update(live: LiveRun): void;
  /** Called for machine-readable views when a cluster job was submitted or found, and when it has finished. */
  job?(job: RunJob): void;
  /** A line from the run or from user code (console.log in a workflow), shown without breaking the picture. */
  message(line: string): void;
  /** Draws the end result and restores the terminal. Always called, also after an error (then with undefined). */
  finish(end: RunEnd | undefined): void;
}

export interface RunEnd {
  readonly summary: RunSummary;
  /** Files written, relative to the working directory. */
  readonly files: readonly string[];
  /** Link target for the name of the report in a terminal. */
  readonly reportUrl?: string | undefined;
}
