/**
 * Events that make up a job's history. A stored event is never rewritten; the state of a job is the fold of its events
 * in log order (`fold.ts`). (EVT-1)
 *
 *     JobCreated ─ JobQueued ─ JobDispatched ─ JobAccepted ─ JobStarted ─ JobDcResult ─ JobCompleted
 *          │                                                 └ JobPaused, JobResumed, JobScaled
 *          ├── JobFailed, JobTimedOut
 *          └── JobCancellationRequested or JobAborted ── JobCancellationAcked per datacenter
 *
 * Every event carries its job, its own id (a second event with that id changes nothing, EVT-2), the fence token of its
 * writer, and its time. `JobProgressReported` belongs to the data plane: it may be kept locally and never enters the
 * replicated log (EVT-3).
 */

import { assertNever } from "../../base/assert.ts";
import type { Brand } from "../../base/brand.ts";
import { encodeUtf8 } from "../../base/bytes.ts";
import { HLC_LOGICAL_MAX, HLC_WALL_MS_MAX, type Hlc } from "../../base/hlc.ts";
import { NODE_ID_BYTES_MAX } from "../../base/ids.ts";
import type { Condition } from "./condition.ts";
import type { JobId } from "./job-id.ts";
import * as limits from "./limits.ts";

/** Idempotency id created by the submitter, one per intended change; a retry reuses it. */
export type EventId = Brand<string, "EventId">;

interface EventHead {
  readonly jobId: JobId;
  readonly eventId: EventId;
  /** The view (gates) or the token received with the dispatch (managers). (C50-26) */
  readonly fenceToken: number;
  readonly hlc: Hlc;
  /** Precondition checked at the event's log index; without one the event always applies. */
  readonly condition?: Condition;
}

export interface JobCreated extends EventHead {
  readonly kind: "JobCreated";
  /** Opaque here: what to run is the workflow's affair. */
  readonly spec: Uint8Array;
  readonly assignedDcs: readonly string[];
}

export interface JobAccepted extends EventHead {
  readonly kind: "JobAccepted";
  readonly dcId: string;
  readonly workerCount: number;
}

interface JobProgressReported extends EventHead {
  readonly kind: "JobProgressReported";
  readonly dcId: string;
  readonly completed: number;
  readonly failed: number;
}

export interface JobCancellationRequested extends EventHead {
  readonly kind: "JobCancellationRequested";
  readonly reason: string;
  /** Identity of the requestor; kept for the audit. (G-19) */
  readonly requestor: string;
}

interface JobCancellationAcked extends EventHead {
  readonly kind: "JobCancellationAcked";
  readonly dcId: string;
  readonly workflowsCancelled: number;
}

interface JobCompleted extends EventHead {
  readonly kind: "JobCompleted";
  readonly finalStatus: string;
  readonly aggregateMetrics: Uint8Array;
}

interface JobFailed extends EventHead {
  readonly kind: "JobFailed";
  readonly error: string;
  readonly failedDc: string;
}

interface JobTimedOut extends EventHead {
  readonly kind: "JobTimedOut";
  readonly timeoutType: string;
  /** Null: no progress was ever seen. */
  readonly lastProgressHlc: Hlc | null;
}

/** No capacity for it now; its reservations are released. */
interface JobQueued extends EventHead {
  readonly kind: "JobQueued";
  readonly reason: string;
}

/** A datacenter was asked to reserve cores and to prepare; nothing runs yet. */
export interface JobDispatched extends EventHead {
  readonly kind: "JobDispatched";
  readonly dcId: string;
  readonly cores: number;
  /** How often this datacenter was asked, from 1. */
  readonly attempt: number;
  /** Digest of the content the datacenter was given to run. */
  readonly digest: Uint8Array;
}

/** Value returned by the set-up of a workflow; once per workflow of a job. */
export interface JobSetUpValue extends EventHead {
  readonly kind: "JobSetUpValue";
  readonly workflow: string;
  readonly value: Uint8Array;
}

export interface Share {
  readonly dcId: string;
  readonly cores: number;
}

/** From here on the datacenters are these: load begins at the instant. */
export interface JobStarted extends EventHead {
  readonly kind: "JobStarted";
  /** Wall-clock milliseconds. */
  readonly startAtMs: number;
  /** Digest of the plan that the shares belong to. */
  readonly planDigest: Uint8Array;
  readonly shares: readonly Share[];
}

interface JobPaused extends EventHead {
  readonly kind: "JobPaused";
  readonly requestor: string;
}

interface JobResumed extends EventHead {
  readonly kind: "JobResumed";
  readonly requestor: string;
}

export interface JobScaled extends EventHead {
  readonly kind: "JobScaled";
  /** Load in permille of the plan: 1,000 is as planned. */
  readonly permille: number;
  readonly requestor: string;
}

/** Like a cancellation, without grace: what runs is ended at once. */
export interface JobAborted extends EventHead {
  readonly kind: "JobAborted";
  readonly reason: string;
  readonly requestor: string;
}

