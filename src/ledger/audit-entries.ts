/** Entries of a ledger node's audit log, in addition to the log of every job. (AD-20.6) */

import type { Steered } from "../core/cluster/node/steering.ts";
import type { JobAborted, JobCancellationRequested } from "../core/ledger/job/events.ts";
import type { LedgerAnswer, LedgerRequest } from "../core/ledger/node/messages.ts";
import type { AuditEvent, AuditRequester } from "../host/ports/audit.ts";

type Cancel = JobCancellationRequested | JobAborted;

/** Null for all that ends no job. */
export function cancelOf(request: LedgerRequest): Cancel | null {
  if (request.kind !== "append") return null;
  const { event } = request;
  const cancels = event.kind === "JobCancellationRequested" || event.kind === "JobAborted";
  return cancels ? event : null;
}

/** A cancel, once it is known what became of it. */
export function cancelEntry(
  { jobId, eventId, reason, requestor }: Cancel,
  answer: LedgerAnswer,
  requester: AuditRequester,
): AuditEvent {
  const detail = { requestor, reason, eventId, outcome: outcomeOf(answer) };
  return { kind: "job.cancelled", subject: jobId, requester, detail };
}

function outcomeOf(answer: LedgerAnswer): string {
  if (answer.kind === "committed") return answer.outcome;
  return answer.kind === "refused" ? answer.code : answer.kind;
}

const STEERED = {
  submitted: "job.submitted",
  controlled: "job.controlled",
  drained: "node.drained",
  removed: "node.removed",
} as const;

/** Recorded when the request is admitted; its result is in the history of the job. */
export function steeringEntry({ client, detail, subject, what }: Steered): AuditEvent {
  const requester = { kind: "client", name: client, credential: "clients' secret" } as const;
  return { kind: STEERED[what], subject, requester, detail };
}

/** A job or an event of one, written over the interface; null for what changes nothing, or is a cancel. */
export function writeEntry(
  request: LedgerRequest,
  answer: LedgerAnswer,
  requester: AuditRequester,
): AuditEvent | null {
  if (request.kind === "submit") {
    const detail = { bytes: request.spec.length, outcome: outcomeOf(answer) };
    return { kind: "job.submitted", subject: jobOf(answer) ?? request.key, requester, detail };
  }
  if (request.kind !== "append" || cancelOf(request) !== null) return null;
  const { eventId, jobId, kind } = request.event;
  const detail = { event: kind, eventId, outcome: outcomeOf(answer) };
  return { kind: "job.event", subject: jobId, requester, detail };
}

/** One entry per connection: a program may write thousands of events a second. Null when it only read. */
export function streamEntry(
  node: string,
  written: { readonly submits: number; readonly events: number },
  requester: AuditRequester,
): AuditEvent | null {
  if (written.submits + written.events === 0) return null;
  return { kind: "ledger.written", subject: node, requester, detail: written };
}

function jobOf(answer: LedgerAnswer): string | null {
  if (answer.kind !== "submitted" || answer.answer.kind !== "accepted") return null;
  return answer.answer.jobId;
}
