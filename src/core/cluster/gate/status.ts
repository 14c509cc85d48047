/** Maps the ledger state of a job to the status shown to its submitter. */

import { ByteReader } from "../../base/bytes.ts";
import { readPlain } from "../../base/plain-value.ts";
import { parseJobId } from "../../ledger/job/job-id.ts";
import { type DcResult, isTerminal, type JobState } from "../../ledger/job/job-state.ts";
import { trailEntries } from "../../ledger/job/trail.ts";
import { ENDED_STATUSES, type JobStatus } from "../messages.ts";

/** Requestor of a threshold abort; no client may use this name. */
export const THRESHOLDS = "thresholds";
/** Final status of an abandoned datacenter. */
export const LOST = "LOST";
/** Length limit of human-readable texts in a job's log. */
export const REASON_CHARACTERS_MAX = 300;

export function statusOf(state: JobState): JobStatus {
  switch (state.status) {
    case "ABSENT":
    case "CREATED":
    case "QUEUED":
      return "QUEUED";
    case "DISPATCHED":
    case "ACCEPTED":
      return "STARTING";
    case "RUNNING":
    case "PAUSED":
    case "CANCELLING":
      return state.status;
    case "FAILED":
    case "TIMED_OUT":
      return "FAILED";
    case "CANCELLED":
      // A threshold ends a run early; the outcome is in its summary.
      return isThresholdAbort(state) ? finalStatusOf(state) : "CANCELLED";
    case "COMPLETED": {
      const final = state.end?.kind === "completed" ? state.end.finalStatus : "";
      return ENDED_STATUSES.find((one) => one === final) ?? "COMPLETED";
    }
  }
}

/** Whether a threshold aborted the job. */
export function isThresholdAbort({ cancellation }: JobState): boolean {
  return cancellation?.requestor === THRESHOLDS;
}

/** Reason why the job finished; null while it is open, or if there is nothing to explain. */
export function reasonOf(state: JobState): string | null {
  const { cancellation, end } = state;
  switch (end?.kind) {
    case undefined:
      return null;
    case "completed": {
      const from = new ByteReader(end.aggregateMetrics);
      const decoded = readPlain(from);
      const reason =
        typeof decoded === "object" && decoded !== null && "reason" in decoded && decoded.reason;
      return !from.failed && typeof reason === "string" ? reason : null;
    }
    case "failed":
      return end.error;
    case "timedOut":
      return "no cores were free within its limit of time";
    case "cancelled": {
      const reason = cancellation?.reason ?? null;
      return reason === null ? null : [reason, ...partsToName(state)].join("; ");
    }
  }
}

/** Parts that a cancelled job should name: metrics of lost parts are missing. */
function partsToName(state: JobState): readonly string[] {
  if (!isThresholdAbort(state)) return lostParts(state);
  return state.run.results.flatMap((result) => {
    const status = partStatus(state, result);
    return status === "COMPLETED" ? [] : [`${result.dcId}: ${status}`];
  });
}

function lostParts({ run }: JobState): readonly string[] {
  const lost = run.results.filter((one) => one.finalStatus === LOST).map(({ dcId }) => dcId);
  return lost.length === 0 ? [] : [`${lost.join(", ")}: lost`];
}

/** A part that a threshold ended with a result counts as completed. */
function partStatus(state: JobState, { bytes, finalStatus }: DcResult): string {
  if (finalStatus !== "CANCELLED" || !isThresholdAbort(state)) return finalStatus;
  return bytes > 0 ? "COMPLETED" : LOST;
}

/** Reason of the end from the reasons of its datacenters; null if there is nothing to explain. */
export function reasonOfEnd(
  state: JobState,
  parts: readonly { readonly datacenter: string; readonly why: string | null }[],
): string | null {
  const areSeveral = (state.run.started?.shares ?? []).length > 1;
  const reasons = parts.flatMap(({ datacenter, why }) => {
    return why === null ? [] : [areSeveral ? `${datacenter}: ${why}` : why];
  });
  reasons.push(...lostParts(state));
  if (finalStatusOf(state) === "COMPLETED" || reasons.length === 0) return null;
  return reasons.join("; ").slice(0, REASON_CHARACTERS_MAX);
}

/** Final status of the whole job from those of its parts. */
export function finalStatusOf(state: JobState): JobStatus {
  const all = state.run.results.map((result) => partStatus(state, result));
  if (all.every((one) => one === "COMPLETED")) return "COMPLETED";
  if (all.every((one) => one === "CANCELLED")) return "CANCELLED";
  if (all.includes("TIMED_OUT")) return "TIMED_OUT";
  return all.every((one) => one === "FAILED" || one === LOST) ? "FAILED" : "PARTIAL";
}

export function hasJobEnded({ status }: JobState): boolean {
  return isTerminal(status);
}

/** Wall-clock milliseconds, from the job id. */
export function createdAtOf({ jobId }: JobState): number {
  return parseJobId(jobId)?.timestampMs ?? 0;
}

/**
 * Number of the next dispatched part, unique over all choices: a count while the log has all dispatches, then the
 * length of the log, which is larger.
 */
export function nextAttempt({ appliedSeq, trail }: JobState): number {
  if (trail.forgotten.length > 0) return appliedSeq + 1;
  return 1 + [...trailEntries(trail)].filter(({ kind }) => kind === "JobDispatched").length;
}
