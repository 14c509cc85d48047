/**
 * Number of one start of a worker: how often its data directory was started, followed by random digits. A directory
 * that was emptied or restored from a copy counts from a lower start again; the random digits keep that start from
 * passing for an earlier one, whose cores and orders it knows nothing about.
 */

/** Random numbers per start. Two starts with the same count share a number once in 268 million restores. */
export const DRAWS = 2 ** 28;
/** With `DRAWS`, the 48 bits of a counter on the wire. Later starts all have this count. */
const STARTS_MAX = 2 ** 20 - 1;

/** `draw`: a random whole number below `DRAWS`. */
export function incarnationOf(starts: number, draw: number): number {
  return Math.min(starts, STARTS_MAX) * DRAWS + draw;
}

/** How often the data directory had been started. */
export function startsOf(incarnation: number): number {
  return Math.floor(incarnation / DRAWS);
}
