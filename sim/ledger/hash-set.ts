/** A set of strings by a 53-bit hash: eight bytes a member, so that millions fit. */

const FILL_MAX = 0.6;

export class HashSet {
  #slots = new Float64Array(1 << 16);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** True if it was not there. */
  add(text: string): boolean {
    if (this.#size > this.#slots.length * FILL_MAX) this.#grow();
    const added = this.#put(hash53(text));
    if (added) this.#size++;
    return added;
  }

  #put(hash: number): boolean {
    const slots = this.#slots;
    const mask = slots.length - 1;
    let place = (hash % 0x7fff_ffff) & mask;
    while (slots[place] !== 0) {
      if (slots[place] === hash) return false;
      place = (place + 1) & mask;
    }
    slots[place] = hash;
    return true;
  }

  #grow(): void {
    const old = this.#slots;
    this.#slots = new Float64Array(old.length * 2);
    for (const hash of old) if (hash !== 0) this.#put(hash);
  }
}

/** Two rounds of a multiplicative hash, never 0. */
function hash53(text: string): number {
  let high = 0xdeadbeef;
  let low = 0x41c6ce57;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    high = Math.imul(high ^ code, 2_654_435_761);
    low = Math.imul(low ^ code, 1_597_334_677);
  }
  high =
    Math.imul(high ^ (high >>> 16), 2_246_822_507) ^ Math.imul(low ^ (low >>> 13), 3_266_489_909);
  low =
    Math.imul(low ^ (low >>> 16), 2_246_822_507) ^ Math.imul(high ^ (high >>> 13), 3_266_489_909);
  return 4_294_967_296 * (2_097_151 & low) + (high >>> 0) + 1;
}
