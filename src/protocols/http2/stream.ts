/** One request and its answer inside a connection: how far each side is, and what may still be sent. */

import type { Failure } from "../errors.ts";
import type { HeaderList } from "./hpack/header-list.ts";

/** Hears exactly one end of a stream (ended, reset or failed), unless it was let go before. */
export interface StreamListener {
  /** Those of the answer; informational ones (1xx) are not told. */
  headersCame(headers: HeaderList): void;
  /** bytes[from, end) is content; gone when this returns. */
  contentCame(bytes: Buffer, from: number, end: number): void;
  trailersCame?(trailers: HeaderList): void;
  /** All of the answer is here. */
  streamEnded(): void;
  /** `unseen`: the connection was closing, and the server has not looked at the request. */
  streamReset(code: number, unseen: boolean): void;
  streamFailed(failure: Failure): void;
}

export class Http2Stream {
  readonly id: number;
  /** The answer has no content whatever its headers say. */
  readonly isHead: boolean;
  /** Null once nobody wants to hear of it any more. */
  listener: StreamListener | null;
  sendWindow: number;
  /** Content that came since the server was last told that it may send more. */
  unacknowledged = 0;
  headers: HeaderList | null = null;
  informational = 0;
  received = 0;
  /** Everything of the request is sent. */
  sent = false;

  /** Pieces that are not sent yet, the first one from `#offset` on. */
  readonly #pieces: Uint8Array[] = [];
  #offset = 0;
  /** No further pieces come. */
  complete: boolean;
  /** Told when all pieces that were given are sent. */
  onDrained: (() => void) | null = null;

  constructor(id: number, listener: StreamListener, isHead: boolean, sendWindow: number) {
    this.id = id;
    this.listener = listener;
    this.isHead = isHead;
    this.sendWindow = sendWindow;
    this.complete = false;
  }

  get hasContent(): boolean {
    return this.#pieces.length > 0;
  }

  add(piece: Uint8Array): void {
    if (piece.length > 0) this.#pieces.push(piece);
  }

  /** Of the first piece, what is not sent yet. */
  get available(): number {
    return (this.#pieces[0]?.length ?? 0) - this.#offset;
  }

  /** Copies the next `bytes`, at most what is available, behind `at`. */
  take(into: Buffer, at: number, bytes: number): void {
    const piece = this.#pieces[0];
    if (piece === undefined) return;
    into.set(piece.subarray(this.#offset, this.#offset + bytes), at);
    this.#offset += bytes;
    if (this.#offset < piece.length) return;
    this.#pieces.shift();
    this.#offset = 0;
  }

  /** What is wrong with the length of an answer that has ended; null when nothing is. */
  get lengthProblem(): string | null {
    const { headers, isHead, received } = this;
    if (headers === null || isHead || headers.contentLength < 0) return null;
    if (headers.status === 204 || headers.status === 304) return null;
    return headers.contentLength === received
      ? null
      : `${received} bytes of content where ${headers.contentLength} were announced`;
  }
}
