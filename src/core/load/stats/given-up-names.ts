/**
 * Names that a part of a run does not count separately, as a Bloom filter: of a fixed size however many there are, the
 * union of two is a bitwise or, and it never denies a name that was added. A false hit merges one more row into
 * "(other)" than necessary; it never removes calls from a visible row.
 */

/** 16,384 bits: a false hit in 2,000 at 500 names, in 40 at 2,000; beyond 10,000 nearly every name is one. */
export const GIVEN_UP_BYTES = 2_048;
/** Bits per name. */
const PROBES = 4;
const BITS = 8 * GIVEN_UP_BYTES;

export class GivenUpNames {
  readonly #bits = new Uint8Array(GIVEN_UP_BYTES);
  /** Changes so far. */
  version = 0;

  /** For a frame; must not be modified. */
  get bytes(): Uint8Array {
    return this.#bits;
  }

  add(key: string): void {
    this.#each(key, (at, bit) => {
      if (((this.#bits[at] as number) & bit) === 0) this.version++;
      this.#bits[at] = (this.#bits[at] as number) | bit;
      return true;
    });
  }

  /** Adds all names of another filter. */
  union(bytes: Uint8Array): void {
    for (const [at, more] of bytes.entries()) {
      const held = this.#bits[at] as number;
      if ((held | more) === held) continue;
      this.#bits[at] = held | more;
      this.version++;
    }
  }

  /** Whether a name was added; rarely true for one that was not. */
  has(key: string): boolean {
    return this.#each(key, (at, bit) => ((this.#bits[at] as number) & bit) !== 0);
  }

  #each(key: string, probe: (at: number, bit: number) => boolean): boolean {
    const first = hash(key, 0x811c_9dc5);
    // Odd, so that the probes differ.
    const step = hash(key, 0x9e37_79b9) | 1;
    for (let i = 0; i < PROBES; i++) {
      const bit = ((first + Math.imul(i, step)) >>> 0) % BITS;
      if (!probe(bit >>> 3, 1 << (bit & 7))) return false;
    }
    return true;
  }
}

/** FNV-1a over UTF-16 units, with a final mix. */
function hash(text: string, seed: number): number {
  let value = seed;
  for (let at = 0; at < text.length; at++)
    value = Math.imul(value ^ text.charCodeAt(at), 0x0100_0193);
  value ^= value >>> 15;
  value = Math.imul(value, 0x85eb_ca6b);
  return (value ^ (value >>> 13)) >>> 0;
}
