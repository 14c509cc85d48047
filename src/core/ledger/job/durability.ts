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

/** What losing each event would cost. One datacenter decides on acceptance; progress comes again. (DUR-1, DUR-3) */
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
  // Whoever reported it may let go of it then.
  JobDcResult: "GLOBAL",
};

export function atLeast(level: Durability, required: Durability): boolean {
  return DURABILITY_LEVELS[level] >= DURABILITY_LEVELS[required];
}

/** What an event must reach. Callers may raise the level and never lower it. (DUR-1) */
export function durabilityOfEvent(kind: JobEventKind, asked: Durability = "NONE"): Durability {
  const required = EVENT_DURABILITY[kind];
  return atLeast(required, asked) ? required : asked;
}
