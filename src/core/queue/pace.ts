/**
 * How fast a worker finishes tasks, and so how many it may hold ahead. Tasks of a millisecond are worth
 * asking for by the thousand; one of a minute that waits in a worker could run elsewhere. (TQ-38)
 */

/** The pace of the last whole window decides. */
const WINDOW_MS = 100;
/** Tasks held ahead are to last this long at the present pace. */
const AHEAD_MS = 500;

export class Pace {
  /** Executions that run at once: what they can end in a time follows from how long each takes. */
  readonly #slots: number;
  #windowAt = Number.NEGATIVE_INFINITY;
  #count = 0;
  #tookMs = 0;
  #perMs = 0;

  constructor(slots: number) {
    this.#slots = slots;
  }

  finished(now: number, tookMs: number): void {
    this.#turn(now);
    this.#count++;
    this.#tookMs += tookMs;
  }

  /** How many tasks to hold beyond those that run, at most `most`. */
  ahead(now: number, most: number): number {
    this.#turn(now);
    const begun = Math.max(this.#perMs, this.#rate(WINDOW_MS));
    return Math.min(most, Math.floor(begun * AHEAD_MS));
  }

  /** Long tasks that began together end together: many in a window, and yet no more than the slots sustain. */
  #rate(elapsedMs: number): number {
    if (this.#count === 0) return 0;
    return Math.min(this.#count / elapsedMs, (this.#slots * this.#count) / this.#tookMs);
  }

  #turn(now: number): void {
    const elapsedMs = now - this.#windowAt;
    if (elapsedMs < WINDOW_MS) return;
    this.#perMs = this.#rate(elapsedMs);
    this.#count = 0;
    this.#tookMs = 0;
    this.#windowAt = now;
  }
}
