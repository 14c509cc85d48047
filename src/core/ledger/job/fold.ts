/**
 * The state of a job as the fold of its committed events, the same on every replica. (EVT-1, EVT-4)
 *
 *         Queued      Dispatched      Accepted      Started      Paused
 *     CREATED ─> QUEUED ──> DISPATCHED ──> ACCEPTED ──> RUNNING <──────> PAUSED
 *        │                                    └─────┬──────┴───────────────┘
 *        │                                          ├─ Completed ─────> COMPLETED
 *        ├─ Failed, TimedOut, at any time ──────────┴─────────────────> FAILED, TIMED_OUT
 *        └─ CancellationRequested, Aborted ──> CANCELLING ────────────> CANCELLED
 *                                              all datacenters acked, or completed, or timed out
 *
 * Intermediate steps may be skipped up to ACCEPTED, and a job may be queued again until it has started; the events of a
 * run are judged in `run-fold.ts`.
 *
 * Total: every event has an outcome in every state. An illegal one is recorded as rejected with its reason and changes
 * nothing else. A terminal status never changes. Once a cancel is committed nothing starts or resumes work (LEDG-7). A
 * second event with the same id changes nothing, wherever it comes (EVT-2): the trail has the outcomes of the latest
 * events, and the ids of the older ones. A job with too many events to remember accepts only its end.
 *
 * The chain hashes every committed event onto the hash before it: two replicas with equal (seq, chain) have folded the
 * same history. (AE-3)
 */

import { assert } from "../../base/assert.ts";
import { compareHlc, type Hlc } from "../../base/hlc.ts";
import { sha256 } from "../../base/sha256.ts";
import { failureAt } from "./condition.ts";
import { encodeEvent } from "./event-codec.ts";
import type {
  JobAccepted,
  JobCancellationRequested,
  JobCreated,
  JobEvent,
  JobEventKind,
} from "./events.ts";
import { isForgotten, isFull } from "./forgotten.ts";
import {
  type Cancellation,
  CHAIN_BYTES,
  isTerminal,
  type JobEnd,
  type JobState,
  type JobStatus,
} from "./job-state.ts";
import { JOB_DCS_MAX } from "./limits.ts";
import { judgeRun } from "./run-fold.ts";
import { addToTrail, findInTrail, type TrailEntry } from "./trail.ts";
import { applied, type EventOutcome, isNewer, NOOP, rejected, type Verdict } from "./verdict.ts";

interface Applied {
  readonly state: JobState;
  readonly outcome: EventOutcome;
}

/** Folds the event committed at `seq`, which must be above everything folded before. */
export function applyEvent(
  state: JobState,
  event: JobEvent,
  seq: number,
  /** The event as the log holds it, where it is at hand: encoding it again costs as much as the fold. */
  bytes: Uint8Array = encodeEvent(event),
): Applied {
  assertNextPlace(state, seq);
  const chain = chainAfter(state.chain, bytes);
  const first = findInTrail(state.trail, event.eventId);
  if (first !== undefined) {
    return {
      state: { ...state, appliedSeq: seq, chain },
      outcome: { kind: "duplicate", first },
    };
  }
  if (isForgotten(state.trail.forgotten, event.eventId)) {
    return { state: { ...state, appliedSeq: seq, chain }, outcome: { kind: "repeated" } };
  }
  if (!isRepeatable(event.kind) && isFull(state.trail.forgotten)) {
    return {
      state: { ...state, appliedSeq: seq, chain },
      outcome: { kind: "rejected", reason: "TOO_MANY_EVENTS" },
    };
  }
  const failure = failureAt(state.changedSeq, event, seq);
  const { change, outcome } = failure === null ? judge(state, event) : rejected(failure);
  const { eventId, fenceToken, hlc, kind } = event;
  const reason = outcome.kind === "rejected" ? outcome.reason : null;
  const entry: TrailEntry = { seq, eventId, kind, hlc, outcome: outcome.kind, reason };
  return {
    // Spelled out: spreading two objects of changing shapes costs more than the rest of the fold.
    state: {
      jobId: state.jobId,
      status: change.status ?? state.status,
      spec: change.spec ?? state.spec,
      assignedDcs: change.assignedDcs ?? state.assignedDcs,
      accepted: change.accepted ?? state.accepted,
      run: change.run ?? state.run,
      cancellation: change.cancellation ?? state.cancellation,
      end: change.end ?? state.end,
      endedAt: change.endedAt ?? state.endedAt,
      fenceToken: Math.max(state.fenceToken, fenceToken),
      hlc: state.hlc === null || compareHlc(hlc, state.hlc) > 0 ? hlc : state.hlc,
      appliedSeq: seq,
      changedSeq: outcome.kind === "applied" ? seq : state.changedSeq,
      chain,
      trail: addToTrail(state.trail, entry),
    },
    outcome,
  };
}

/** A place of the log that holds no job event (a take-over's no-op, a reconfiguration). */
export function advanceSeq(state: JobState, seq: number): JobState {
  assertNextPlace(state, seq);
  return { ...state, appliedSeq: seq };
}

function assertNextPlace({ appliedSeq }: JobState, seq: number): void {
  assert(Number.isSafeInteger(seq), "a place in the log is a whole number");
  assert(seq > appliedSeq, "a place of the log is folded once, in order");
}

function chainAfter(chain: Uint8Array, event: Uint8Array): Uint8Array {
  const linked = new Uint8Array(CHAIN_BYTES + event.length);
  linked.set(chain);
  linked.set(event, CHAIN_BYTES);
  return sha256(linked);
}

/**
 * Whether a repetition of the event changes nothing, even under a new event id. True for events that lead to a job's
 * end.
 */
