/**
 * How long a node that goes waits until others lead what it has led. They may be slow, and whoever wanted
 * one of these groups would wait for a lease. Where nobody is left to lead there is little to wait for.
 */

const HAND_OVER_MS_MAX = 15_000;
/** Since somebody could have led. */
const ALONE_MS_MAX = 3_000;

export class HandOver {
  #by = Number.POSITIVE_INFINITY;
  #aloneSince = Number.POSITIVE_INFINITY;

  begin(now: number): void {
    this.#by = now + HAND_OVER_MS_MAX;
    this.#aloneSince = now;
  }

  /** When to go whoever leads; `hasSuccessor`: somebody is there who does not go as well. */
  endsAt(hasSuccessor: boolean, now: number): number {
    if (hasSuccessor) this.#aloneSince = now;
    return Math.min(this.#by, this.#aloneSince + ALONE_MS_MAX);
  }
}
