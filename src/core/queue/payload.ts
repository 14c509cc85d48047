/**
 * Validates a task's input or result: JSON that the database's parser accepts. One value that it rejects would fail its
 * whole batch, so it is rejected here, by name. (TQ-14)
 */

import { encodeUtf8 } from "../base/bytes.ts";
import { errorText } from "../base/error-text.ts";
import { QUEUE_LIMITS } from "./defaults.ts";

type PayloadResult =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly problem: string };

/** NUL and lone surrogates: JSON.stringify writes both as escapes, PostgreSQL accepts neither. */
const UNSTORABLE = /(?<!\\)(?:\\\\)*\\u(?:0000|d[89a-f])/;

export function encodePayload(value: unknown, what: string): PayloadResult {
  if (value === undefined || value === null) return { ok: true, text: "null" };
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (error) {
    return refuse(`${what} cannot be written as JSON: ${errorText(error)}`);
  }
  if (text === undefined) return refuse(`${what} is a ${typeof value}, which JSON does not have`);
  const bytes = text.length * 3 <= QUEUE_LIMITS.payloadBytesMax ? 0 : encodeUtf8(text).length;
  if (bytes > QUEUE_LIMITS.payloadBytesMax) {
    return refuse(
      `${what} is ${bytes} bytes of JSON; the limit is ${QUEUE_LIMITS.payloadBytesMax}. ` +
        "Store large data elsewhere and pass its address",
    );
  }
  if (text.includes("\\u") && UNSTORABLE.test(text)) {
    return refuse(
      `${what} contains a NUL or half of a surrogate pair, which the database cannot store`,
    );
  }
  if (
    text.length > 2 * QUEUE_LIMITS.payloadDepthMax &&
    depthOf(text) > QUEUE_LIMITS.payloadDepthMax
  ) {
    return refuse(`${what} is nested deeper than ${QUEUE_LIMITS.payloadDepthMax} levels`);
  }
  return { ok: true, text };
}

function depthOf(text: string): number {
  let depth = 0;
  let deepest = 0;
  let inString = false;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (inString) {
      if (code === 0x5c) i++;
      else if (code === 0x22) inString = false;
    } else if (code === 0x22) inString = true;
    else if (code === 0x7b || code === 0x5b) deepest = Math.max(deepest, ++depth);
    else if (code === 0x7d || code === 0x5d) depth--;
  }
  return deepest;
}

function refuse(problem: string): PayloadResult {
  return { ok: false, problem };
}
