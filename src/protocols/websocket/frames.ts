/**
 * Frames of RFC 6455 §5.2 that need no state: a whole message in one frame, as nearly all are. They are encoded and
 * decoded here, in one piece and without copies; everything else is left to the ws package, whose position
 * `FrameBorders` tracks.
 */

import { isUtf8 } from "node:buffer";
import { randomFillSync } from "node:crypto";

const FINAL = 0x80;
const TEXT = 1;
const BINARY = 2;
const FIRST_CONTROL = 8;
const MASKED = 0x80;
const MASK_BYTES = 4;
/** Longer ones have an extended length of two or eight bytes. */
const SHORT_BYTES_MAX = 125;
const LENGTH_IN_TWO = 126;
const LENGTH_IN_EIGHT = 127;
const TWO_BYTES_MAX = 0xffff;
/** Masks must be unpredictable; drawing each of them individually would cost more than the frame. */
const RANDOM_BYTES = 8 * 1024;

const random = Buffer.alloc(RANDOM_BYTES);
let randomUsed = RANDOM_BYTES;

/** Encodes a whole message as a masked client frame; null when it is too long for that. */
export function messageFrame(payload: string | Uint8Array): Buffer | null {
  if (payload.length > TWO_BYTES_MAX) return null;
  if (typeof payload !== "string") return frameOf(FINAL | BINARY, payload);
  return asciiFrame(payload) ?? frameOf(FINAL | TEXT, Buffer.from(payload));
}

/** For plain ASCII, bytes and characters are the same. */
function asciiFrame(text: string): Buffer | null {
  const frame = frameFor(FINAL | TEXT, text.length);
  const at = frame.length - text.length;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code > 0x7f) return null;
    frame[at + i] = code ^ (frame[at - MASK_BYTES + (i & 3)] as number);
  }
  return frame;
}

function frameOf(first: number, bytes: Uint8Array): Buffer | null {
  if (bytes.length > TWO_BYTES_MAX) return null;
  const frame = frameFor(first, bytes.length);
  const at = frame.length - bytes.length;
  for (let i = 0; i < bytes.length; i++)
    frame[at + i] = (bytes[i] as number) ^ (frame[at - MASK_BYTES + (i & 3)] as number);
  return frame;
}

/** A frame with its head and mask, and space for the payload. */
function frameFor(first: number, length: number): Buffer {
  const isShort = length <= SHORT_BYTES_MAX;
  const maskAt = isShort ? 2 : 4;
  const frame = Buffer.allocUnsafe(maskAt + MASK_BYTES + length);
  frame[0] = first;
  frame[1] = MASKED | (isShort ? length : LENGTH_IN_TWO);
  if (!isShort) {
    frame[2] = length >> 8;
    frame[3] = length & 0xff;
  }
  if (randomUsed === RANDOM_BYTES) {
    randomFillSync(random);
    randomUsed = 0;
  }
  for (let i = 0; i < MASK_BYTES; i++) frame[maskAt + i] = random[randomUsed++] as number;
  return frame;
}

interface MessageSink {
  /** Payload of one frame; the receiver may keep the bytes. */
  message(bytes: Buffer, isBinary: boolean): void;
  /** The reader needs no further messages. */
  readonly over: boolean;
}

/**
 * Delivers the complete messages from the start of `buffer`, and returns the index of the first frame that is of
 * another kind, incomplete, longer than `bytesMax`, or malformed.
 */
export function readMessages(
  buffer: Buffer,
  end: number,
  bytesMax: number,
  sink: MessageSink,
): number {
  let at = 0;
  while (end - at >= 2 && !sink.over) {
    const first = buffer[at] ?? 0;
    const isBinary = first === (FINAL | BINARY);
    if (!isBinary && first !== (FINAL | TEXT)) return at;
    let length = buffer[at + 1] ?? 0;
    let from = at + 2;
    if (length === LENGTH_IN_TWO) {
      if (end - at < 4) return at;
      length = buffer.readUInt16BE(from);
      from += 2;
      // Masked, with a length of eight bytes, or with a length that is not minimal.
    } else if (length > SHORT_BYTES_MAX) return at;
    if (length > bytesMax || from + length > end) return at;
    const bytes = Buffer.allocUnsafe(length);
    buffer.copy(bytes, 0, from, from + length);
    if (!isBinary && !isUtf8(bytes)) return at;
    at = from + length;
    sink.message(bytes, isBinary);
  }
  return at;
}

/** Tracks the frames that another parser reads, to know when none is unfinished. */
export class FrameBorders {
  /** Head of the current frame. */
  readonly #head: number[] = [];
  /** Remaining bytes of its payload. */
  #left = 0;
  /** A message continues in further frames. */
  #inMessage = false;

  /** Between two messages. */
  get between(): boolean {
    return this.#left === 0 && this.#head.length === 0 && !this.#inMessage;
  }

  read(bytes: Uint8Array): void {
    let at = 0;
    while (at < bytes.length) {
      const passed = Math.min(this.#left, bytes.length - at);
      this.#left -= passed;
      at += passed;
      if (at < bytes.length) this.#headByte(bytes[at++] ?? 0);
    }
  }

  #headByte(byte: number): void {
    const head = this.#head;
    head.push(byte);
    const [first = 0, second = 0] = head;
    if (head.length < 2) return;
    const short = second & ~MASKED;
    const lengthBytes = short === LENGTH_IN_TWO ? 2 : short === LENGTH_IN_EIGHT ? 8 : 0;
    const maskBytes = (second & MASKED) === 0 ? 0 : MASK_BYTES;
    if (head.length < 2 + lengthBytes + maskBytes) return;
    const length = head.slice(2, 2 + lengthBytes).reduce((sum, next) => sum * 256 + next, 0);
    this.#left = lengthBytes === 0 ? short : length;
    if ((first & 0x0f) < FIRST_CONTROL) this.#inMessage = (first & FINAL) === 0;
    head.length = 0;
  }
}
