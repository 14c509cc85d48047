/** What a ledger node writes into its audit log, besides what the log of every job says. (AD-20.6) */

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
