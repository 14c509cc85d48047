/**
 * Limits iterations per second in a closed model. Starts get slots at equal intervals; an unused slot expires, so a
 * pause is not followed by a burst.
 */

import { assert } from "../../base/assert.ts";
import type { Share } from "./load.ts";

/** Timers are coarser than this: a start this little early is allowed, and the slots stay as they are. */
const EARLY_MS = 1;

export class Throttle {
  readonly #intervalMs: number;
  #nextMs = 0;

  constructor(ratePerSecond: number) {
    assert(ratePerSecond > 0, "a throttle lets something through");
    this.#intervalMs = 1_000 / ratePerSecond;
  }

  /** Takes the next slot and returns the wait for it, 0 to begin now. */
  admit(nowMs: number): number {
    const at = Math.max(this.#nextMs, nowMs);
    this.#nextMs = at + this.#intervalMs;
    const wait = at - nowMs;
    return wait <= EARLY_MS ? 0 : wait;
  }
}

/** This core's part of a rate, by its part of the users. */
export function shareOfRate(ratePerSecond: number, { users, index }: Share): number {
  const all = users.reduce((sum, each) => sum + each, 0);
  assert(all > 0, "somebody is there to be throttled");
  return (ratePerSecond * (users[index] ?? 0)) / all;
}
