/** Limits of replies from a Redis server. */

/** Longest line: a length, a number, a simple string, an error. */
export const LINE_BYTES_MAX = 64 * 1024;
/** Nesting depth of lists. */
export const DEPTH_MAX = 32;
/** Total values of one reply. */
export const ELEMENTS_MAX = 1_000_000;
