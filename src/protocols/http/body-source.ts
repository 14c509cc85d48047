/**
 * Bodies that are not held in memory as a whole: they are read while they are sent, piece by piece, so
 * that one upload costs one piece of memory whatever its length.
 */

import { open } from "node:fs/promises";
import { Readable } from "node:stream";

/** How much of a file is read at once. */
const PIECE_BYTES = 64 * 1024;
/** What is shorter is read once before the loop and sent like any bytes. */
export const IN_MEMORY_BYTES_MAX = 1024 * 1024;

export interface BodySource {
  /** Goes out as Content-Length; null where nobody can know it: then HTTP/1.1 sends chunks. */
  readonly length: number | null;
  /** Can be read more than once: for a redirect, a new attempt, or the next iteration. */
  readonly replayable: boolean;
  /** Throws when it cannot be read again. */
  read(): AsyncIterable<Uint8Array>;
  /**
   * The call is over. A stream that nobody began to read holds on to what it was opened for: a call
   * that found no connection would cost a file descriptor.
   */
  release?(): void;
}

/** A body: bytes that are there, or a source of them. */
export type BodyContent = Buffer | BodySource;

export function isSource(content: BodyContent | null): content is BodySource {
  return content !== null && !(content instanceof Uint8Array);
}

/** A file that is read anew for each request. */
export class FileSource implements BodySource {
  readonly replayable = true;
  readonly length: number;
  readonly #path: string;

  constructor(path: string, length: number) {
    this.#path = path;
    this.length = length;
  }

  async *read(): AsyncIterable<Uint8Array> {
    const file = await open(this.#path, "r");
    try {
      for (;;) {
        // A buffer of its own for each piece: the socket may still hold the one before.
        const piece = Buffer.allocUnsafe(PIECE_BYTES);
        const { bytesRead } = await file.read(piece, 0, PIECE_BYTES);
        if (bytesRead === 0) return;
        yield piece.subarray(0, bytesRead);
      }
    } finally {
      await file.close();
    }
  }
}

export class BlobSource implements BodySource {
  readonly replayable = true;
  readonly length: number;
  readonly #blob: Blob;

  constructor(blob: Blob) {
    this.#blob = blob;
    this.length = blob.size;
  }

  read(): AsyncIterable<Uint8Array> {
    return this.#blob.stream();
  }
}

/** A stream that the user gave: it can be read once, and nobody knows its length. */
export class StreamSource implements BodySource {
  readonly replayable = false;
  readonly length: number | null;
  readonly #pieces: AsyncIterable<unknown>;
  #read = false;

  constructor(pieces: AsyncIterable<unknown>, length: number | null = null) {
    this.#pieces = pieces;
    this.length = length;
  }

  /** The same stream, by someone who knows how long it is. */
  withLength(length: number): StreamSource {
    return new StreamSource(this.#pieces, length);
  }

  read(): AsyncIterable<Uint8Array> {
    if (this.#read) {
      throw new Error(
        "the body is a stream that was already read, and cannot be sent again: " +
          "use file(…), a Blob or bytes, which can",
      );
    }
    this.#read = true;
    return bytesOf(this.#pieces);
  }

  release(): void {
    if (this.#read) return;
    this.#read = true;
    const pieces = this.#pieces;
    // What a stream of Node fails with from here on, nobody is left to hear.
    if (pieces instanceof Readable) pieces.on("error", () => undefined).destroy();
    else
      pieces[Symbol.asyncIterator]()
        .return?.()
        .catch(() => undefined);
  }
}

async function* bytesOf(pieces: AsyncIterable<unknown>): AsyncIterable<Uint8Array> {
  for await (const piece of pieces) {
    if (typeof piece === "string") yield Buffer.from(piece);
    else if (piece instanceof Uint8Array) yield piece;
    else if (piece instanceof ArrayBuffer) yield new Uint8Array(piece);
    else throw new TypeError(`a piece of the body is neither bytes nor text, but ${typeof piece}`);
  }
}

/** Several contents one after the other: the parts of a form. */
export class JoinedSource implements BodySource {
  readonly length: number | null;
  readonly replayable: boolean;
  readonly #parts: readonly BodyContent[];

  constructor(parts: readonly BodyContent[]) {
    this.#parts = parts;
    let length: number | null = 0;
    for (const part of parts) {
      length = length === null || part.length === null ? null : length + part.length;
    }
    this.length = length;
    this.replayable = parts.every((part) => !isSource(part) || part.replayable);
  }

  async *read(): AsyncIterable<Uint8Array> {
    for (const part of this.#parts) {
      if (isSource(part)) yield* part.read();
      else yield part;
    }
  }
}

/** All of it; for what is known to be short. */
export async function readWhole(source: BodySource): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of source.read()) pieces.push(piece);
  return Buffer.concat(pieces);
}
