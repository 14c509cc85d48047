/**
 * How long a leaving node waits until others lead its groups. A slow successor is worth waiting for: without a
 * hand-over, clients of these groups wait for the lease to expire. Without a successor there is little to wait for.
 */

const HAND_OVER_MS_MAX = 15_000;
/** Time since a successor was last available. */
const ALONE_MS_MAX = 3_000;

export class HandOver {
  #by = Number.POSITIVE_INFINITY;
  #aloneSince = Number.POSITIVE_INFINITY;

  begin(now: number): void {
    this.#by = now + HAND_OVER_MS_MAX;
    this.#aloneSince = now;
  }

  /** When to exit regardless of leadership. `hasSuccessor`: another node is up and not draining. */
  endsAt(hasSuccessor: boolean, now: number): number {
    if (hasSuccessor) this.#aloneSince = now;
    return Math.min(this.#by, this.#aloneSince + ALONE_MS_MAX);
  }
}
