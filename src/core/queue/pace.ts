/**
 * How fast a worker finishes tasks, and so how many it may hold ahead. Tasks of a millisecond are worth
 * asking for by the thousand; one of a minute that waits in a worker could run elsewhere. (TQ-38)
 */

/** The pace of the last whole window decides. */
const WINDOW_MS = 100;
/** Tasks held ahead are to last this long at the present pace. */
const AHEAD_MS = 500;

export class Pace {
  #windowAt = Number.NEGATIVE_INFINITY;
  #count = 0;
  #perMs = 0;

  finished(now: number): void {
    this.#turn(now);
    this.#count++;
  }

  /** How many tasks to hold beyond those that run, at most `most`. */
  ahead(now: number, most: number): number {
    this.#turn(now);
    const begun = Math.max(this.#perMs, this.#count / WINDOW_MS);
    return Math.min(most, Math.floor(begun * AHEAD_MS));
  }

  #turn(now: number): void {
    const elapsedMs = now - this.#windowAt;
    if (elapsedMs < WINDOW_MS) return;
    this.#perMs = this.#count === 0 ? 0 : this.#count / elapsedMs;
    this.#count = 0;
    this.#windowAt = now;
  }
}
