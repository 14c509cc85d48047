/**
 * Clips text from user code to the limits of a message. The sender does it, because a receiver could only refuse. A
 * value that cannot be encoded fails its workflow with the path to it. (CODEC-6)
 */

import { encodePlain, plainProblem } from "../../base/plain-value.ts";
import { clipText } from "../../base/text.ts";
import type { PartFault, Problem } from "../../load/job/core-messages.ts";
import type { RelayedEvent } from "../messages.ts";

/** A character takes at most three bytes of the 16 KiB limit of a text. */
const CHARACTERS_MAX = 5_000;
const NOTES_MAX = 1_000;
/** Limit of a set-up value, and of everything a core provides. Either is one entry of the job log. */
const VALUE_BYTES_MAX = 448 * 1_024;

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
    case "setupDone": {
      const problem = valueProblem("the value of set-up", event.value);
      return problem === null ? event : failed(event.execution, problem);
    }
    case "finished": {
      const problem = valueProblem("what the workflow provides", event.provided);
      if (problem !== null) return failed(event.execution, problem);
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

function valueProblem(what: string, value: unknown): string | null {
  const problem = plainProblem(value);
  // Either a path within the value, or a statement about the value itself.
  if (problem !== null) return /^[.[]/.test(problem) ? `${what}: ${problem}` : `${what} ${problem}`;
  const bytes = encodePlain(value).length;
  if (bytes <= VALUE_BYTES_MAX) return null;
  return `${what} takes ${bytes} bytes; at most ${VALUE_BYTES_MAX} are handed on`;
}

function failed(execution: number, message: string): RelayedEvent {
  const problem = { message: clip(message), location: null, mistake: false };
  return { kind: "failed", execution, problem };
}

function clipFaults(faults: readonly PartFault[]): readonly PartFault[] {
  return faults
    .slice(0, NOTES_MAX)
    .map((one) => ({ ...one, gate: clip(one.gate), text: clip(one.text) }));
}

function clipProblem(problem: Problem): Problem {
  const { location, message } = problem;
  return {
    ...problem,
    message: clip(message),
    location: location === null ? null : clip(location),
  };
}

function clip(text: string): string {
  return clipText(text, CHARACTERS_MAX);
}
