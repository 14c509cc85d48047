/**
 * Small byte arrays carved out of larger blocks. An array of its own costs V8 an allocation outside the
 * heap (about half a microsecond); a view of a block costs a tenth of that, and packets are made by the
 * hundred thousand. A block is freed when its last view is.
 */

const BLOCK_BYTES = 65_536;
const CARVED_BYTES_MAX = 4_096;

let block = new ArrayBuffer(BLOCK_BYTES);
let used = 0;

/** Zeroed bytes of their own: no two calls share any. */
export function carve(length: number): Uint8Array {
  if (length > CARVED_BYTES_MAX) return new Uint8Array(length);
  if (used + length > BLOCK_BYTES) {
    block = new ArrayBuffer(BLOCK_BYTES);
    used = 0;
  }
  const bytes = new Uint8Array(block, used, length);
  // Whole words, so that views stay aligned.
  used += (length + 7) & ~7;
  return bytes;
}
