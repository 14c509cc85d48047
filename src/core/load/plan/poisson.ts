/** The random places of arrivals on the axis of N (see `arrivals.ts`), drawn one by one: one core's part of them. */

import type { Random } from "../../base/random.ts";
import type { Share } from "./load.ts";

/** Places that were taken are thrown away in lots of this size. */
const TAKEN_KEPT_MAX = 1_024;

export class PoissonPositions {
  readonly #random: Random;
  readonly #share: Share;
  /** Of this core, in order: those taken come first. */
  #own: number[] = [];
  #taken = 0;
  /** Of all cores. */
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

  /** That one is taken; the place of the next. */
  advance(): number {
    this.#taken++;
    if (this.#taken > TAKEN_KEPT_MAX) {
      this.#own = this.#own.slice(this.#taken);
      this.#taken = 0;
    }
    return this.first();
  }

  /** How many are not taken and lie at `place` or before. */
  upTo(place: number): number {
    while (this.#last <= place) this.#draw();
    // The places are in order: halve the stretch that holds the border.
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
