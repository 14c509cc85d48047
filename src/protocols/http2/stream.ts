/** One request and its response on a connection: the state of each side, and the content still to be sent. */

import type { Failure } from "../errors.ts";
import type { HeaderList } from "./hpack/header-list.ts";

/** Receives exactly one end of a stream (ended, reset or failed), unless it was detached before. */
export interface StreamListener {
  /** Headers of the response; informational ones (1xx) are not reported. */
  headersCame(headers: HeaderList): void;
  /** bytes[from, end) is content; valid only until this returns. */
  contentCame(bytes: Buffer, from: number, end: number): void;
  trailersCame?(trailers: HeaderList): void;
  /** The response is complete. */
  streamEnded(): void;
  /** `unseen`: the connection was closing, and the server has not processed the request. */
  streamReset(code: number, unseen: boolean): void;
  streamFailed(failure: Failure): void;
}

export class Http2Stream {
  readonly id: number;
  /** The response has no content, whatever its headers say. */
  readonly isHead: boolean;
  /** Null once it was detached. */
  listener: StreamListener | null;
  sendWindow: number;
  /** Content received since the last window update. */
  unacknowledged = 0;
  headers: HeaderList | null = null;
  informational = 0;
  received = 0;
  /** The whole request is sent. */
  sent = false;

  /** Pieces that are not sent yet, the first one from `#offset` on. */
  readonly #pieces: Uint8Array[] = [];
  #offset = 0;
  /** No further pieces follow. */
  complete: boolean;
  /** Called when all given pieces are sent. */
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

  /** Unsent bytes of the first piece. */
  get available(): number {
    return (this.#pieces[0]?.length ?? 0) - this.#offset;
  }

  /** Copies the next `bytes`, at most `available`, to `at`. */
  take(into: Buffer, at: number, bytes: number): void {
    const piece = this.#pieces[0];
    if (piece === undefined) return;
    into.set(piece.subarray(this.#offset, this.#offset + bytes), at);
    this.#offset += bytes;
    if (this.#offset < piece.length) return;
    this.#pieces.shift();
    this.#offset = 0;
  }

  /** Mismatch between content and announced length of a complete response; null when they match. */
  get lengthProblem(): string | null {
    const { headers, isHead, received } = this;
    if (headers === null || isHead || headers.contentLength < 0) return null;
    if (headers.status === 204 || headers.status === 304) return null;
    return headers.contentLength === received
      ? null
      : `${received} bytes of content where ${headers.contentLength} were announced`;
  }
}
