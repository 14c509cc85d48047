/**
 * The last heads that an origin sent, with what they meant. The same question is answered with the
 * same head again and again, but for a Date that changes once a second. Only whole heads at the start
 * of the read buffer are looked up.
 */

import { Head } from "./head.ts";
import { KNOWN_BYTES_MAX, KNOWN_MAX, KnownBytes, StandAside } from "./known-bytes.ts";

class KnownHead {
  readonly bytes = new KnownBytes();
  readonly head = new Head();
  /** Of an answer to HEAD, which has no body whatever it says. */
  isHead = false;

  fits(bytes: Buffer, words: Uint32Array, count: number, isHead: boolean): boolean {
    return count >= this.bytes.length && isHead === this.isHead && this.bytes.begins(bytes, words);
  }
}

export class HeadCache {
  readonly #known: KnownHead[] = [];
  readonly #aside = new StandAside();
  /** The one that was found last. */
  #last = 0;
  /** The one that is forgotten next. */
  #oldest = 0;

  /** Bytes of the head that was found last. */
  get length(): number {
    return this.#known[this.#last]?.bytes.length ?? 0;
  }

  /** The meaning of a head that `bytes` begins with, if it is known; never to be changed. */
  find(bytes: Buffer, words: Uint32Array, count: number, isHead: boolean): Head | null {
    if (this.#aside.standsAside) return null;
    const known = this.#known;
    const last = known[this.#last];
    if (last === undefined) return null;
    if (last.fits(bytes, words, count, isHead)) {
      this.#aside.hit();
      return last.head;
    }
    for (let at = 0; at < known.length; at++) {
      const one = known[at] as KnownHead;
      if (one === last || !one.fits(bytes, words, count, isHead)) continue;
      this.#last = at;
      this.#aside.hit();
      return one.head;
    }
    this.#aside.missed();
    return null;
  }

  /** Keeps a head that was read from the start of `bytes`. */
  keep(bytes: Buffer, length: number, head: Head, isHead: boolean): void {
    // Cookies and redirects must be looked at each time.
    if (this.#aside.learnsNothing || length > KNOWN_BYTES_MAX) return;
    if (head.hasSetCookie || head.hasLocation) return;
    let one = this.#known[this.#oldest];
    if (one === undefined) {
      one = new KnownHead();
      this.#known.push(one);
    }
    one.bytes.learn(bytes, length);
    one.isHead = isHead;
    Object.assign(one.head, head);
    this.#oldest = (this.#oldest + 1) % KNOWN_MAX;
  }
}