/** A datacenter has finished. Its metrics are stored elsewhere, under their digest. */
export interface JobDcResult extends EventHead {
  readonly kind: "JobDcResult";
  readonly dcId: string;
  readonly finalStatus: string;
  readonly digest: Uint8Array;
  /** Size of the content that the digest names. */
  readonly bytes: number;
  readonly completed: number;
  readonly failed: number;
}

/** Events between a job's creation and its end, written by the node that runs it. */
export type RunEvent =
  | JobQueued
  | JobDispatched
  | JobSetUpValue
  | JobStarted
  | JobPaused
  | JobResumed
  | JobScaled
  | JobAborted
  | JobDcResult;

export type JobEvent =
  | JobCreated
  | JobAccepted
  | JobProgressReported
  | JobCancellationRequested
  | JobCancellationAcked
  | JobCompleted
  | JobFailed
  | JobTimedOut
  | RunEvent;

export type JobEventKind = JobEvent["kind"];

/** The numbers of events on disk and on the wire, without gaps. Never used again for something else. */
export const EVENT_TYPES: Readonly<Record<JobEventKind, number>> = {
  JobCreated: 1,
  JobAccepted: 2,
  JobProgressReported: 3,
  JobCancellationRequested: 4,
  JobCancellationAcked: 5,
  JobCompleted: 6,
  JobFailed: 7,
  JobTimedOut: 8,
  JobQueued: 9,
  JobDispatched: 10,
  JobSetUpValue: 11,
  JobStarted: 12,
  JobPaused: 13,
  JobResumed: 14,
  JobScaled: 15,
  JobAborted: 16,
  JobDcResult: 17,
};

export const EVENT_KINDS = Object.keys(EVENT_TYPES) as readonly JobEventKind[];

/** Whether events of this kind go through the replicated log. (EVT-3) */
export function isReplicated(kind: JobEventKind): boolean {
  return kind !== "JobProgressReported";
}

/** Whether an event asks for load to stop. */
export function isCancel({ kind }: JobEvent): boolean {
  return kind === "JobCancellationRequested" || kind === "JobAborted";
}

/** Returns what is wrong with an event from outside, as a message for its sender, or null if it may be logged. */
export function problemOf(event: JobEvent): string | null {
  return problemOfHead(event) ?? problemOfBody(event);
}

/** Why nothing can be called so; null when a job may be. */
export function jobIdProblem(jobId: string): string | null {
  return textProblem("jobId", jobId, 1, limits.JOB_ID_BYTES_MAX);
}

function problemOfHead({
  jobId,
  eventId,
  fenceToken,
  hlc,
  condition,
  kind,
}: JobEvent): string | null {
  return (
    jobIdProblem(jobId) ??
    textProblem("eventId", eventId, 1, limits.EVENT_ID_BYTES_MAX) ??
    countProblem("fenceToken", fenceToken) ??
    hlcProblem("hlc", hlc) ??
    (condition === undefined ? null : conditionProblem(kind, condition))
  );
}

function conditionProblem(kind: JobEventKind, { ifSeq, ifFence }: Condition): string | null {
  if (kind === "JobCreated") return "condition: a creation depends on nothing";
  if (!isReplicated(kind)) return "condition: only events of the replicated log can have one";
  if (ifSeq === null && ifFence === null) return "condition: neither ifSeq nor ifFence";
  return (
    (ifSeq === null ? null : countProblem("ifSeq", ifSeq)) ??
    (ifFence === null ? null : countProblem("ifFence", ifFence))
  );
}

function problemOfBody(event: JobEvent): string | null {
  switch (event.kind) {
    case "JobCreated":
      return (
        bytesProblem("spec", event.spec, limits.JOB_SPEC_BYTES_MAX) ??
        namesProblem("assignedDcs", event.assignedDcs)
      );
    case "JobAccepted":
      return dcProblem("dcId", event.dcId) ?? countProblem("workerCount", event.workerCount);
    case "JobProgressReported":
      return (
        dcProblem("dcId", event.dcId) ??
        countProblem("completed", event.completed) ??
        countProblem("failed", event.failed)
      );
    case "JobCancellationRequested":
      return (
        textProblem("reason", event.reason, 0, limits.REASON_BYTES_MAX) ??
        textProblem("requestor", event.requestor, 0, limits.REQUESTOR_BYTES_MAX)
      );
    case "JobCancellationAcked":
      return (
        dcProblem("dcId", event.dcId) ??
        countProblem("workflowsCancelled", event.workflowsCancelled)
      );
    case "JobCompleted":
      return (
        textProblem("finalStatus", event.finalStatus, 0, limits.FINAL_STATUS_BYTES_MAX) ??
        bytesProblem("aggregateMetrics", event.aggregateMetrics, limits.AGGREGATE_METRICS_BYTES_MAX)
      );
    case "JobFailed":
      return (
        textProblem("error", event.error, 0, limits.ERROR_BYTES_MAX) ??
        dcProblem("failedDc", event.failedDc)
      );
    case "JobTimedOut":
      return (
        textProblem("timeoutType", event.timeoutType, 0, limits.TIMEOUT_TYPE_BYTES_MAX) ??
        (event.lastProgressHlc && hlcProblem("lastProgressHlc", event.lastProgressHlc))
      );
    default:
      return problemOfRun(event);
  }
}

