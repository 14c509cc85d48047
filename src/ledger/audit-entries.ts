/** What a ledger node writes into its audit log, besides what the log of every job says. (AD-20.6) */

import type { JobCancellationRequested } from "../core/ledger/job/events.ts";
import type { LedgerAnswer, LedgerRequest } from "../core/ledger/node/messages.ts";
import type { AuditEvent, AuditRequester } from "../host/ports/audit.ts";

/** Null for all that is no cancel. */
export function cancelOf(request: LedgerRequest): JobCancellationRequested | null {
  if (request.kind !== "append" || request.event.kind !== "JobCancellationRequested") return null;
  return request.event;
}

/** A cancel, once it is known what became of it. */
export function cancelEntry(
  { jobId, eventId, reason, requestor }: JobCancellationRequested,
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
