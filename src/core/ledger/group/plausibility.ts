/**
 * Detects peer counters that no run of the protocol produces. A message with one is dropped and reported: accepting it
 * would use up a group's numbers, or count an ack for entries never sent. Correct peers never send such messages; a
 * flipped bit, a defect or a hostile key holder may cause them.
 */

import type { VsrContext } from "./context.ts";
import { EPOCH_JUMP_MAX, SEQ_JUMP_MAX, VIEW_JUMP_MAX } from "./limits.ts";
import type { VsrMessage } from "./messages.ts";

type Message<Kind extends VsrMessage["kind"]> = Extract<VsrMessage, { kind: Kind }>;

/** Returns why a message is implausible, starting with the alarm's name, or null if it is acceptable. */
export function implausible(ctx: VsrContext, message: VsrMessage): string | null {
  const { state } = ctx;
  if (message.epoch > state.epoch + EPOCH_JUMP_MAX) {
    return `EPOCH_JUMP: epoch ${message.epoch}, ours is ${state.epoch}`;
  }
  // A newcomer knows no view yet and cannot judge.
  const view = highestView(message);
  if (state.knownView > 0 && view > state.knownView + VIEW_JUMP_MAX) {
    return `VIEW_JUMP: view ${view}, ours is ${state.knownView}`;
  }
  const seq = highestSeq(message);
  if (seq > ctx.lastSeq + SEQ_JUMP_MAX) return `PLACE_JUMP: place ${seq}, ours is ${ctx.lastSeq}`;
  return message.kind === "prepareResponse" ? impossibleAck(ctx, message) : null;
}

function highestView(message: VsrMessage): number {
  switch (message.kind) {
    case "found":
    case "unknownGroup":
    case "newerEpoch":
      return 0;
    case "viewChangeResponse":
      return Math.max(message.view, message.currentView, message.lastNormalView);
    case "logSuffix":
      return Math.max(message.view, message.lastNormalView);
    default:
      return message.view;
  }
}

function highestSeq(message: VsrMessage): number {
  switch (message.kind) {
    case "prepare":
      return Math.max(message.commit, message.entries.at(-1)?.seq ?? -1);
    case "prepareResponse":
      return Math.max(message.expected, message.acked);
    case "commit":
      return Math.max(message.commit, message.last);
    case "viewChangeResponse":
      return Math.max(message.lastSeq, message.commit, message.entries.at(-1)?.seq ?? -1);
    case "newView":
      return Math.max(message.startSeq, message.commit, message.entries.at(-1)?.seq ?? -1);
    case "fetchLog":
      return message.from;
    case "logSuffix": {
      const { lastSeq, commit, snapshot, entries } = message;
      return Math.max(lastSeq, commit, snapshot?.seq ?? -1, entries.at(-1)?.seq ?? -1);
    }
    default:
      return -1;
  }
}

/**
 * A replica acks what this view's primary sent it. An ack beyond that is one of another log, and would
 * count later for entries that the replica does not have.
 */
function impossibleAck(ctx: VsrContext, message: Message<"prepareResponse">): string | null {
  const { state } = ctx;
  const ours = state.acting && message.view === state.knownView && message.epoch === state.epoch;
  if (!ours) return null;
  if (message.acked > ctx.lastSeq) {
    return `ACK_BEYOND_LOG: place ${message.acked} acked, our log ends at ${ctx.lastSeq}`;
  }
  return null;
}
