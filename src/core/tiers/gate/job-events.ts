/**
 * What happened to a job, as the gates' ledger has it. The ledger keeps of an event what it was, when and what
 * became of it; who asked for it and under which view stands in its id.
 *
 *     g1 / 7c9e6679-7425 / 12 / 3 / ada         gate / its process / number / view / who asked
 */

import type { EventId } from "../../ledger/job/events.ts";
import type { JobState } from "../../ledger/job/job-state.ts";
import { EVENT_ID_BYTES_MAX } from "../../ledger/job/limits.ts";
import { type TrailEntry, trailEntries } from "../../ledger/job/trail.ts";
import type { JobEventView } from "../messages.ts";

interface EventIdParts {
  readonly gate: string;
  /** Of the gate's process. */
  readonly boot: string;
  readonly number: number;
  /** Of the leader; 0 when anybody may ask for it. */
  readonly view: number;
  /** Empty: the gate itself. */
  readonly requestor: string;
}

export function eventIdOf({ boot, gate, number, requestor, view }: EventIdParts): EventId {
  const head = `${gate}/${boot}/${number}/${view}/`;
  // What is no plain character may take three bytes; a name is shown, and compared with nothing.
  const who = requestor.replace(/[^ -~]/g, "?").slice(0, EVENT_ID_BYTES_MAX - head.length);
  return `${head}${who}` as EventId;
}

/** In order. */
export function ledgerEvents(state: JobState): readonly JobEventView[] {
  return [...trailEntries(state.trail)]
    .filter(({ outcome }) => outcome === "applied")
    .map((entry) => ({
      ...{ at: entry.hlc.wallMs, kind: entry.kind, ...writerOf(entry), datacenter: "" },
      text: textOf(entry, state),
    }));
}

function writerOf({ eventId, hlc }: TrailEntry): Pick<JobEventView, "who" | "token"> {
  const [, view = "", requestor = ""] = /^[^/]+\/[^/]+\/\d+\/(\d+)\/(.*)$/.exec(eventId) ?? [];
  const token = view === "" || view === "0" ? null : Number(view);
  return { who: requestor === "" ? hlc.node : requestor, token };
}

/** What the state still knows about it. */
function textOf({ eventId, kind }: TrailEntry, { cancellation, end, run }: JobState): string {
  switch (kind) {
    case "JobDispatched":
      return run.dispatched.map(({ cores, dcId }) => `${dcId}: ${cores} cores`).join(", ");
    case "JobStarted":
      return run.started?.shares.map(({ dcId }) => dcId).join(", ") ?? "";
    case "JobCancellationRequested":
      return cancellation?.eventId === eventId ? cancellation.reason : "";
    case "JobDcResult":
      return run.results.map(({ dcId, finalStatus }) => `${dcId}: ${finalStatus}`).join(", ");
    case "JobCompleted":
      return end?.kind === "completed" ? end.finalStatus : "";
    case "JobFailed":
      return end?.kind === "failed" ? end.error : "";
    default:
      return "";
  }
}
