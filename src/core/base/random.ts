/**
 * Seeded randomness as a value: xoshiro128** with labelled forks. The same seed and the same labels
 * give the same numbers on every machine, so a simulation, a data feed or a think time can be
 * replayed. Not for secrets.
 */

import { assert } from "./assert.ts";

export class Random {
  #a: number;
  #b: number;
  #c: number;
  #d: number;

  constructor(seed: number | string) {
    // Four well-mixed words from any seed: splitmix32 over the hash of its text.
    let state = hashText(String(seed));
    const next = (): number => {
      state = (state + 0x9e3779b9) | 0;
      let z = state;
      z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
      z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
      return (z ^ (z >>> 15)) >>> 0;
    };
    this.#a = next();
    this.#b = next();
    this.#c = next();
    this.#d = next() | 1;
  }

  /** A separate generator for one purpose; drawing from it never shifts the parent's numbers. */
  fork(label: string): Random {
    return new Random(`${this.#a}:${this.#b}:${this.#c}:${this.#d}/${label}`);
  }

  /** 32 random bits, unsigned. */
  uint32(): number {
    const result = Math.imul(rotateLeft(Math.imul(this.#b, 5), 7), 9) >>> 0;
    const t = this.#b << 9;
    this.#c ^= this.#a;
    this.#d ^= this.#b;
    this.#b ^= this.#c;
    this.#a ^= this.#d;
    this.#c ^= t;
    this.#d = rotateLeft(this.#d, 11);
    return result;
  }

  /** Uniform in [0, 1). */
  float(): number {
    return this.uint32() / 4_294_967_296;
  }

  /** Uniform integer in [0, bound). */
  below(bound: number): number {
    assert(Number.isInteger(bound) && bound > 0, "a bound is a positive integer");
    if (bound > 0xffff_ffff) return Math.floor(this.float() * bound);
    // Rejection keeps small bounds exactly uniform.
    const limit = 4_294_967_296 - (4_294_967_296 % bound);
    for (;;) {
      const value = this.uint32();
      if (value < limit) return value % bound;
    }
  }

  /** Uniform in [low, high). */
  between(low: number, high: number): number {
    return low + this.float() * (high - low);
  }

  chance(probability: number): boolean {
    return this.float() < probability;
  }

  pick<Item>(items: readonly Item[]): Item {
    const item = items[this.below(items.length)];
    assert(item !== undefined, "a pick is made from a non-empty list");
    return item;
  }

  /** Fisher-Yates, in place. */
  shuffle<Item>(items: Item[]): Item[] {
    for (let i = items.length - 1; i > 0; i--) {
      const j = this.below(i + 1);
      const held = items[i] as Item;
      items[i] = items[j] as Item;
      items[j] = held;
    }
    return items;
  }
}

function rotateLeft(value: number, count: number): number {
  return (value << count) | (value >>> (32 - count));
}

/** FNV-1a over UTF-16 code units, enough to spread labels; not a checksum. */
function hashText(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}
