/** Job descriptions as they leave a node: the embedding program redacts them. */

import type { JobEvent } from "../core/ledger/job/events.ts";
import type { LedgerAnswer } from "../core/ledger/node/messages.ts";
import type { WatchItem } from "../core/ledger/node/watch.ts";

export type RedactSpec = (spec: Uint8Array) => Uint8Array;

export function redactAnswer(answer: LedgerAnswer, redact: RedactSpec): LedgerAnswer {
  if (answer.kind !== "job") return answer;
  const { state } = answer;
  return { ...answer, state: { ...state, spec: redact(state.spec) } };
}

export function redactItem(item: WatchItem, redact: RedactSpec): WatchItem {
  return item.kind === "event" ? { ...item, event: redactEvent(item.event, redact) } : item;
}

function redactEvent(event: JobEvent, redact: RedactSpec): JobEvent {
  return "spec" in event ? { ...event, spec: redact(event.spec) } : event;
}
