/**
 * Number of one start of a worker: the start count of its data directory, followed by random digits. A directory that
 * was emptied or restored from a copy restarts the count; the random digits keep such a start from being taken for an
 * earlier one, whose cores and orders it does not know.
 */

/**
 * Random numbers per start. After a restore, two starts with the same count collide with a probability of 1 in 268
 * million.
 */
export const DRAWS = 2 ** 28;
/** Highest start count; later starts keep it. With `DRAWS` it fills the 48 bits of a counter on the wire. */
const STARTS_MAX = 2 ** 20 - 1;

/** Combines the start count with `draw`, a random integer below `DRAWS`. */
export function incarnationOf(starts: number, draw: number): number {
  return Math.min(starts, STARTS_MAX) * DRAWS + draw;
}

/** Start count of the data directory. */
export function startsOf(incarnation: number): number {
  return Math.floor(incarnation / DRAWS);
}
