/** Bounds of what a Redis server may send. */

/** Of a line: a length, a number, a simple text, an error. */
export const LINE_BYTES_MAX = 64 * 1024;
/** Of lists in lists. */
export const DEPTH_MAX = 32;
/** Of all values of one reply together. */
export const ELEMENTS_MAX = 1_000_000;
