/**
 * The last small answer of an origin as the string that it is kept as. Load on one address is answered
 * with the same bytes again and again: comparing them costs a tenth of making a string of them, and
 * all responses then share one. Only what lies at the start of the read buffer is compared.
 *
 * Where every answer differs the comparison ends early, and after a row of misses nothing is compared
 * for a while.
 */

/** Longer answers are rarely the same twice. */
const BYTES_KEPT_MAX = 1_024;
const MISSES_MAX = 32;
const STAND_ASIDE = 1_000;

export class RepeatedText {
  readonly #source: Buffer;
  readonly #sourceWords: Uint32Array;
  #text = "";
  readonly #bytes = new Uint8Array(BYTES_KEPT_MAX);
  readonly #words = new Uint32Array(this.#bytes.buffer);
  #misses = 0;
  #aside = 0;

  /** `words` are those of the read buffer. */
  constructor(readBuffer: Buffer, words: Uint32Array) {
    this.#source = readBuffer;
    this.#sourceWords = words;
  }

  /** The latin1 text of bytes[from, end). */
  of(bytes: Buffer, from: number, end: number): string {
    if (bytes !== this.#source || from !== 0 || end > BYTES_KEPT_MAX)
      return bytes.toString("latin1", from, end);
    if (this.#aside > 0) {
      this.#aside--;
      return bytes.toString("latin1", 0, end);
    }
    if (end !== this.#text.length || !this.#isSame(end)) return this.#missed(end);
    this.#misses = 0;
    return this.#text;
  }

  /** From the end: that is where answers of one length differ. */
  #isSame(end: number): boolean {
    const whole = end >>> 2;
    for (let at = end - 1; at >= whole << 2; at--)
      if (this.#source[at] !== this.#bytes[at]) return false;
    for (let at = whole - 1; at >= 0; at--)
      if (this.#sourceWords[at] !== this.#words[at]) return false;
    return true;
  }

  #missed(end: number): string {
    if (++this.#misses > MISSES_MAX) {
      this.#misses = 0;
      this.#aside = STAND_ASIDE;
    }
    this.#text = this.#source.toString("latin1", 0, end);
    this.#source.copy(this.#bytes, 0, 0, end);
    return this.#text;
  }
}
