/** JSON that a server sent. */

/** Enough to recognise an error page or a stray frame by. */
const SHOWN_CHARACTERS = 60;

/** `what` begins the sentence: "the message". Throws when the text is not JSON; the step then fails. */
export function parseJsonBody<Value>(text: string, what: string): Value {
  try {
    return JSON.parse(text) as Value;
  } catch (cause) {
    const start = text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text;
    throw new Error(`${what} is not JSON: ${JSON.stringify(start)}`, { cause });
  }
}
