/**
 * Where results go beside the terminal: any number of reporters, each given the merged results model.
 *
 *   start ─▶ interval, interval, … ─▶ finish ─▶ close
 *
 * A reporter never changes the verdict of a run (REP-5): what goes wrong is said with its name.
 */

import type { FigureUnit } from "../core/load/results/figures.ts";
import type { Distribution, RunSummary, Verdict } from "../core/load/results/model.ts";
import type { SparseCells } from "../core/load/stats/sparse-cells.ts";

/** The run, before anything of it is measured. */
export type RunInfo = Pick<RunSummary, "name" | "title" | "tags">;

export interface Reporter {
  /** Such as "prometheus". */
  readonly name: string;
  /** Where to, without credentials; for messages. */
  readonly target: string;
  /** How often `interval` is called; 5 s by default. */
  readonly everyMs?: number | undefined;
  /** Writes what others did, too: it is finished when they are closed. */
  readonly last?: boolean | undefined;
  /** Before load is made; refuses with an error what can never work. The signal: nobody will wait for it. */
  start(run: RunInfo, signal: AbortSignal): Promise<void>;
  /** Returns at once. */
  interval?(frame: Frame): void;
  /** Wants single calls, so large a share of them; only a run on this machine has them. */
  readonly sampledShare?: number | undefined;
  /** Returns at once. */
  calls?(sampled: SampledCalls): void;
  /** `phases` are only known of a run on this machine. */
  finish(summary: RunSummary, verdict: Verdict, phases?: readonly WorkflowPhase[]): Promise<void>;
  /** Sends what is left within its time; called again it does nothing. (REP-2) */
  close(): Promise<void>;
  /** What became of the points it was given. */
  counts?(): DeliveryCounts;
}

/** When something was done for a workflow; milliseconds since the epoch. */
export interface WorkflowPhase {
  readonly workflow: string;
  readonly name: "prepare" | "set-up" | "load" | "tear-down";
  readonly fromMs: number;
  readonly toMs: number;
  /** Why it failed; null when it did not. */
  readonly problem: string | null;
  /** Of the load, as it was planned. */
  readonly stages: readonly {
    readonly name: string;
    readonly fromMs: number;
    readonly toMs: number;
  }[];
}

/** Single calls of one executor core, chosen by chance. */
export interface SampledCalls {
  /** Lines of JSON, one for each. */
  readonly text: string;
  readonly calls: number;
  /** Chosen, and not kept. */
  readonly dropped: number;
}

export interface DeliveryCounts {
  readonly sent: number;
  readonly dropped: number;
  /** Nobody acknowledges what was sent. */
  readonly unconfirmed?: true;
  /** The last thing that went wrong, without secrets. */
  readonly problem: string | null;
}

/** What was measured until a moment, merged over all cores. */
export interface Frame {
  /** "interval": a stretch of the run. "summary": all of it, once, when it is over. */
  readonly kind: "interval" | "summary";
  /** Milliseconds since the epoch: when the run began, and when the stretch began and ended. */
  readonly runBeganMs: number;
  readonly fromMs: number;
  readonly atMs: number;
  /** Of every point: `run`, `run_id` and the tags of the run. */
  readonly labels: Readonly<Record<string, string>>;
  readonly points: readonly Point[];
  /** Points that are not here because the run has too many series. */
  readonly leftOut: number;
}

/** One measured value. Together with the labels, scope and figure tell it from all others. */
export type Point = CounterPoint | GaugePoint | DistributionPoint;

export type PointScope = "run" | "workflow" | "step" | "metric";

interface PointName {
  readonly scope: PointScope;
  /** As in the columns of CSV: "bytes_in", "latency_ms". */
  readonly figure: string;
  readonly unit: FigureUnit;
  /** workflow, step, protocol and what else tells it apart; never a URL. */
  readonly labels: Readonly<Record<string, string>>;
}

interface CounterPoint extends PointName {
  readonly kind: "counter";
  /** Since the run began. */
  readonly total: number;
  /** Since the frame before. */
  readonly increment: number;
}

interface GaugePoint extends PointName {
  readonly kind: "gauge";
  readonly value: number;
}

interface DistributionPoint extends PointName {
  readonly kind: "distribution";
  /** Of the stretch that the frame is of; its sum, too. */
  readonly figures: Distribution;
  readonly sum: number;
  /** All values since the run began, in cells of three digits, of latencies; null otherwise. */
  readonly total: TotalCells | null;
}

interface TotalCells {
  /** Microseconds. */
  readonly cells: SparseCells;
  readonly sumMs: number;
}
