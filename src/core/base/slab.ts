/**
 * Small byte arrays carved out of larger blocks. A separate array costs V8 an allocation outside the heap (about half a
 * microsecond); a view of a block costs a tenth of that, and packets are made by the hundred thousand. A block is freed
 * when its last view is.
 */

const BLOCK_BYTES = 65_536;
const CARVED_BYTES_MAX = 4_096;

class Slab {
  #block = new ArrayBuffer(BLOCK_BYTES);
  #used = 0;

  carve(length: number): Uint8Array {
    if (length > CARVED_BYTES_MAX) return new Uint8Array(length);
    if (this.#used + length > BLOCK_BYTES) {
      this.#block = new ArrayBuffer(BLOCK_BYTES);
      this.#used = 0;
    }
    const bytes = new Uint8Array(this.#block, this.#used, length);
    // Whole words, so that views stay aligned.
    this.#used += (length + 7) & ~7;
    return bytes;
  }
}

const kept = new Slab();
/** Apart, so that what is kept for long does not keep what was only written in. */
const scratch = new Slab();

/** Zeroed bytes of their own: no two calls share any. */
export function carve(length: number): Uint8Array {
  return kept.carve(length);
}

/** The same, for short-lived bytes. */
export function carveScratch(length: number): Uint8Array {
  return scratch.carve(length);
}
