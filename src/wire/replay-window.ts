/**
 * The sliding window over one sender's packet counters: each counter passes once, and counters below
 * the window never. A ring of bits; moving on clears only what comes into view. (SEC-6, RFC 6479)
 *
 * R1: no counter is accepted twice. R2: nothing older than the window is accepted.
 */

import { assert } from "../core/base/assert.ts";
import { REPLAY_WINDOW_PACKETS } from "./limits.ts";

const WORD_BITS = 32;

export class ReplayWindow {
  readonly #words: Uint32Array;
  readonly #size: number;
  #highest: number;

  /** `highest`: counters up to here count as seen already. */
  constructor(highest = -1, size = REPLAY_WINDOW_PACKETS) {
    assert(size % WORD_BITS === 0 && size > WORD_BITS, "a window is whole words, more than one");
    this.#size = size;
    this.#words = new Uint32Array(size / WORD_BITS);
    this.#highest = highest;
    if (highest >= 0) this.#words.fill(0xffff_ffff);
  }

  get highest(): number {
    return this.#highest;
  }

  isFresh(counter: number): boolean {
    if (counter > this.#highest) return true;
    if (counter <= this.#highest - this.#size) return false;
    return !this.#has(counter);
  }

  /** Marks a counter whose packet was authentic. Returns false if it is a repeat or too old. */
  accept(counter: number): boolean {
    if (!this.isFresh(counter)) return false;
    if (counter > this.#highest) this.#advance(counter);
    const word = Math.floor(counter / WORD_BITS) % this.#words.length;
    this.#words[word] = (this.#words[word] ?? 0) | (1 << (counter % WORD_BITS));
    return true;
  }

  #has(counter: number): boolean {
    const word = Math.floor(counter / WORD_BITS) % this.#words.length;
    return ((this.#words[word] ?? 0) & (1 << (counter % WORD_BITS))) !== 0;
  }

  /** Clears the bits between the old and the new highest: a part of a word, whole words, or all. */
  #advance(counter: number): void {
    const passed = counter - this.#highest;
    if (passed >= this.#size) {
      this.#words.fill(0);
    } else {
      let place = (this.#highest + 1) % this.#size;
      for (let left = passed; left > 0; ) {
        const bit = place % WORD_BITS;
        const count = Math.min(left, WORD_BITS - bit);
        // Shifting by a whole word would shift by nothing.
        const mask = count === WORD_BITS ? -1 : ((1 << count) - 1) << bit;
        const word = (place - bit) / WORD_BITS;
        this.#words[word] = (this.#words[word] ?? 0) & ~mask;
        left -= count;
        place = (place + count) % this.#size;
      }
    }
    this.#highest = counter;
  }
}
