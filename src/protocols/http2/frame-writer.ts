/**
 * Sends header blocks, and content as far as the server's windows and the socket allow. Everything that is sent in one
 * turn of the loop is combined into one write.
 */

import { type Deferred, turn } from "../net/turn.ts";
import * as f from "./frames.ts";
import { type ConstantFields, HpackEncoder } from "./hpack/encoder.ts";
import { FRAME_BYTES_MAX } from "./limits.ts";
import type { Http2Stream } from "./stream.ts";

/** A request without its body. */
export interface RequestHead {
  readonly constant: ConstantFields;
  readonly path: string;
  /** "" for none. */
  readonly cookies: string;
  /** "" for none. */
  readonly traceparent: string;
  readonly isHead: boolean;
}

export interface FrameCarrier {
  /** Returns false when the socket's buffer is full; `resume` is called when it drains. */
  write(bytes: Buffer): boolean;
}

/** Frames of an upload to buffer until the end of the turn, before the socket's backpressure is checked. */
const FLUSH_FRAMES = 8;

export class FrameWriter {
  /** Send window of the connection. */
  window = f.FIRST_WINDOW_BYTES;
  /** Initial send window of a new stream. */
  firstStreamWindow = f.FIRST_WINDOW_BYTES;
  /** Content was sent since the last check. */
  progressed = false;
  readonly #carrier: FrameCarrier;
  readonly #encoder = new HpackEncoder();
  /** Streams with content to send but no window. */
  readonly #blocked = new Set<Http2Stream>();
  #out: Buffer[] = [];
  #isHolding = false;
  #scheduled = false;
  #full = false;
  #closed = false;
  readonly #flushing: Deferred = {
    resume: () => {
      this.#scheduled = false;
      this.flush();
    },
  };

  constructor(carrier: FrameCarrier) {
    this.#carrier = carrier;
  }

  send(bytes: Buffer): void {
    this.#out.push(bytes);
    if (this.#isHolding || this.#scheduled) return;
    this.#scheduled = true;
    if (turn.holdsWrites) turn.writeLater(this.#flushing);
    else process.nextTick(this.#flushing.resume);
  }

  /** Buffers everything until `release`. */
  hold(): void {
    this.#isHolding = true;
  }

  release(): void {
    this.#isHolding = false;
    this.flush();
  }

  flush(): void {
    const out = this.#out;
    if (out.length === 0 || this.#closed) return;
    this.#out = [];
    const [only] = out;
    const bytes = out.length === 1 && only !== undefined ? only : Buffer.concat(out);
    if (!this.#carrier.write(bytes)) this.#full = true;
  }

  /** The socket accepts more. */
  resume(): void {
    this.#full = false;
    this.unblock();
  }

  close(): void {
    this.#closed = true;
    this.#out = [];
    this.#blocked.clear();
  }

  /** Applies the server's limit on the header table. */
  limitTable(bytes: number): void {
    this.#encoder.limit(bytes);
  }

  sendHead(stream: Http2Stream, head: RequestHead): void {
    const bytes = this.#encoder.encode(head, f.FRAME_HEAD_BYTES);
    const end = stream.sent ? f.END_STREAM : 0;
    const length = bytes.length - f.FRAME_HEAD_BYTES;
    if (length <= FRAME_BYTES_MAX) {
      f.writeHead(bytes, 0, f.HEADERS, f.END_HEADERS | end, stream.id, length);
      this.send(bytes);
      return;
    }
    for (let at = f.FRAME_HEAD_BYTES; at < bytes.length; at += FRAME_BYTES_MAX) {
      const part = bytes.subarray(at, at + FRAME_BYTES_MAX);
      const isFirst = at === f.FRAME_HEAD_BYTES;
      const isLast = at + part.length === bytes.length;
      const flags = (isFirst ? end : 0) | (isLast ? f.END_HEADERS : 0);
      const type = isFirst ? f.HEADERS : f.CONTINUATION;
      const split = f.frame(type, flags, stream.id, part.length);
      part.copy(split, f.FRAME_HEAD_BYTES);
      this.send(split);
    }
  }

  /** Sends as much as windows and socket allow. */
  sendContent(stream: Http2Stream): void {
    while (!stream.sent && (stream.hasContent || stream.complete)) {
      const room = Math.min(stream.sendWindow, this.window, FRAME_BYTES_MAX);
      const count = Math.min(room, stream.available);
      if (this.#full || (count <= 0 && stream.hasContent)) {
        this.#blocked.add(stream);
        return;
      }
      this.#sendPiece(stream, count);
      if (this.#out.length >= FLUSH_FRAMES) this.flush();
    }
    this.#blocked.delete(stream);
    const { onDrained } = stream;
    stream.onDrained = null;
    onDrained?.();
  }

  #sendPiece(stream: Http2Stream, count: number): void {
    const bytes = f.frame(f.DATA, 0, stream.id, count);
    stream.take(bytes, f.FRAME_HEAD_BYTES, count);
    stream.sendWindow -= count;
    this.window -= count;
    this.progressed = true;
    if (stream.complete && !stream.hasContent) {
      stream.sent = true;
      bytes[4] = f.END_STREAM;
    }
    this.send(bytes);
  }

  /** Continues the stream if it was blocked. */
  retry(stream: Http2Stream): void {
    if (this.#blocked.has(stream)) this.sendContent(stream);
  }

  unblock(): void {
    for (const stream of [...this.#blocked]) this.sendContent(stream);
  }

  forget(stream: Http2Stream): void {
    this.#blocked.delete(stream);
  }
}
