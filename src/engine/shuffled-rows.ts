/** Order of a shuffled feed: every round has each row once, in an order of its own, the same on all cores. */

import { Random } from "../core/base/random.ts";

/** Cores are at most one lease apart, so two rounds are in use at a time. */
const ROUNDS_KEPT = 2;

export class ShuffledRows {
  readonly #length: number;
  readonly #seed: string;
  readonly #rounds = new Map<number, readonly number[]>();

  constructor(length: number, seed: string) {
    this.#length = length;
    this.#seed = seed;
  }

  at(index: number): number {
    const round = Math.floor(index / this.#length);
    return this.#round(round)[index % this.#length] as number;
  }

  #round(round: number): readonly number[] {
    const known = this.#rounds.get(round);
    if (known !== undefined) return known;
    const order = Array.from({ length: this.#length }, (_, at) => at);
    new Random(`${this.#seed}/${round}`).shuffle(order);
    this.#rounds.set(round, order);
    const [oldest] = this.#rounds.keys();
    if (this.#rounds.size > ROUNDS_KEPT && oldest !== undefined) this.#rounds.delete(oldest);
    return order;
  }
}
