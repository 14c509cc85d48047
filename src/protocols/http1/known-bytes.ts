/**
 * Something that was read, to be known again by its bytes at the start of the read buffer: a server
 * answers the same questions with the same heads and the same small answers over and over, and to
 * compare words costs a tenth of reading them anew.
 */

/** Longer ones are rarely the same twice, and not worth a copy. */
export const KNOWN_BYTES_MAX = 1_024;
/** Of one origin: about what the calls of one journey are answered with. */
export const KNOWN_MAX = 8;
const MISSES_MAX = 32;
const STAND_ASIDE = 1_000;

export class KnownBytes {
  length = 0;
  readonly #bytes = new Uint8Array(KNOWN_BYTES_MAX);
  readonly #words = new Uint32Array(this.#bytes.buffer);

  learn(source: Uint8Array, length: number): void {
    this.length = length;
    this.#bytes.set(source.subarray(0, length));
  }

  /** From the end: that is where answers differ, in their lengths and their bodies. */
  begins(source: Uint8Array, sourceWords: Uint32Array): boolean {
    const whole = this.length >>> 2;
    for (let at = this.length - 1; at >= whole << 2; at--)
      if (source[at] !== this.#bytes[at]) return false;
    for (let at = whole - 1; at >= 0; at--) if (sourceWords[at] !== this.#words[at]) return false;
    return true;
  }
}

/**
 * Where everything that is read differs (a request id in every head) comparing would be for nothing:
 * after a row of misses nothing is looked up for a while.
 */
export class StandAside {
  #misses = 0;
  #left = 0;

  /** Asked once before each look-up. */
  get standsAside(): boolean {
    if (this.#left === 0) return false;
    this.#left--;
    return true;
  }

  /** Nothing is to be learnt now either. */
  get learnsNothing(): boolean {
    return this.#left > 0;
  }

  hit(): void {
    this.#misses = 0;
  }

  missed(): void {
    if (++this.#misses <= MISSES_MAX) return;
    this.#misses = 0;
    this.#left = STAND_ASIDE;
  }
}
