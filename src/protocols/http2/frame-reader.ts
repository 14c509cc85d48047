/**
 * Splits received bytes into frames. Content is passed on as it arrives; every other payload is delivered whole, from
 * the read buffer itself where it is complete, and must be processed before the callback returns.
 */

import { DATA, FRAME_HEAD_BYTES, PADDED } from "./frames.ts";
import { FRAME_BYTES_MAX } from "./limits.ts";

export interface FrameHead {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly length: number;
}

export interface FrameListener {
  /** Called before any of the payload; returns false to stop reading because the connection is over. */
  frameBegins(head: FrameHead): boolean;
  /** bytes[from, end) is part of the content of the current DATA frame. */
  content(head: FrameHead, bytes: Buffer, from: number, end: number): boolean;
  /** Complete payload of a frame. */
  frameCame(head: FrameHead, bytes: Buffer, from: number, end: number): boolean;
  frameTooLong(length: number): void;
}

interface MutableHead {
  type: number;
  flags: number;
  stream: number;
  length: number;
}

export class FrameReader {
  readonly #listener: FrameListener;
  readonly #head: MutableHead = { type: 0, flags: 0, stream: 0, length: 0 };
  /** Beginning of a frame head or payload that is not complete yet. */
  #begun: Buffer | null = null;
  #begunBytes = 0;
  /** Remaining bytes of the payload; -1 between frames. */
  #left = -1;
  #streamed = false;

  constructor(listener: FrameListener) {
    this.#listener = listener;
  }

  read(bytes: Buffer, from: number, end: number): void {
    let at = from;
    while (at < end || this.#left === 0) {
      if (this.#left < 0) {
        at = this.#readHead(bytes, at, end);
        if (this.#left < 0) return;
        if (!this.#begin()) return;
        continue;
      }
      const until = Math.min(end, at + this.#left);
      if (!(this.#streamed ? this.#pass(bytes, at, until) : this.#collect(bytes, at, until)))
        return;
      at = until;
    }
  }

  /** Returns the index after the head; `#left` stays -1 while the head is incomplete. */
  #readHead(bytes: Buffer, at: number, end: number): number {
    if (this.#begunBytes === 0 && end - at >= FRAME_HEAD_BYTES) {
      this.#setHead(bytes, at);
      return at + FRAME_HEAD_BYTES;
    }
    this.#begun ??= Buffer.allocUnsafe(FRAME_HEAD_BYTES);
    const count = Math.min(FRAME_HEAD_BYTES - this.#begunBytes, end - at);
    bytes.copy(this.#begun, this.#begunBytes, at, at + count);
    this.#begunBytes += count;
    if (this.#begunBytes === FRAME_HEAD_BYTES) {
      this.#setHead(this.#begun, 0);
      this.#begun = null;
      this.#begunBytes = 0;
    }
    return at + count;
  }

  #setHead(bytes: Buffer, at: number): void {
    const head = this.#head;
    head.length = bytes.readUIntBE(at, 3);
    head.type = bytes[at + 3] ?? 0;
    head.flags = bytes[at + 4] ?? 0;
    head.stream = bytes.readUInt32BE(at + 5) & 0x7fffffff;
    this.#left = head.length;
  }

  #begin(): boolean {
    const head = this.#head;
    if (head.length > FRAME_BYTES_MAX) {
      this.#listener.frameTooLong(head.length);
      return false;
    }
    // Padding is at both ends of a payload and rare; deliver such frames whole.
    this.#streamed = head.type === DATA && (head.flags & PADDED) === 0;
    return this.#listener.frameBegins(head);
  }

  #pass(bytes: Buffer, from: number, end: number): boolean {
    this.#left -= end - from;
    if (end > from && !this.#listener.content(this.#head, bytes, from, end)) return false;
    return this.#left > 0 || this.#ended(bytes, end, end);
  }

  #collect(bytes: Buffer, from: number, end: number): boolean {
    const count = end - from;
    this.#left -= count;
    if (this.#left === 0 && this.#begun === null) return this.#ended(bytes, from, end);
    this.#begun ??= Buffer.allocUnsafe(this.#head.length);
    bytes.copy(this.#begun, this.#begunBytes, from, end);
    this.#begunBytes += count;
    if (this.#left > 0) return true;
    const payload = this.#begun;
    this.#begun = null;
    this.#begunBytes = 0;
    return this.#ended(payload, 0, payload.length);
  }

  #ended(bytes: Buffer, from: number, end: number): boolean {
    this.#left = -1;
    return this.#listener.frameCame(this.#head, bytes, from, end);
  }
}
