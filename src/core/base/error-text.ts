/** Text of a caught value. Anything can be thrown: not only an `Error`, and also an object whose fields throw. */
export function errorText(error: unknown): string {
  try {
    return String(error instanceof Error ? error.message : error);
  } catch {
    return "a value that cannot be read was thrown";
  }
}
