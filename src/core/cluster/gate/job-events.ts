/**
 * What happened to a job, as the gates' ledger has it. The ledger keeps of an event what it was, when and what
 * became of it; who asked for it and under which view stands in its id.
 *
 *     g1 / 7c9e6679-7425 / 12 / 3 / ada         gate / its process / number / view / who asked
 *     wish / 0b53f1b2-8b1e / 0 / 0 / ada        what a client may ask several gates for, once
 */

import type { EventId } from "../../ledger/job/events.ts";
import type { JobState } from "../../ledger/job/job-state.ts";
import { EVENT_ID_BYTES_MAX } from "../../ledger/job/limits.ts";
import { type TrailEntry, trailEntries } from "../../ledger/job/trail.ts";
import { formatCounted } from "../../load/results/format.ts";
import type { JobEventView } from "../messages.ts";
import { wishName } from "../wish.ts";
import { statusOf } from "./status.ts";

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

/** The same of every gate that a client asks: the ledger takes one of them. */
export function writerOfWish(wish: string): Pick<EventIdParts, "gate" | "boot" | "number"> {
  return { gate: "wish", boot: wishName(wish), number: 0 };
}

/** In order. */
export function ledgerEvents(state: JobState): readonly JobEventView[] {
  const places = datacentersOfEvents(state);
  return appliedEntries(state).map((entry) => ({
    ...{ at: entry.hlc.wallMs, kind: entry.kind, ...writerOf(entry), datacenter: "" },
    text: textOf(entry, state, places.get(entry.eventId)),
  }));
}

function appliedEntries({ trail }: JobState): readonly TrailEntry[] {
  return [...trailEntries(trail)].filter(({ outcome }) => outcome === "applied");
}

/** Which datacenter an event is about; open where more were dispatched to than are left. */
export function datacentersOfEvents(state: JobState): ReadonlyMap<EventId, string> {
  const { accepted, run } = state;
  const entries = appliedEntries(state);
  const found = new Map<EventId, string>();
  for (const [kind, places] of [
    ["JobDispatched", run.dispatched],
    ["JobAccepted", accepted],
    ["JobDcResult", run.results],
  ] as const) {
    const own = entries.filter((entry) => entry.kind === kind);
    if (own.length !== places.length) continue;
    for (const [index, { dcId }] of places.entries()) {
      const eventId = own[index]?.eventId;
      if (eventId !== undefined) found.set(eventId, dcId);
    }
  }
  return found;
}

function writerOf({ eventId, hlc }: TrailEntry): Pick<JobEventView, "who" | "token"> {
  const [, view = "", requestor = ""] = /^[^/]+\/[^/]+\/\d+\/(\d+)\/(.*)$/.exec(eventId) ?? [];
  const token = view === "" || view === "0" ? null : Number(view);
  return { who: requestor === "" ? hlc.node : requestor, token };
}

/** What the state still knows about it. */
function textOf(
  { eventId, kind }: TrailEntry,
  state: JobState,
  datacenter: string | undefined,
): string {
  const { cancellation, end, run } = state;
  const isThere = ({ dcId }: { readonly dcId: string }): boolean =>
    datacenter === undefined || dcId === datacenter;
  switch (kind) {
    case "JobDispatched":
      return run.dispatched
        .filter(isThere)
        .map(({ cores, dcId }) => `${dcId}: ${formatCounted(cores, "core")}`)
        .join(", ");
    case "JobAccepted":
      return datacenter ?? "";
    case "JobStarted":
      return run.started?.shares.map(({ dcId }) => dcId).join(", ") ?? "";
    case "JobCancellationRequested":
      return cancellation?.eventId === eventId ? cancellation.reason : "";
    case "JobDcResult":
      return run.results
        .filter(isThere)
        .map(({ dcId, finalStatus }) => `${dcId}: ${finalStatus}`)
        .join(", ");
    case "JobCompleted":
      return end?.kind === "completed" ? end.finalStatus : statusOf(state);
    case "JobFailed":
      return end?.kind === "failed" ? end.error : "";
    default:
      return "";
  }
}
