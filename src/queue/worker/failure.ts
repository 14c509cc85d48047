/** An error as it is kept with the task: bounded, and in characters that the database takes. */

import { errorText } from "../../core/base/error-text.ts";
import type { TaskFailure } from "../api/types.ts";

/** What is kept of an error: of its message, its stack and its causes each, and of its name. */
const ERROR_CHARACTERS_MAX = 8_192;
const NAME_CHARACTERS_MAX = 200;
const CAUSES_MAX = 5;

export function failureOf(error: unknown): TaskFailure {
  if (!(error instanceof Error)) return { message: storable(String(error)) };
  const retryable = "retryable" in error && error.retryable === false ? { retryable: false } : {};
  const cause = causesOf(error);
  return {
    name: storable(error.name, NAME_CHARACTERS_MAX),
    message: storable(error.message),
    ...(error.stack === undefined ? {} : { stack: storable(error.stack) }),
    ...(cause === "" ? {} : { cause }),
    ...retryable,
  };
}

/** The chain of causes as one text, outermost first. */
function causesOf(error: Error): string {
  const texts: string[] = [];
  let cause = error.cause;
  while (cause !== undefined && texts.length < CAUSES_MAX) {
    texts.push(errorText(cause));
    cause = cause instanceof Error ? cause.cause : undefined;
  }
  return storable(texts.join(": "));
}

function storable(text: string, charactersMax: number = ERROR_CHARACTERS_MAX): string {
  return text.slice(0, charactersMax).replace(/\0|\p{Surrogate}/gu, "\uFFFD");
}
