/**
 * Messages out of a stream of bytes: what does not make a whole message yet is kept for the next read.
 * A parser that says how much it is missing is not asked again before that is there, so that a long
 * message costs its length once.
 */

/** Of what is kept between reads at first; it grows with what comes, never with what is promised. */
const KEPT_BYTES = 1_024;

export interface StreamParser {
  /**
   * Reads one message from `buffer` between `from` and `end`, valid only now. Gives where it ends; `from`
   * when it is not whole; -1 when it breaks the rules.
   */
  parse(buffer: Buffer, from: number, end: number): number;
}

export class StreamBuffer {
  /** Bytes of the message at the front, where its parser knows. */
  wanted = 0;
  readonly #parser: StreamParser;
  #kept = Buffer.alloc(0);
  #keptLength = 0;

  constructor(parser: StreamParser) {
    this.#parser = parser;
  }

  /** A message has begun and is not whole. */
  get begun(): boolean {
    return this.#keptLength > 0;
  }

  /** Bytes that wait for the rest of their message. */
  get length(): number {
    return this.#keptLength;
  }

  /** False when the rules were broken: nothing more may be read. */
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
