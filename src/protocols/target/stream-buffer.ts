/**
 * Extracts messages from a byte stream: an incomplete message is kept for the next read. When a parser knows the
 * missing length, it is called again only once that is available, so that a long message costs its length once.
 */

/** Initial capacity between reads; it grows with received bytes, never with announced ones. */
const KEPT_BYTES = 1_024;

export interface StreamParser {
  /**
   * Parses one message from `buffer` between `from` and `end`, valid only now. Returns its end; `from` when it is
   * incomplete; -1 when it is malformed.
   */
  parse(buffer: Buffer, from: number, end: number): number;
}

export class StreamBuffer {
  /** Length of the first message, where its parser knows it. */
  wanted = 0;
  readonly #parser: StreamParser;
  #kept = Buffer.alloc(0);
  #keptLength = 0;

  constructor(parser: StreamParser) {
    this.#parser = parser;
  }

  /** A message is partially received. */
  get begun(): boolean {
    return this.#keptLength > 0;
  }

  /** Bytes of an incomplete message. */
  get length(): number {
    return this.#keptLength;
  }

  /** Returns false on malformed input, after which nothing more may be read. */
  feed(buffer: Buffer, end: number): boolean {
    if (this.#keptLength === 0) {
      const at = this.#run(buffer, end);
      if (at >= 0 && at < end) this.#keep(buffer, at, end);
      return at >= 0;
    }
    this.#keep(buffer, 0, end);
    if (this.#keptLength < this.wanted) return true;
    const length = this.#keptLength;
    const at = this.#run(this.#kept, length);
    if (at < 0) return false;
    this.#kept.copyWithin(0, at, length);
    this.#keptLength = length - at;
    return true;
  }

  #run(buffer: Buffer, end: number): number {
    let at = 0;
    while (at < end) {
      this.wanted = 0;
      const next = this.#parser.parse(buffer, at, end);
      if (next < 0) return -1;
      if (next === at) break;
      at = next;
    }
    return at;
  }

  #keep(buffer: Buffer, from: number, end: number): void {
    const length = this.#keptLength + end - from;
    if (length > this.#kept.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(KEPT_BYTES, 2 * length));
      this.#kept.copy(larger, 0, 0, this.#keptLength);
      this.#kept = larger;
    }
    buffer.copy(this.#kept, this.#keptLength, from, end);
    this.#keptLength = length;
  }
}
