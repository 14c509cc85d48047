/**
 * Length-prefixed frames on a byte stream: four bytes big-endian, then that many bytes. (FRAME-1..6)
 *
 * The reader turns any cutting of the stream into the same sequence of frames. It holds at most one
 * frame plus the chunk in hand, and refuses a length before it keeps a byte of it. The first four
 * bytes of a connection may instead be `PING`, a probe of discovery: as a length that would be 1.3 GB,
 * so the two can share a port. (BOOT-3)
 */

import { assert } from "../core/base/assert.ts";
import { carve } from "../core/base/slab.ts";
import { FRAME_BYTES_MAX } from "./limits.ts";

const PREFIX_BYTES = 4;
export const PROBE = Uint8Array.of(0x50, 0x49, 0x4e, 0x47); // PING
export const PROBE_ANSWER = Uint8Array.of(0x50, 0x4f, 0x4e, 0x47); // PONG

export type FrameEvent =
  | { readonly kind: "frame"; readonly payload: Uint8Array }
  | { readonly kind: "probe" }
  /** The stream cannot be trusted any more: close it. */
  | { readonly kind: "refused"; readonly problem: string };

export function frame(payload: Uint8Array, bytesMax = FRAME_BYTES_MAX): Uint8Array {
  assert(payload.length > 0 && payload.length <= bytesMax, "a frame holds 1 byte to its maximum");
  const bytes = carve(PREFIX_BYTES + payload.length);
  bytes[0] = payload.length >>> 24;
  bytes[1] = payload.length >>> 16;
  bytes[2] = payload.length >>> 8;
  bytes[3] = payload.length;
  bytes.set(payload, PREFIX_BYTES);
  return bytes;
}

export class FrameReader {
  #bytesMax: number;
  readonly #prefix = new Uint8Array(PREFIX_BYTES);
  #prefixFill = 0;
  #payload: Uint8Array | null = null;
  #payloadFill = 0;
  #first = true;
  #refused = false;

  constructor(bytesMax = FRAME_BYTES_MAX) {
    this.#bytesMax = bytesMax;
  }

  /** Takes effect with the next frame: an authenticated peer may send larger ones. */
  allow(bytesMax: number): void {
    this.#bytesMax = bytesMax;
  }

  /** True between the first byte of a frame and its last: a stall here is worth a timeout. */
  get midFrame(): boolean {
    return this.#prefixFill > 0 || this.#payload !== null;
  }

  push(chunk: Uint8Array): readonly FrameEvent[] {
    const events: FrameEvent[] = [];
    let at = 0;
    while (at < chunk.length && !this.#refused) {
      at = this.#payload === null ? this.#readPrefix(chunk, at, events) : this.#fill(chunk, at);
      const payload = this.#payload;
      if (payload !== null && this.#payloadFill === payload.length) {
        events.push({ kind: "frame", payload });
        this.#payload = null;
      }
    }
    return events;
  }

  #readPrefix(chunk: Uint8Array, from: number, events: FrameEvent[]): number {
    let at = from;
    while (at < chunk.length && this.#prefixFill < PREFIX_BYTES) {
      this.#prefix[this.#prefixFill++] = chunk[at++] ?? 0;
    }
    if (this.#prefixFill < PREFIX_BYTES) return at;
    this.#prefixFill = 0;
    if (this.#first && this.#prefix.every((byte, i) => byte === PROBE[i])) {
      events.push({ kind: "probe" });
      return at;
    }
    const isFirst = this.#first;
    this.#first = false;
    const [a = 0, b = 0, c = 0, d = 0] = this.#prefix;
    const length = a * 2 ** 24 + ((b << 16) | (c << 8) | d);
    if (length === 0 || length > this.#bytesMax) {
      this.#refused = true;
      const problem = isFirst
        ? `something else than Hyperscale is there: it began with ${shown(this.#prefix)}`
        : `a frame of ${length} bytes; 1 to ${this.#bytesMax} are allowed`;
      events.push({ kind: "refused", problem });
      return at;
    }
    this.#payload = carve(length);
    this.#payloadFill = 0;
    return at;
  }

  #fill(chunk: Uint8Array, at: number): number {
    const payload = this.#payload as Uint8Array;
    const count = Math.min(chunk.length - at, payload.length - this.#payloadFill);
    payload.set(chunk.subarray(at, at + count), this.#payloadFill);
    this.#payloadFill += count;
    return at + count;
  }
}

/** Most protocols begin with letters, which are more readable than their codes. */
function shown(bytes: Uint8Array): string {
  const isText = bytes.every((byte) => byte >= 0x20 && byte < 0x7f);
  if (isText) return JSON.stringify(String.fromCharCode(...bytes));
  return `the bytes ${[...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join(" ")}`;
}
