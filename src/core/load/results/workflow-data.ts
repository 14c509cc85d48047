/** Measurements of one workflow, as thresholds, gates and results read them. */

import type { Fault } from "../job/faults.ts";
import type { GroupTotals } from "../stats/group-stats.ts";
import type { Histogram } from "../stats/histogram.ts";
import type { MetricTotals } from "../stats/metrics.ts";
import type { StepTotals } from "../stats/step-stats.ts";
import type { WindowStore } from "../stats/window-store.ts";
import type { StepWindow } from "../stats/windows.ts";
import type { CheckSummary } from "./model.ts";

/** Measurements of one workflow, merged over its cores. */
export interface WorkflowData {
  readonly name: string;
  /** The mix of a flow: thresholds of the mix cover all its flows. */
  readonly mix: string | null;
  /** Since the run began. */
  readonly startedAtSeconds: number;
  /** After the warm-up; and how long it has been measured. */
  readonly measuredFromSeconds: number;
  readonly elapsedSeconds: number;
  readonly steps: readonly StepData[];
  /** True for a workflow that measures calls: it has steps, or is a flow. */
  readonly measures: boolean;
  /** Calls of setup, userSetup and teardown. */
  readonly aside: readonly StepData[];
  readonly checks: readonly CheckSummary[];
  /** Whole iterations (`WHOLE_ITERATION`) and the groups that their author named. */
  readonly groups: readonly { readonly name: string; readonly totals: GroupTotals }[];
  /** More names were seen than are kept separately; the rest are counted under one. */
  readonly namesOverflowed: boolean;
  readonly iterations: number;
  /** Completed inside the measured time. */
  readonly iterationsInside: number;
  /** Cut off by the end of the run. */
  readonly iterationsInterrupted: number;
  /** Only open models; the lag in microseconds. */
  readonly arrivals: {
    readonly started: number;
    readonly missed: number;
    /** Missed arrivals of lost cores. */
    readonly missedByLosses: number;
    readonly lag: Histogram;
    /** Waiting times of arrivals that never began, when the plan was over. */
    readonly waited: Histogram;
  } | null;
  /** Cut off by the end of the run when older than typical ones: see `stats/unanswered.ts`. */
  readonly unanswered: {
    readonly calls: number;
    /** Iterations whose code waited for no call. */
    readonly iterations: number;
    /** Iterations that began and are over, however they ended. */
    readonly iterationsOver: number;
    /** Share of either that does not fail the run; null for the default. */
    readonly shareMax: number | null;
    /** Users of a closed model; null for open ones. */
    readonly users: number | null;
  };
  /** Iterations of a plan that lost cores: the total, and how many were not made or not counted. */
  readonly iterationsMissed: { readonly missed: number; readonly planned: number } | null;
  readonly metrics: MetricTotals;
  /** Names of counters that were declared: 0 until something is added. */
  readonly counters: readonly string[];
  /** True when it ran and is over. */
  readonly ended: boolean;
  readonly faults: readonly Fault[];
}

/** How long users of a workflow waited for rows or iterations, relative to all of their time. */
export interface RowWait {
  readonly workflow: string;
  readonly waitedMs: number;
  readonly userMs: number;
}

export interface StepData {
  /** In the order of first appearance. */
  readonly number: number;
  readonly name: string;
  readonly protocol: string;
  readonly tags: Readonly<Record<string, string>>;
  readonly totals: StepTotals;
  readonly windows: WindowStore<StepWindow>;
}
