/** Idempotency key of a client request. A client keeps it across retries and nodes; logs apply it once. */

const NAME_CHARS_MAX = 64;

/** Returns the key as part of an event id. */
export function wishName(wish: string): string {
  return wish.replace(/[^A-Za-z0-9-]/g, "-").slice(0, NAME_CHARS_MAX);
}
