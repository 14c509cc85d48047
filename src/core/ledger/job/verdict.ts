/** Verdicts of the fold on an event. */

import { compareHlc, type Hlc } from "../../base/hlc.ts";
import type { ConditionFailure } from "./condition.ts";
import type { JobState, JobStatus } from "./job-state.ts";
import type { TrailEntry } from "./trail.ts";

type RejectReason =
  | ConditionFailure
  | "JOB_ABSENT"
  | "ALREADY_CREATED"
  | "NOT_CANCELLING"
  | "NOT_ACCEPTED"
  | "DATA_PLANE_EVENT"
  | "TOO_MANY_DCS"
  | "TOO_MANY_EVENTS"
  | "OTHER_JOB"
  | "BEING_CANCELLED"
  | "ALREADY_STARTED"
  | "NOT_DISPATCHED"
  | "NOT_STARTED"
  | "NOT_RUNNING"
  | "SET_UP_TWICE"
  | "TOO_MUCH_SET_UP";

export type EventOutcome =
  | { readonly kind: "applied" }
  | { readonly kind: "noop" }
  /** A repetition; `first` is the outcome of its first application. */
  | { readonly kind: "duplicate"; readonly first: TrailEntry }
  | { readonly kind: "rejected"; readonly reason: RejectReason }
  /** A repetition of an event so old that what became of it is not known any more. */
  | { readonly kind: "repeated" }
  /** A cancel of a job that has finished: recorded, and reported to the caller. */
  | { readonly kind: "alreadyTerminal"; readonly status: JobStatus };

export interface Verdict {
  readonly change: Partial<JobState>;
  readonly outcome: Exclude<EventOutcome, { kind: "duplicate" | "repeated" }>;
}

export const NOOP: Verdict = { change: {}, outcome: { kind: "noop" } };

export function applied(change: Partial<JobState>): Verdict {
  return { change, outcome: { kind: "applied" } };
}

export function rejected(reason: RejectReason): Verdict {
  return { change: {}, outcome: { kind: "rejected", reason } };
}

interface Written {
  readonly fenceToken: number;
  readonly hlc: Hlc;
}

/** Whether `event` supersedes `known`: the higher fence wins, then the later time. */
export function isNewer(event: Written, known: Written): boolean {
  if (event.fenceToken !== known.fenceToken) return event.fenceToken > known.fenceToken;
  return compareHlc(event.hlc, known.hlc) > 0;
}
