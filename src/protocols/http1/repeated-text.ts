/**
 * Caches the last small responses of an origin as strings. Load on a few addresses is answered with the same bytes
 * repeatedly, and all those responses then share a string.
 */

import { KNOWN_BYTES_MAX, KNOWN_MAX, KnownBytes, StandAside } from "./known-bytes.ts";

interface KnownText {
  readonly bytes: KnownBytes;
  text: string;
}

export class RepeatedText {
  readonly #source: Buffer;
  readonly #sourceWords: Uint32Array;
  readonly #known: KnownText[] = [];
  readonly #aside = new StandAside();
  /** Index of the next eviction. */
  #oldest = 0;

  /** `words` is a view of the read buffer. */
  constructor(readBuffer: Buffer, words: Uint32Array) {
    this.#source = readBuffer;
    this.#sourceWords = words;
  }

  /** Returns the latin1 text of bytes[from, end). */
  of(bytes: Buffer, from: number, end: number): string {
    if (bytes !== this.#source || from !== 0 || end > KNOWN_BYTES_MAX || this.#aside.standsAside)
      return bytes.toString("latin1", from, end);
    for (let at = 0; at < this.#known.length; at++) {
      const one = this.#known[at] as KnownText;
      if (one.bytes.length !== end || !one.bytes.begins(this.#source, this.#sourceWords)) continue;
      this.#aside.hit();
      return one.text;
    }
    this.#aside.missed();
    return this.#learn(end);
  }

  #learn(end: number): string {
    let one = this.#known[this.#oldest];
    if (one === undefined) {
      one = { bytes: new KnownBytes(), text: "" };
      this.#known.push(one);
    }
    one.text = this.#source.toString("latin1", 0, end);
    one.bytes.learn(this.#source, end);
    this.#oldest = (this.#oldest + 1) % KNOWN_MAX;
    return one.text;
  }
}
