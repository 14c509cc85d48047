/** Parses JSON sent by a server. */

/** Enough to recognise an error page or a stray frame. */
const SHOWN_CHARACTERS = 60;

/**
 * `what` is the subject of the error message, such as "the message". Throws when the text is not JSON, which fails the
 * step.
 */
export function parseJsonBody<Value>(text: string, what: string): Value {
  try {
    return JSON.parse(text) as Value;
  } catch (cause) {
    const start = text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text;
    throw new Error(`${what} is not JSON: ${JSON.stringify(start)}`, { cause });
  }
}
