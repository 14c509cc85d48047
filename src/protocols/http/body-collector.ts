/**
 * Collects the pieces of a kept body in one growing buffer. With a list of pieces, a server that sends one byte at a
 * time would cost a hundred bytes of memory for each.
 */

/** Initial capacity from the second piece on. A body in one piece is allocated at its size, from Node's buffer pool. */
const GROWN_BYTES = 4 * 1024;

export class BodyCollector {
  readonly #bytesMax: number;
  #bytes: Buffer | null = null;
  #length = 0;
  #tooLong = false;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Copies source[from, end). */
  add(source: Buffer, from: number, end: number): void {
    const needed = this.#length + end - from;
    if (this.#tooLong || needed > this.#bytesMax) {
      this.#tooLong = true;
      this.#bytes = null;
      return;
    }
    if (this.#bytes === null) this.#bytes = Buffer.allocUnsafe(needed);
    else if (needed > this.#bytes.length) {
      const grown = Buffer.allocUnsafe(Math.max(needed, this.#bytes.length * 2, GROWN_BYTES));
      this.#bytes.copy(grown, 0, 0, this.#length);
      this.#bytes = grown;
    }
    source.copy(this.#bytes, this.#length, from, end);
    this.#length = needed;
  }

  /** Returns the body, or null when it exceeded the limit. */
  take(): Buffer | null {
    if (this.#tooLong) return null;
    return this.#bytes === null ? EMPTY : this.#bytes.subarray(0, this.#length);
  }
}

const EMPTY = Buffer.alloc(0);
