/**
 * What a running test shows: the summary as if it ended now, plus what only matters while it runs.
 * Views (full terminal, plain lines, none) receive this and nothing else, and answer with controls.
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

/** Latencies as well, in one window per step: they cost more, and only reporters elsewhere need them. */
export type LiveDetail = "figures" | "latencies";

export interface LiveRun {
  readonly phase: RunPhase;
  readonly elapsedSeconds: number;
  /** Null when the end is not known in advance (iterations). */
  readonly totalSeconds: number | null;
  /** At most half a second old, like the figures of steps; the histogram of a step is of when it is first read. */
  readonly summary: RunSummary;
  readonly workflows: readonly LiveWorkflow[];
  /** Sum over all workflows, over about the last second. */
  readonly ratePerSecond: number;
  readonly failedPerSecond: number;
  /** Of the plan, as the load was changed by hand; 1 is as planned. */
  readonly scale: number;
  /** Of a run over several: each stands where a core does, in their order. */
  readonly datacenters?: readonly string[] | undefined;
}

/** What reporters are told while a run goes on; a `LiveRun` with latencies says it, too. */
export interface RunProgress {
  /** What is over time is in it only where somebody looks at it anyway. */
  readonly summary: RunSummary;
  readonly workflows: readonly Pick<LiveWorkflow, "name" | "activeVus" | "targetPerSecond">[];
  /** All latencies of a step so far, in microseconds; where they are not here, its windows hold them. */
  readonly latencies?: ReadonlyMap<StepSummary, SparseCells> | undefined;
}

export interface LiveWorkflow {
  readonly name: string;
  readonly status: WorkflowStatus;
  readonly warmingUp: boolean;
  /** Beside making load: "setting up for 12 s"; null otherwise. */
  readonly doing: string | null;
  /** 0 … 1. */
  readonly progress: number;
  readonly activeVus: number;
  /** Asked for, or at most; null for a flow of a mix, which has users by what they are busy with. */
  readonly targetVus: number | null;
  readonly ratePerSecond: number;
  /** Open models: the rate asked for now; null otherwise. */
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
  /** Virtual users or rate, of the plan: 1 is as planned, 1.1 is ten percent more. */
  | { readonly kind: "scale"; readonly factor: number }
  /** End now, gracefully, with results. */
  | { readonly kind: "stop" };

/** Which job of a cluster a run is, and what is known of it. */
export interface RunJob {
  readonly id: string;
  /** Null until it has ended. */
  readonly status: string | null;
  /** Why it ended so. */
  readonly reason: string | null;
}

export interface RunView {
  /** Called before anything runs; `control` steers the run. */
  start(control: (command: RunControl) => void): void;
  update(live: LiveRun): void;
  /** For programs that look: when a job of a cluster was submitted or found, and when it has ended. */
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
  /** Where a terminal may lead to when the name of the report is clicked. */
  readonly reportUrl?: string | undefined;
}