function problemOfRun(event: RunEvent): string | null {
  switch (event.kind) {
    case "JobQueued":
      return textProblem("reason", event.reason, 0, limits.REASON_BYTES_MAX);
    case "JobDispatched":
      return (
        dcProblem("dcId", event.dcId) ??
        countProblem("cores", event.cores) ??
        countProblem("attempt", event.attempt) ??
        digestProblem("digest", event.digest)
      );
    case "JobSetUpValue":
      return (
        textProblem("workflow", event.workflow, 1, limits.WORKFLOW_NAME_BYTES_MAX) ??
        bytesProblem("value", event.value, limits.SET_UP_VALUE_BYTES_MAX)
      );
    case "JobStarted":
      return (
        countProblem("startAtMs", event.startAtMs, HLC_WALL_MS_MAX) ??
        digestProblem("planDigest", event.planDigest) ??
        sharesProblem(event.shares)
      );
    case "JobPaused":
    case "JobResumed":
      return requestorProblem(event);
    case "JobScaled":
      return (
        countProblem("permille", event.permille, limits.PERMILLE_MAX) ?? requestorProblem(event)
      );
    case "JobAborted":
      return (
        textProblem("reason", event.reason, 0, limits.REASON_BYTES_MAX) ?? requestorProblem(event)
      );
    case "JobDcResult":
      return (
        dcProblem("dcId", event.dcId) ??
        textProblem("finalStatus", event.finalStatus, 0, limits.FINAL_STATUS_BYTES_MAX) ??
        digestProblem("digest", event.digest) ??
        countProblem("bytes", event.bytes) ??
        countProblem("completed", event.completed) ??
        countProblem("failed", event.failed)
      );
    default:
      return assertNever(event);
  }
}

function requestorProblem({ requestor }: { readonly requestor: string }): string | null {
  return textProblem("requestor", requestor, 0, limits.REQUESTOR_BYTES_MAX);
}

function digestProblem(field: string, digest: Uint8Array): string | null {
  if (digest.length === limits.DIGEST_BYTES) return null;
  return `${field}: ${digest.length} bytes where a SHA-256 has ${limits.DIGEST_BYTES}`;
}

function sharesProblem(shares: readonly Share[]): string | null {
  const problem = namesProblem(
    "shares",
    shares.map(({ dcId }) => dcId),
  );
  if (problem !== null) return problem;
  for (const { cores } of shares) {
    const wrong = countProblem("shares.cores", cores);
    if (wrong !== null) return wrong;
  }
  return null;
}

function hlcProblem(field: string, hlc: Hlc): string | null {
  return (
    countProblem(`${field}.wallMs`, hlc.wallMs, HLC_WALL_MS_MAX) ??
    countProblem(`${field}.logical`, hlc.logical, HLC_LOGICAL_MAX) ??
    textProblem(`${field}.node`, hlc.node, 1, NODE_ID_BYTES_MAX)
  );
}

function namesProblem(field: string, dcs: readonly string[]): string | null {
  if (dcs.length === 0) return `${field}: at least one datacenter must be named`;
  if (dcs.length > limits.JOB_DCS_MAX) {
    return `${field}: ${dcs.length} where at most ${limits.JOB_DCS_MAX} are allowed`;
  }
  if (new Set(dcs).size !== dcs.length) return `${field}: a datacenter is named twice`;
  for (const dc of dcs) {
    const problem = dcProblem(field, dc);
    if (problem !== null) return problem;
  }
  return null;
}

function dcProblem(field: string, dc: string): string | null {
  return textProblem(field, dc, 1, limits.DC_ID_BYTES_MAX);
}

function textProblem(field: string, text: string, min: number, max: number): string | null {
  // A UTF-16 unit is at most three bytes, so short texts need no encoding to know they fit.
  const size = text.length * 3 <= max ? text.length : encodeUtf8(text).length;
  if (size < min) return `${field}: must not be empty`;
  return size > max ? `${field}: ${size} bytes where at most ${max} are allowed` : null;
}

function bytesProblem(field: string, bytes: Uint8Array, max: number): string | null {
  if (bytes.length <= max) return null;
  return `${field}: ${bytes.length} bytes where at most ${max} are allowed`;
}

function countProblem(
  field: string,
  value: number,
  max: number = Number.MAX_SAFE_INTEGER,
): string | null {
  if (Number.isSafeInteger(value) && value >= 0 && value <= max) return null;
  return `${field}: ${value} is not a whole number from 0 to ${max}`;
}
