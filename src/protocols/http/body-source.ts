/**
 * Bodies that are not kept in memory as a whole: they are read piece by piece while they are sent, so that an upload of
 * any length costs one piece of memory.
 */

import { open } from "node:fs/promises";
import { Readable } from "node:stream";

/** Bytes of a file to read at once. */
const PIECE_BYTES = 64 * 1024;
/** Shorter files are read once before the loop and sent like any bytes. */
export const IN_MEMORY_BYTES_MAX = 1024 * 1024;

export interface BodySource {
  /** Sent as Content-Length; null when unknown, in which case HTTP/1.1 sends chunks. */
  readonly length: number | null;
  /** Can be read more than once: for a redirect, a retry, or the next iteration. */
  readonly replayable: boolean;
  /** Throws when it cannot be read a second time. */
  read(): AsyncIterable<Uint8Array>;
  /**
   * Called when the call is over. Closes a stream that was never read; otherwise a call without a connection would leak
   * a file descriptor.
   */
  release?(): void;
}

/** A body: bytes, or a source of them. */
export type BodyContent = Buffer | BodySource;

export function isSource(content: BodyContent | null): content is BodySource {
  return content !== null && !(content instanceof Uint8Array);
}

/** A file that is opened for each request. */
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
        // Allocate a buffer for each piece, because the socket may still use the previous one.
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

/** A user-provided stream: it can be read once, and its length is unknown. */
export class StreamSource implements BodySource {
  readonly replayable = false;
  readonly length: number | null;
  readonly #pieces: AsyncIterable<unknown>;
  #read = false;

  constructor(pieces: AsyncIterable<unknown>, length: number | null = null) {
    this.#pieces = pieces;
    this.length = length;
  }

  /** The same stream with a known length. */
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
    // Ignore later errors of the stream; no call is left to report them.
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

/** Concatenation of several contents: the parts of a form. */
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

/** Reads the whole source; only for short ones. */
export async function readWhole(source: BodySource): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of source.read()) pieces.push(piece);
  return Buffer.concat(pieces);
}
