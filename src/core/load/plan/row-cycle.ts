/**
 * Row numbers of a feed whose rows may repeat, on one core. Every core works out its own, so no iteration waits for
 * a row.
 *
 *   core 0 of 2   0   2   4 …     together the very sequence that one core would have made
 *   core 1 of 2     1   3   5 …
 *
 * Four rows on two cores would give core 0 only rows 0 and 2. So the sequence turns by one after each common multiple
 * of both: a core comes to all rows, also when it is the only one that has users.
 */

import type { Share } from "./load.ts";

/**
 * Distance between the starting rows of datacenters in endless feeds: usually coprime to the number of rows, so that
 * they do not go through the same rows in parallel.
 */
export const ENDLESS_APART = 2_654_435_761;

export class RowCycle {
  readonly #rows: number;
  readonly #cores: number;
  readonly #divisor: number;
  #next: number;

  constructor(rows: number, { count, index, part }: Pick<Share, "count" | "index" | "part">) {
    this.#rows = rows;
    this.#cores = count;
    this.#divisor = greatestCommonDivisor(rows, count);
    this.#next = (part?.index ?? 0) * ENDLESS_APART + index;
  }

  /** The next number of this core in the sequence of all cores. */
  next(): number {
    const taken = this.#next;
    this.#next += this.#cores;
    return taken;
  }

  /** The row at a number of the sequence. */
  rowAt(number: number): number {
    const turns = Math.floor(number / (this.#rows * (this.#cores / this.#divisor)));
    return (number + (turns % this.#divisor)) % this.#rows;
  }
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b);
}
