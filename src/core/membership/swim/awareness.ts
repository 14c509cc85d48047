/**
 * Lifeguard's local health multiplier. Zero is healthy; each sign that *we* are slow (a refuted accusation, a missing
 * nack, a stalled loop) adds a point, each successful probe removes one. A higher score probes slower, so that an
 * unhealthy member accuses less. (Lifeguard IV-A)
 *
 * A degraded process sets a minimum multiplier; the two never multiply each other. (BP-2)
 */

import { assert } from "../../base/assert.ts";

export class Awareness {
  readonly #max: number;
  #score = 0;
  #floor = 1;

  /** `max` is a multiplier: scores run 0 .. max - 1. */
  constructor(max: number) {
    assert(Number.isInteger(max) && max >= 1, "the awareness multiplier is a positive integer");
    this.#max = max;
  }

  get score(): number {
    return this.#score;
  }

  apply(delta: number): void {
    this.#score = Math.min(this.#max - 1, Math.max(0, this.#score + delta));
  }

  /** Times are multiplied by at least this. */
  setFloor(multiplier: number): void {
    assert(multiplier >= 1, "a degraded member does not hurry");
    this.#floor = multiplier;
  }

  scale(ms: number): number {
    return ms * Math.max(this.#score + 1, this.#floor);
  }

  /** By which others get more time of us. (LHM-1) */
  get load(): number {
    return Math.max(1 + this.#score / 4, this.#floor);
  }
}
