/** Random positions of arrivals on the axis of N (see `arrivals.ts`), drawn one by one: one core's part of them. */

import type { Random } from "../../base/random.ts";
import type { Share } from "./load.ts";

/** Consumed positions are removed in batches of this size. */
const TAKEN_KEPT_MAX = 1_024;

export class PoissonPositions {
  readonly #random: Random;
  readonly #share: Share;
  /** Positions of this core, in order, consumed ones first. */
  #own: number[] = [];
  #taken = 0;
  /** Positions drawn for all cores. */
  #drawn = 0;
  #last = 0;

  constructor(random: Random, share: Share) {
    this.#random = random;
    this.#share = share;
  }

  first(): number {
    while (this.#own.length === this.#taken) this.#draw();
    return this.#own[this.#taken] as number;
  }

  /** Consumes one and returns the position of the next. */
  advance(): number {
    this.#taken++;
    if (this.#taken > TAKEN_KEPT_MAX) {
      this.#own = this.#own.slice(this.#taken);
      this.#taken = 0;
    }
    return this.first();
  }

  /** Number of unconsumed positions at or before `place`. */
  upTo(place: number): number {
    while (this.#last <= place) this.#draw();
    // The positions are sorted: binary search for the border.
    let [low, high] = [this.#taken, this.#own.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#own[middle] as number) <= place) low = middle + 1;
      else high = middle;
    }
    return low - this.#taken;
  }

  #draw(): void {
    this.#last -= Math.log(1 - this.#random.float());
    if (this.#drawn % this.#share.count === this.#share.index) this.#own.push(this.#last);
    this.#drawn++;
  }
}
