/** What was measured of one workflow, as thresholds, gates and results read it. */

import type { Fault } from "../job/faults.ts";
import type { GroupTotals } from "../stats/group-stats.ts";
import type { Histogram } from "../stats/histogram.ts";
import type { MetricTotals } from "../stats/metrics.ts";
import type { StepTotals } from "../stats/step-stats.ts";
import type { WindowStore } from "../stats/window-store.ts";
import type { StepWindow } from "../stats/windows.ts";
import type { CheckSummary } from "./model.ts";

/** What was measured of one workflow, merged over its cores. */
export interface WorkflowData {
  readonly name: string;
  /** The mix that it is a flow of: thresholds of the mix are about all its flows. */
  readonly mix: string | null;
  /** Since the run began. */
  readonly startedAtSeconds: number;
  /** Behind the warm-up; and how long it has been measured. */
  readonly measuredFromSeconds: number;
  readonly elapsedSeconds: number;
  readonly steps: readonly StepData[];
  /** It is there to measure calls: it has steps, or is a flow. */
  readonly measures: boolean;
  /** Calls of setup, userSetup and teardown. */
  readonly aside: readonly StepData[];
  readonly checks: readonly CheckSummary[];
  /** Whole iterations (`WHOLE_ITERATION`) and the groups that their author named. */
  readonly groups: readonly { readonly name: string; readonly totals: GroupTotals }[];
  /** More names were seen than are kept apart; what they counted is under one. */
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
    /** Of the missed: those of lost cores. */
    readonly missedByLosses: number;
    readonly lag: Histogram;
    /** How long those had waited that never began, when the plan was over. */
    readonly waited: Histogram;
  } | null;
  /** Cut off by the end of the run when older than typical ones: see `stats/unanswered.ts`. */
  readonly unanswered: {
    readonly calls: number;
    /** Of which the code waited for no call. */
    readonly iterations: number;
    /** Iterations that began and are over, however they ended. */
    readonly iterationsOver: number;
    /** Share of either that does not fail the run; null for the default. */
    readonly shareMax: number | null;
  };
  /** Of a plan of iterations that lost cores: how many it has, and how many of them nobody made or counted. */
  readonly iterationsMissed: { readonly missed: number; readonly planned: number } | null;
  readonly metrics: MetricTotals;
  /** Names of counters that were declared: 0 until something is added. */
  readonly counters: readonly string[];
  /** It ran and is over. */
  readonly ended: boolean;
  readonly faults: readonly Fault[];
}

/** How long users of a workflow waited for rows or iterations, of all the time they had. */
export interface RowWait {
  readonly workflow: string;
  readonly waitedMs: number;
  readonly userMs: number;
}

export interface StepData {
  /** In the order in which it was first seen. */
  readonly number: number;
  readonly name: string;
  readonly protocol: string;
  readonly tags: Readonly<Record<string, string>>;
  readonly totals: StepTotals;
  readonly windows: WindowStore<StepWindow>;
}
