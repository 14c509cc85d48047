/**
 * How fast a worker finishes tasks, and so how many it may lease ahead. Tasks of a millisecond are worth claiming by
 * the thousand; one of a minute that waits in a worker could run elsewhere. (TQ-38)
 */

/** The pace of the last whole window decides. */
const WINDOW_MS = 100;
/** Tasks leased ahead last this long at the current pace. */
const AHEAD_MS = 500;

export class Pace {
  /** Concurrent executions: their maximal rate follows from how long each takes. */
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

  /** Number of tasks to lease beyond those that run, at most `most`. */
  ahead(now: number, most: number): number {
    this.#turn(now);
    const begun = Math.max(this.#perMs, this.#rate(WINDOW_MS));
    return Math.min(most, Math.floor(begun * AHEAD_MS));
  }

  /** Long tasks that began together finish together: many in a window, and yet no more than the slots sustain. */
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
