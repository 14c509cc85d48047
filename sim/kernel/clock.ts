/** Clocks of a node over the world's time: the monotonic one has an offset and a rate, the wall clock may jump. */

import type { Millis } from "../../src/core/base/brand.ts";
import { millis } from "../../src/core/base/brand.ts";

/** Start of all wall clocks; any fixed time serves. */
const WALL_START_MS = 1_700_000_000_000;

export class NodeClock {
  #offsetMs: number;
  readonly #rate: number;
  #wallShiftMs = 0;

  constructor(offsetMs: number, rate: number) {
    this.#offsetMs = offsetMs;
    this.#rate = rate;
  }

  local(worldMs: number): Millis {
    return millis(this.#offsetMs + worldMs * this.#rate);
  }

  /** When, in the world's time, this clock will show `localMs`. */
  world(localMs: number): number {
    return (localMs - this.#offsetMs) / this.#rate;
  }

  wall(worldMs: number): number {
    return Math.floor(WALL_START_MS + worldMs * this.#rate + this.#wallShiftMs);
  }

  jumpWall(ms: number): void {
    this.#wallShiftMs += ms;
  }

  /** A reboot restarts the monotonic clock. */
  reboot(worldMs: number): void {
    this.#offsetMs = -worldMs * this.#rate;
  }
}
