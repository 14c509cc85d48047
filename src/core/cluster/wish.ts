/** What a client asks for, under a name that it keeps however often and of whomever it asks: logs take it once. */

const NAME_CHARS_MAX = 64;

/** As a part of the id of an event. */
export function wishName(wish: string): string {
  return wish.replace(/[^A-Za-z0-9-]/g, "-").slice(0, NAME_CHARS_MAX);
}
