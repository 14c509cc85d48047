/** An error as stored with the task: bounded, and in characters that the database accepts. */

import { errorText } from "../../core/base/error-text.ts";
import { storable } from "../../core/queue/storable.ts";
import type { TaskFailure } from "../api/types.ts";

/** Limits for message, stack and causes of an error, each, and for its name. */
const ERROR_CHARACTERS_MAX = 8_192;
const NAME_CHARACTERS_MAX = 200;
const CAUSES_MAX = 5;

/** Never throws: a value whose fields throw must not keep its task from ending. */
export function failureOf(error: unknown): TaskFailure {
  try {
    return readFailure(error);
  } catch {
    return { message: storable(errorText(error), ERROR_CHARACTERS_MAX) };
  }
}

function readFailure(error: unknown): TaskFailure {
  if (!(error instanceof Error))
    return { message: storable(errorText(error), ERROR_CHARACTERS_MAX) };
  const retryable = "retryable" in error && error.retryable === false ? { retryable: false } : {};
  const again = againOf(error);
  const cause = causesOf(error);
  return {
    name: storable(error.name, NAME_CHARACTERS_MAX),
    message: storable(error.message, ERROR_CHARACTERS_MAX),
    ...(error.stack === undefined ? {} : { stack: storable(error.stack, ERROR_CHARACTERS_MAX) }),
    ...(cause === "" ? {} : { cause }),
    ...retryable,
    ...(again === undefined ? {} : { again }),
  };
}

/** Checks its fields: the error may come from another copy of this program. */
function againOf(error: Error): string | number | undefined {
  if (error.name !== "Snooze" || !("again" in error)) return undefined;
  return typeof error.again === "string" || typeof error.again === "number"
    ? error.again
    : undefined;
}

/** The chain of causes as one text, outermost first. */
function causesOf(error: Error): string {
  const texts: string[] = [];
  let cause = error.cause;
  while (cause !== undefined && texts.length < CAUSES_MAX) {
    texts.push(errorText(cause));
    cause = cause instanceof Error ? cause.cause : undefined;
  }
  return storable(texts.join(": "), ERROR_CHARACTERS_MAX);
}
