/**
 * How durable each event must be before its caller is answered, by what losing it would cost.
 *
 *     GLOBAL    a job's beginning and end   survives the loss of a region
 *     REGIONAL  acceptance                  survives the loss of a node
 *     LOCAL     progress                    survives the crash of the process
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

/**
 * Durability required by each event, by the cost of losing it. Acceptance is decided by one datacenter; progress is
 * reported repeatedly. (DUR-1, DUR-3)
 */
const EVENT_DURABILITY: Readonly<Record<JobEventKind, Durability>> = {
  JobCreated: "GLOBAL",
  JobAccepted: "REGIONAL",
  JobProgressReported: "LOCAL",
  JobCancellationRequested: "GLOBAL",
  // The last one can be the job's end.
  JobCancellationAcked: "GLOBAL",
  JobCompleted: "GLOBAL",
  JobFailed: "GLOBAL",
  JobTimedOut: "GLOBAL",
  JobQueued: "REGIONAL",
  JobDispatched: "REGIONAL",
  JobSetUpValue: "REGIONAL",
  // After it no other datacenters may be chosen, and an abort must not be forgotten.
  JobStarted: "GLOBAL",
  JobAborted: "GLOBAL",
  JobPaused: "REGIONAL",
  JobResumed: "REGIONAL",
  JobScaled: "REGIONAL",
  // The reporter may discard the result once it is global.
  JobDcResult: "GLOBAL",
};

export function atLeast(level: Durability, required: Durability): boolean {
  return DURABILITY_LEVELS[level] >= DURABILITY_LEVELS[required];
}

/** Returns the durability an event must reach. Callers may raise the level but never lower it. (DUR-1) */
export function durabilityOfEvent(kind: JobEventKind, asked: Durability = "NONE"): Durability {
  const required = EVENT_DURABILITY[kind];
  return atLeast(required, asked) ? required : asked;
}
