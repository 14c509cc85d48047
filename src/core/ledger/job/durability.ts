/**
 * How durable each operation must be before its caller hears "done": as much as losing it would cost.
 *
 *     GLOBAL    job lifecycle          survives the loss of a region
 *     REGIONAL  workflow lifecycle     survives the loss of a node
 *     LOCAL     progress               survives the crash of the process
 *     NONE      statistics, metrics    may be lost
 */

import type { JobEventKind } from "./events.ts";

export type Durability = "NONE" | "LOCAL" | "REGIONAL" | "GLOBAL";

/** The numbers on disk and on the wire. */
export const DURABILITY_LEVELS: Readonly<Record<Durability, number>> = {
  NONE: 0,
  LOCAL: 1,
  REGIONAL: 2,
  GLOBAL: 3,
};

export type Operation =
  | "jobCreate"
  | "jobCancel"
  | "jobComplete"
  | "jobFail"
  | "jobTimeout"
  | "jobAccept"
  | "workflowDispatch"
  | "workflowComplete"
  | "workflowCancel"
  | "progressUpdate"
  | "statsReport"
  | "metricsStream";

/** (DUR-1, DUR-3). Acceptance is a datacenter's own word and lives in the regional tier. */
export const OPERATION_DURABILITY: Readonly<Record<Operation, Durability>> = {
  jobCreate: "GLOBAL",
  jobCancel: "GLOBAL",
  jobComplete: "GLOBAL",
  jobFail: "GLOBAL",
  jobTimeout: "GLOBAL",
  jobAccept: "REGIONAL",
  workflowDispatch: "REGIONAL",
  workflowComplete: "REGIONAL",
  workflowCancel: "REGIONAL",
  progressUpdate: "LOCAL",
  statsReport: "NONE",
  metricsStream: "NONE",
};

/** The operation an event records. An acked cancellation can be the job's end, so it counts as one. */
export const EVENT_OPERATION: Readonly<Record<JobEventKind, Operation>> = {
  JobCreated: "jobCreate",
  JobAccepted: "jobAccept",
  JobProgressReported: "progressUpdate",
  JobCancellationRequested: "jobCancel",
  JobCancellationAcked: "jobCancel",
  JobCompleted: "jobComplete",
  JobFailed: "jobFail",
  JobTimedOut: "jobTimeout",
};

export function atLeast(level: Durability, required: Durability): boolean {
  return DURABILITY_LEVELS[level] >= DURABILITY_LEVELS[required];
}

export function higher(a: Durability, b: Durability): Durability {
  return atLeast(a, b) ? a : b;
}

/** What an operation must reach. Callers may raise the level and never lower it. (DUR-1) */
export function requiredDurability(operation: Operation, asked: Durability = "NONE"): Durability {
  return higher(OPERATION_DURABILITY[operation], asked);
}

export function durabilityOfEvent(kind: JobEventKind, asked: Durability = "NONE"): Durability {
  return requiredDurability(EVENT_OPERATION[kind], asked);
}
