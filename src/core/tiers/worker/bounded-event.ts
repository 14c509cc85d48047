/** What user code says is clipped to what a message carries; the sender does it, since a receiver can only refuse. */

import { clipText } from "../../base/text.ts";
import type { PartFault, Problem } from "../../run/job/core-messages.ts";
import type { RelayedEvent } from "../messages.ts";

/** A character takes at most three bytes of the 16 KiB that a message has room for. */
const CHARACTERS_MAX = 5_000;
const NOTES_MAX = 1_000;

export function bounded(event: RelayedEvent): RelayedEvent {
  switch (event.kind) {
    case "log":
    case "unhandled":
      return { ...event, line: clip(event.line) };
    case "abort":
      return { ...event, reason: clip(event.reason) };
    case "loadFailed":
    case "failed":
      return { ...event, problem: clipProblem(event.problem) };
    case "finished": {
      const notes = event.notes.slice(0, NOTES_MAX).map(clip);
      const counts = event.counts
        .slice(0, NOTES_MAX)
        .map((one) => ({ ...one, name: clip(one.name) }));
      return { ...event, notes, counts, faults: clipFaults(event.faults) };
    }
    case "tornDown":
      return { ...event, faults: clipFaults(event.faults) };
    default:
      return event;
  }
}

function clipFaults(faults: readonly PartFault[]): readonly PartFault[] {
  return faults
    .slice(0, NOTES_MAX)
    .map((one) => ({ ...one, gate: clip(one.gate), text: clip(one.text) }));
}

function clipProblem(problem: Problem): Problem {
  return { ...problem, message: clip(problem.message) };
}

function clip(text: string): string {
  return clipText(text, CHARACTERS_MAX);
}
