/** How long a node that goes waits until others lead what it has led. */

/** Altogether. */
const HAND_OVER_MS_MAX = 10_000;
/** For one more group to be followed: where nobody is left to lead, this is all it waits. */
const STALL_MS_MAX = 3_000;

export class HandOver {
  readonly #by: number;
  #left = Number.POSITIVE_INFINITY;
  endsAt: number;

  constructor(now: number) {
    this.#by = now + HAND_OVER_MS_MAX;
    this.endsAt = now + STALL_MS_MAX;
  }

  /** So many groups have nobody else who leads them. */
  see(left: number, now: number): void {
    if (left >= this.#left) return;
    this.#left = left;
    this.endsAt = Math.min(now + STALL_MS_MAX, this.#by);
  }
}
