/**
 * Caches the last heads of an origin with their parsed form. The same request is usually answered with the same head,
 * except for a Date that changes once a second. Only complete heads at the start of the read buffer are looked up.
 */

import { Head } from "./head.ts";
import { KNOWN_BYTES_MAX, KNOWN_MAX, KnownBytes, StandAside } from "./known-bytes.ts";

class KnownHead {
  readonly bytes = new KnownBytes();
  readonly head = new Head();
  /** Response to HEAD, which never has a body. */
  isHead = false;

  fits(bytes: Buffer, words: Uint32Array, count: number, isHead: boolean): boolean {
    return count >= this.bytes.length && isHead === this.isHead && this.bytes.begins(bytes, words);
  }
}

export class HeadCache {
  readonly #known: KnownHead[] = [];
  readonly #aside = new StandAside();
  /** Index of the last hit. */
  #last = 0;
  /** Index of the next eviction. */
  #oldest = 0;

  /** Bytes of the head of the last hit. */
  get length(): number {
    return this.#known[this.#last]?.bytes.length ?? 0;
  }

  /** Returns the parsed form of a cached head that `bytes` begins with; it must not be changed. */
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

  /** Caches a head that was read from the start of `bytes`. */
  keep(bytes: Buffer, length: number, head: Head, isHead: boolean): void {
    // Cookies and redirects must be processed each time.
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
