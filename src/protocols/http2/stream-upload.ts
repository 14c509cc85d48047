/** Adapts an HTTP/2 stream as the target of a body pump. */

import type { PumpTarget } from "../http/body-pump.ts";
import type { Http2Session } from "./session.ts";
import type { Http2Stream } from "./stream.ts";

export class StreamUpload implements PumpTarget {
  readonly #session: Http2Session;
  readonly #stream: Http2Stream;

  constructor(session: Http2Session, stream: Http2Stream) {
    this.#session = session;
    this.#stream = stream;
  }

  write(piece: Uint8Array | string): boolean {
    const bytes = typeof piece === "string" ? Buffer.from(piece) : piece;
    return this.#session.sendPiece(this.#stream, bytes);
  }

  /** Writes of one turn are combined anyway. */
  cork(): void {}
  uncork(): void {}

  on(_event: "drain", listener: () => void): void {
    this.#stream.onDrained = listener;
  }

  off(): void {
    this.#stream.onDrained = null;
  }
}
