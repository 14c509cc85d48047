/**
 * Incremental parser of a chunked body (RFC 9112 §7.1). Takes pieces of any size, passes content to `onData`, and stops
 * after the trailers.
 */

import { TOKEN, VALUE } from "./head.ts";
import { CHUNK_EXTENSION_BYTES_MAX, CHUNK_SIZE_DIGITS_MAX, TRAILER_BYTES_MAX } from "./limits.ts";

const SIZE = 0;
const EXTENSION = 1;
const SIZE_LF = 2;
const DATA = 3;
const DATA_CR = 4;
const DATA_LF = 5;
const TRAILER_START = 6;
const TRAILER_NAME = 7;
const TRAILER_VALUE = 8;
const TRAILER_LF = 9;
const END_LF = 10;

const CR = 13;
const LF = 10;
const COLON = 58;
const SEMICOLON = 59;

type ChunkedOutcome =
  /** All bytes were consumed and the body continues. */
  "more" | "done" | "broken";

export class ChunkedReader {
  /** Bytes of the last `feed` that belonged to the body; the rest follows its end. */
  taken = 0;
  problem: string | null = null;
  #state = SIZE;
  #digits = 0;
  #left = 0;
  /** Total over all chunks of the body: tiny chunks with long extensions cost more than they carry. */
  #extensionBytes = 0;
  #trailerBytes = 0;

  reset(): void {
    this.#state = SIZE;
    this.#digits = 0;
    this.#left = 0;
    this.#extensionBytes = 0;
    this.#trailerBytes = 0;
    this.problem = null;
  }

  feed(
    buffer: Buffer,
    from: number,
    end: number,
    onData: (from: number, end: number) => void,
  ): ChunkedOutcome {
    let at = from;
    while (at < end) {
      if (this.#state === DATA) {
        const size = Math.min(this.#left, end - at);
        onData(at, at + size);
        at += size;
        this.#left -= size;
        if (this.#left === 0) this.#state = DATA_CR;
        continue;
      }
      const byte = buffer[at++] as number;
      if (this.#state === END_LF) {
        if (byte !== LF) return this.#refuse("the last chunk does not end with CRLF");
        this.taken = at - from;
        return "done";
      }
      if (!this.#frame(byte)) return "broken";
    }
    this.taken = at - from;
    return "more";
  }

  /** Parses one byte of framing; returns false when it is malformed. */
  #frame(byte: number): boolean {
    switch (this.#state) {
      case SIZE:
        return this.#sizeByte(byte);
      case EXTENSION:
        if (byte === CR) this.#state = SIZE_LF;
        else if (VALUE[byte] !== 1)
          return this.#broken("a chunk extension contains a control character");
        else if (++this.#extensionBytes > CHUNK_EXTENSION_BYTES_MAX)
          return this.#broken("the chunk extensions are too long");
        return true;
      case SIZE_LF:
        if (byte !== LF) return this.#broken("a chunk size line ends without LF");
        this.#digits = 0;
        this.#state = this.#left === 0 ? TRAILER_START : DATA;
        return true;
      case DATA_CR:
        if (byte !== CR) return this.#broken("a chunk is longer than its size");
        this.#state = DATA_LF;
        return true;
      case DATA_LF:
        if (byte !== LF) return this.#broken("a chunk ends without LF");
        this.#state = SIZE;
        return true;
      default:
        return this.#trailerByte(byte);
    }
  }

  #sizeByte(byte: number): boolean {
    const digit = hexDigit(byte);
    if (digit >= 0) {
      if (++this.#digits > CHUNK_SIZE_DIGITS_MAX) return this.#broken("a chunk size is too large");
      this.#left = this.#left * 16 + digit;
      return true;
    }
    if (this.#digits === 0) return this.#broken("a chunk size is missing");
    if (byte === CR) this.#state = SIZE_LF;
    else if (byte === SEMICOLON) this.#state = EXTENSION;
    else return this.#broken("a chunk size is not hexadecimal");
    return true;
  }

  /** Trailers are skipped, but must follow the rules of header lines. */
  #trailerByte(byte: number): boolean {
    if (++this.#trailerBytes > TRAILER_BYTES_MAX) return this.#broken("the trailers are too long");
    switch (this.#state) {
      case TRAILER_START:
        if (byte === CR) this.#state = END_LF;
        else if (TOKEN[byte] === 1) this.#state = TRAILER_NAME;
        else return this.#broken("a trailer has an invalid name");
        return true;
      case TRAILER_NAME:
        if (byte === COLON) this.#state = TRAILER_VALUE;
        else if (TOKEN[byte] !== 1) return this.#broken("a trailer has an invalid name");
        return true;
      case TRAILER_VALUE:
        if (byte === CR) this.#state = TRAILER_LF;
        else if (VALUE[byte] !== 1) return this.#broken("a trailer contains a control character");
        return true;
      default:
        if (byte !== LF) return this.#broken("a trailer ends without LF");
        this.#state = TRAILER_START;
        return true;
    }
  }

  #broken(problem: string): false {
    this.problem = problem;
    return false;
  }

  #refuse(problem: string): "broken" {
    this.problem = problem;
    return "broken";
  }
}

function hexDigit(byte: number): number {
  if (byte >= 48 && byte <= 57) return byte - 48;
  const folded = byte | 0x20;
  return folded >= 97 && folded <= 102 ? folded - 87 : -1;
}
