/**
 * Bytes seen before, recognised at the start of the read buffer. A server answers the same requests with the same heads
 * and small responses, and comparing words costs a tenth of parsing them again.
 */

/** Longer ones rarely repeat and are not worth a copy. */
export const KNOWN_BYTES_MAX = 1_024;
/** Entries per origin: about the number of distinct responses of one journey. */
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

  /** Compares from the end, where responses differ: in their lengths and bodies. */
  begins(source: Uint8Array, sourceWords: Uint32Array): boolean {
    const whole = this.length >>> 2;
    for (let at = this.length - 1; at >= whole << 2; at--)
      if (source[at] !== this.#bytes[at]) return false;
    for (let at = whole - 1; at >= 0; at--) if (sourceWords[at] !== this.#words[at]) return false;
    return true;
  }
}

/**
 * Suspends lookups where every input differs, for example by a request id in every head: after a series of misses,
 * nothing is looked up for a while.
 */
export class StandAside {
  #misses = 0;
  #left = 0;

  /** Must be read once before each lookup. */
  get standsAside(): boolean {
    if (this.#left === 0) return false;
    this.#left--;
    return true;
  }

  /** Nothing is added to the cache either. */
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
