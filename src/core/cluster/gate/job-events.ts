/**
 * Events of a job from the ledger of the gates. The ledger keeps the kind, time and outcome of an event; its id
 * contains the requestor and the view.
 *
 *     g1 / 7c9e6679-7425 / 12 / 3 / ada         gate / its process / number / view / requestor
 *     wish / 0b53f1b2-8b1e / 0 / 0 / ada        a client request, sent to several gates and applied once
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
  /** Boot id of the gate's process. */
  readonly boot: string;
  readonly number: number;
  /** View of the leader; 0 if any gate may append it. */
  readonly view: number;
  /** Empty for the gate itself. */
  readonly requestor: string;
}

export function eventIdOf({ boot, gate, number, requestor, view }: EventIdParts): EventId {
  const head = `${gate}/${boot}/${number}/${view}/`;
  // A non-ASCII character may take three bytes; the name is only displayed.
  const who = requestor.replace(/[^ -~]/g, "?").slice(0, EVENT_ID_BYTES_MAX - head.length);
  return `${head}${who}` as EventId;
}

/** Equal for every gate that a client asks, so that the ledger applies one of them. */
export function writerOfWish(wish: string): Pick<EventIdParts, "gate" | "boot" | "number"> {
  return { gate: "wish", boot: wishName(wish), number: 0 };
}

/** Applied events in order. */
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

/** Datacenter of each event; omitted if more dispatches were made than are left in the state. */
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

/** Details that the state still has. */
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