function isRepeatable(kind: JobEventKind): boolean {
  switch (kind) {
    case "JobCancellationRequested":
    case "JobCancellationAcked":
    case "JobCompleted":
    case "JobFailed":
    case "JobTimedOut":
    case "JobAborted":
    case "JobDcResult":
      return true;
    default:
      return false;
  }
}

/** Whether the event is a request whose caller learns when it arrives too late. */
function isOrder(kind: JobEventKind): boolean {
  switch (kind) {
    case "JobCancellationRequested":
    case "JobAborted":
    case "JobPaused":
    case "JobResumed":
    case "JobScaled":
      return true;
    default:
      return false;
  }
}

/** The table of states and events. */
function judge(state: JobState, event: JobEvent): Verdict {
  const { status } = state;
  if (event.jobId !== state.jobId) return rejected("OTHER_JOB");
  if (event.kind === "JobProgressReported") return rejected("DATA_PLANE_EVENT");
  if (event.kind === "JobCreated") {
    return status === "ABSENT" ? create(event) : rejected("ALREADY_CREATED");
  }
  if (status === "ABSENT") return rejected("JOB_ABSENT");
  if (isTerminal(status))
    return isOrder(event.kind)
      ? { change: {}, outcome: { kind: "alreadyTerminal", status } }
      : NOOP;
  if (status === "CANCELLING") return judgeCancelling(state, event);
  switch (event.kind) {
    case "JobAccepted":
      return accept(state, event, state.run.started === null ? "ACCEPTED" : status);
    case "JobCancellationRequested":
      return cancel(event);
    case "JobCancellationAcked":
      return rejected("NOT_CANCELLING");
    case "JobCompleted": {
      if (state.accepted.length === 0) return rejected("NOT_ACCEPTED");
      const { finalStatus, aggregateMetrics } = event;
      return ended("COMPLETED", event.hlc, { kind: "completed", finalStatus, aggregateMetrics });
    }
    case "JobFailed": {
      const { error, failedDc } = event;
      return ended("FAILED", event.hlc, { kind: "failed", error, failedDc });
    }
    case "JobTimedOut": {
      const { timeoutType, lastProgressHlc } = event;
      return ended("TIMED_OUT", event.hlc, { kind: "timedOut", timeoutType, lastProgressHlc });
    }
    default:
      return judgeRun(state, event);
  }
}

/** While cancelling every road leads to CANCELLED. (LEDG-7) */
function judgeCancelling(
  state: JobState,
  event: Exclude<JobEvent, { kind: "JobCreated" | "JobProgressReported" }>,
): Verdict {
  switch (event.kind) {
    case "JobAccepted":
      return accept(state, event, "CANCELLING");
    case "JobCancellationRequested":
      return NOOP;
    case "JobCancellationAcked":
      return ack(state, event.dcId, event.workflowsCancelled, event.hlc);
    case "JobFailed":
      return ack(state, event.failedDc, 0, event.hlc);
    case "JobTimedOut":
      return cancelled(event.hlc, unackedDcs(state.assignedDcs, cancellationOf(state)));
    case "JobCompleted":
      return cancelled(event.hlc, []);
    default:
      return judgeRun(state, event);
  }
}

function create(event: JobCreated): Verdict {
  return applied({ status: "CREATED", spec: event.spec, assignedDcs: event.assignedDcs });
}

/**
 * The datacenter is noted with its workers. One that was not assigned joins the assigned ones, so that a
 * cancellation waits for it too. Of two acceptances of one datacenter the higher fence and time stands.
 */
function accept(state: JobState, event: JobAccepted, status: JobStatus): Verdict {
  const { dcId, fenceToken, hlc, workerCount } = event;
  const known = state.accepted.find((one) => one.dcId === dcId);
  if (known !== undefined && !isNewer(event, known)) return NOOP;
  const isAssigned = state.assignedDcs.includes(dcId);
  if (!isAssigned && state.assignedDcs.length >= JOB_DCS_MAX) return rejected("TOO_MANY_DCS");
  const others = state.accepted.filter((one) => one !== known);
  return applied({
    status,
    assignedDcs: isAssigned ? state.assignedDcs : [...state.assignedDcs, dcId],
    accepted: [...others, { dcId, workerCount, fenceToken, hlc }],
  });
}

function cancel({ eventId, reason, requestor }: JobCancellationRequested): Verdict {
  return applied({
    status: "CANCELLING",
    cancellation: { eventId, reason, requestor, ackedDcs: [], workflowsCancelled: 0 },
  });
}

function ack(state: JobState, dcId: string, workflows: number, hlc: Hlc): Verdict {
  const before = cancellationOf(state);
  if (!state.assignedDcs.includes(dcId) || before.ackedDcs.includes(dcId)) return NOOP;
  const cancellation: Cancellation = {
    ...before,
    ackedDcs: [...before.ackedDcs, dcId],
    workflowsCancelled: Math.min(before.workflowsCancelled + workflows, Number.MAX_SAFE_INTEGER),
  };
  if (unackedDcs(state.assignedDcs, cancellation).length > 0) return applied({ cancellation });
  return applied({ cancellation, ...cancelled(hlc, []).change });
}

function cancelled(hlc: Hlc, unacked: readonly string[]): Verdict {
  return ended("CANCELLED", hlc, { kind: "cancelled", unackedDcs: unacked });
}

function ended(status: JobStatus, endedAt: Hlc, end: JobEnd): Verdict {
  return applied({ status, endedAt, end });
}

function unackedDcs(assigned: readonly string[], { ackedDcs }: Cancellation): readonly string[] {
  return assigned.filter((dc) => !ackedDcs.includes(dc));
}

function cancellationOf(state: JobState): Cancellation {
  assert(state.cancellation !== null, "a job that is being cancelled knows its cancellation");
  return state.cancellation;
}
