/**
 * Latencies of one short window: 32 cells per doubling (3 % wide), kept as one dense stretch from
 * the lowest to the highest cell seen, so that an ordinary window takes some hundred bytes.
 */

import { cellLow } from "./histogram.ts";

const BITS = 5;
const PER_OCTAVE = 1 << BITS;
/** 2^39 µs is the end of the fine histogram. */
export const COARSE_CELLS = (39 - BITS + 1) * PER_OCTAVE;

/** The coarse cell of a cell of the fine histogram. */
export function coarseOf(fineCell: number): number {
  const value = cellLow(fineCell);
  if (value < PER_OCTAVE) return value;
  const octave = Math.floor(Math.log2(value));
  return (octave - BITS + 1) * PER_OCTAVE + Math.floor(value / 2 ** (octave - BITS)) - PER_OCTAVE;
}

/** Microseconds at the middle of a coarse cell. */
export function coarseMiddle(cell: number): number {
  if (cell < PER_OCTAVE) return cell;
  const width = 2 ** (Math.floor(cell / PER_OCTAVE) - 1);
  return ((cell % PER_OCTAVE) + PER_OCTAVE) * width + (width - 1) / 2;
}

export class CoarseCells {
  #low = 0;
  #counts = new Uint32Array(0);
  #total = 0;

  get total(): number {
    return this.#total;
  }

  add(cell: number, count: number): void {
    if (count === 0) return;
    if (cell < this.#low || cell >= this.#low + this.#counts.length) this.#stretch(cell);
    const at = cell - this.#low;
    this.#counts[at] = (this.#counts[at] ?? 0) + count;
    this.#total += count;
  }

  addAll(other: CoarseCells): void {
    for (const [at, count] of other.#counts.entries()) this.add(other.#low + at, count);
  }

  clear(): void {
    this.#low = 0;
    this.#counts = new Uint32Array(0);
    this.#total = 0;
  }

  /** Milliseconds; null when empty. */
  quantileMs(fraction: number): number | null {
    if (this.#total === 0) return null;
    const rank = Math.max(1, Math.ceil(fraction * this.#total - 1e-9));
    let seen = 0;
    for (const [at, count] of this.#counts.entries()) {
      seen += count;
      if (seen >= rank) return coarseMiddle(this.#low + at) / 1_000;
    }
    return null;
  }

  #stretch(cell: number): void {
    // A little room on the side that grows, so that neighbours do not each copy the whole.
    const empty = this.#counts.length === 0;
    const end = this.#low + this.#counts.length;
    const low = empty ? cell : cell < this.#low ? Math.max(0, cell - 8) : this.#low;
    const high = empty ? cell + 1 : cell >= end ? Math.min(COARSE_CELLS, cell + 9) : end;
    const grown = new Uint32Array(high - low);
    if (!empty) grown.set(this.#counts, this.#low - low);
    this.#low = low;
    this.#counts = grown;
  }
}
