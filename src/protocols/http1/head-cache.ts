/**
 * The last head an origin sent, with what it meant. Servers answer the same question with the same
 * head again and again, but for a Date that changes once a second: comparing 40 words costs a tenth
 * of reading 160 bytes. Only whole heads at the start of the read buffer are looked up.
 *
 * A server whose every head differs (a request id) would pay for nothing, so after a row of misses
 * the cache stands aside for a while.
 */

import { Head } from "./head.ts";

/** Longer heads are not worth keeping a copy of. */
const HEAD_BYTES_KEPT_MAX = 1_024;
const MISSES_MAX = 32;
const STAND_ASIDE = 1_000;

export class HeadCache {
  /** Bytes of the head that is kept; 0 when there is none. */
  length = 0;
  readonly #head = new Head();
  readonly #bytes = Buffer.alloc(HEAD_BYTES_KEPT_MAX);
  readonly #words = new Uint32Array(
    this.#bytes.buffer,
    this.#bytes.byteOffset,
    HEAD_BYTES_KEPT_MAX / 4,
  );
  #isHead = false;
  #misses = 0;
  #aside = 0;

  /** The meaning of the head that `bytes` begins with, if it is the kept one; never to be changed. */
  find(bytes: Buffer, words: Uint32Array, count: number, isHead: boolean): Head | null {
    if (this.#aside > 0) {
      this.#aside--;
      return null;
    }
    const length = this.length;
    if (length === 0 || count < length || isHead !== this.#isHead) return null;
    const whole = length >>> 2;
    for (let i = 0; i < whole; i++) if (words[i] !== this.#words[i]) return this.#missed();
    for (let i = whole << 2; i < length; i++)
      if (bytes[i] !== this.#bytes[i]) return this.#missed();
    this.#misses = 0;
    return this.#head;
  }

  /** Keeps a head that was read from the start of `bytes`. */
  keep(bytes: Buffer, length: number, head: Head, isHead: boolean): void {
    // Cookies and redirects must be looked at each time.
    if (this.#aside > 0 || length > HEAD_BYTES_KEPT_MAX || head.hasSetCookie || head.hasLocation)
      return;
    bytes.copy(this.#bytes, 0, 0, length);
    this.length = length;
    this.#isHead = isHead;
    Object.assign(this.#head, head);
  }

  #missed(): null {
    if (++this.#misses > MISSES_MAX) {
      this.#misses = 0;
      this.#aside = STAND_ASIDE;
    }
    return null;
  }
}
