/**
 * Destinations of results beside the terminal: any number of reporters, each given the merged results model.
 *
 *   start ─▶ interval, interval, … ─▶ finish ─▶ close
 *
 * A reporter never changes the verdict of a run (REP-5): its problems are reported with its name.
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
  /** Includes the outcome of the others: it is finished after they are closed. */
  readonly last?: boolean | undefined;
  /** Called before load begins; fails for what can never work. The signal aborts the wait. */
  start(run: RunInfo, signal: AbortSignal): Promise<void>;
  /** Returns at once. */
  interval?(frame: Frame): void;
  /** Share of single calls it wants; available only for a run on this machine. */
  readonly sampledShare?: number | undefined;
  /** Returns at once. */
  calls?(sampled: SampledCalls): void;
  /** `phases` are known only for a run on this machine. */
  finish(summary: RunSummary, verdict: Verdict, phases?: readonly WorkflowPhase[]): Promise<void>;
  /** Sends what is left before its deadline; further calls do nothing. (REP-2) */
  close(): Promise<void>;
  /** Delivery counts of the points it was given. */
  counts?(): DeliveryCounts;
}

/** Phase of a workflow; milliseconds since the epoch. */
export interface WorkflowPhase {
  readonly workflow: string;
  readonly name: "prepare" | "set-up" | "load" | "tear-down";
  readonly fromMs: number;
  readonly toMs: number;
  /** Reason of a failure; null when it succeeded. */
  readonly problem: string | null;
  /** Stages of the load as planned. */
  readonly stages: readonly {
    readonly name: string;
    readonly fromMs: number;
    readonly toMs: number;
  }[];
}

/** Sampled calls of one executor core, chosen at random. */
export interface SampledCalls {
  /** Lines of JSON, one for each. */
  readonly text: string;
  readonly calls: number;
  /** Sampled and dropped. */
  readonly dropped: number;
}

export interface DeliveryCounts {
  readonly sent: number;
  readonly dropped: number;
  /** Nothing that was sent is acknowledged. */
  readonly unconfirmed?: true;
  /** Last problem, without secrets. */
  readonly problem: string | null;
}

/** Measurements up to a point in time, merged over all cores. */
export interface Frame {
  /** "interval": a stretch of the run. "summary": all of it, once, when it has finished. */
  readonly kind: "interval" | "summary";
  /** Milliseconds since the epoch: start of the run, and start and end of the interval. */
  readonly runBeganMs: number;
  readonly fromMs: number;
  readonly atMs: number;
  /** Labels of every point: `run`, `run_id` and the tags of the run. */
  readonly labels: Readonly<Record<string, string>>;
  readonly points: readonly Point[];
  /** Points dropped because the run has too many series. */
  readonly leftOut: number;
}

/** One measured value, identified by labels, scope and metric. */
export type Point = CounterPoint | GaugePoint | DistributionPoint;

export type PointScope = "run" | "workflow" | "step" | "metric";

interface PointName {
  readonly scope: PointScope;
  /** As in the columns of CSV: "bytes_in", "latency_ms". */
  readonly figure: string;
  readonly unit: FigureUnit;
  /** workflow, step, protocol and further identifying labels; never a URL. */
  readonly labels: Readonly<Record<string, string>>;
}

interface CounterPoint extends PointName {
  readonly kind: "counter";
  /** Since the run began. */
  readonly total: number;
  /** Since the previous frame. */
  readonly increment: number;
}

interface GaugePoint extends PointName {
  readonly kind: "gauge";
  readonly value: number;
}

interface DistributionPoint extends PointName {
  readonly kind: "distribution";
  /** Values of the frame's interval, with their sum. */
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
