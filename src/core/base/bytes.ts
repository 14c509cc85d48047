/**
 * Growing writer and bounded reader of bytes: unsigned LEB128 numbers up to 2^53, zig-zag signed
 * numbers, doubles, and length-prefixed UTF-8. The reader never throws: it turns `failed` and
 * answers zeros, so a decoder checks once at the end.
 */

import { assert } from "./assert.ts";

export class ByteWriter {
  #bytes: Uint8Array;
  #view: DataView;
  #length = 0;

  constructor(capacity = 256) {
    this.#bytes = new Uint8Array(capacity);
    this.#view = new DataView(this.#bytes.buffer);
  }

  get length(): number {
    return this.#length;
  }

  /** Forgets the content and keeps the memory. */
  clear(): void {
    this.#length = 0;
  }

  /** A copy of what was written. */
  take(): Uint8Array {
    return this.#bytes.slice(0, this.#length);
  }

  uint8(value: number): void {
    this.#reserve(1);
    this.#bytes[this.#length++] = value;
  }

  varint(value: number): void {
    assert(value >= 0 && Number.isSafeInteger(value), "a varint is a safe non-negative integer");
    this.#reserve(8);
    let rest = value;
    while (rest >= 0x80) {
      this.#bytes[this.#length++] = (rest % 0x80) | 0x80;
      rest = Math.floor(rest / 0x80);
    }
    this.#bytes[this.#length++] = rest;
  }

  signed(value: number): void {
    this.varint(value >= 0 ? value * 2 : -value * 2 - 1);
  }

  float64(value: number): void {
    this.#reserve(8);
    this.#view.setFloat64(this.#length, value, true);
    this.#length += 8;
  }

  bytes(value: Uint8Array): void {
    this.varint(value.length);
    this.#reserve(value.length);
    this.#bytes.set(value, this.#length);
    this.#length += value.length;
  }

  text(value: string): void {
    this.bytes(encodeUtf8(value));
  }

  #reserve(count: number): void {
    const needed = this.#length + count;
    if (needed <= this.#bytes.length) return;
    const grown = new Uint8Array(Math.max(needed, this.#bytes.length * 2));
    grown.set(this.#bytes);
    this.#bytes = grown;
    this.#view = new DataView(grown.buffer);
  }
}

export class ByteReader {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  #at = 0;
  #failed = false;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** True once anything was read past the end or out of range; all later answers are zeros. */
  get failed(): boolean {
    return this.#failed;
  }

  get remaining(): number {
    return this.#failed ? 0 : this.#bytes.length - this.#at;
  }

  uint8(): number {
    if (!this.#take(1)) return 0;
    return this.#bytes[this.#at++] ?? 0;
  }

  varint(): number {
    let value = 0;
    let scale = 1;
    for (let i = 0; i < 8; i++) {
      if (!this.#take(1)) return 0;
      const byte = this.#bytes[this.#at++] ?? 0;
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) {
        if (Number.isSafeInteger(value)) return value;
        break;
      }
      scale *= 0x80;
    }
    this.#failed = true;
    return 0;
  }

  signed(): number {
    const value = this.varint();
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }

  float64(): number {
    if (!this.#take(8)) return 0;
    const value = this.#view.getFloat64(this.#at, true);
    this.#at += 8;
    return value;
  }

  /** A view, not a copy. */
  bytes(lengthMax = this.remaining): Uint8Array {
    const length = this.varint();
    if (length > lengthMax || !this.#take(length)) {
      this.#failed = true;
      return new Uint8Array(0);
    }
    const value = this.#bytes.subarray(this.#at, this.#at + length);
    this.#at += length;
    return value;
  }

  text(lengthMax = this.remaining): string {
    return decodeUtf8(this.bytes(lengthMax));
  }

  #take(count: number): boolean {
    if (this.#failed || this.#at + count > this.#bytes.length) {
      this.#failed = true;
      return false;
    }
    return true;
  }
}

/** UTF-8 by hand: the pure rooms compile without the host's TextEncoder. Lone surrogates become U+FFFD. */
export function encodeUtf8(text: string): Uint8Array {
  const bytes = new Uint8Array(text.length * 3);
  let length = 0;
  for (const character of text) {
    let code = character.codePointAt(0) ?? 0xfffd;
    if (code >= 0xd800 && code <= 0xdfff) code = 0xfffd;
    if (code < 0x80) {
      bytes[length++] = code;
    } else if (code < 0x800) {
      bytes[length++] = 0xc0 | (code >> 6);
      bytes[length++] = 0x80 | (code & 0x3f);
    } else if (code < 0x10000) {
      bytes[length++] = 0xe0 | (code >> 12);
      bytes[length++] = 0x80 | ((code >> 6) & 0x3f);
      bytes[length++] = 0x80 | (code & 0x3f);
    } else {
      bytes[length++] = 0xf0 | (code >> 18);
      bytes[length++] = 0x80 | ((code >> 12) & 0x3f);
      bytes[length++] = 0x80 | ((code >> 6) & 0x3f);
      bytes[length++] = 0x80 | (code & 0x3f);
    }
  }
  return bytes.slice(0, length);
}

/** Invalid sequences become U+FFFD, one per offending byte. */
export function decodeUtf8(bytes: Uint8Array): string {
  let text = "";
  let at = 0;
  while (at < bytes.length) {
    const lead = bytes[at] ?? 0;
    const size =
      lead < 0x80
        ? 1
        : lead >= 0xc2 && lead < 0xe0
          ? 2
          : lead >= 0xe0 && lead < 0xf0
            ? 3
            : lead >= 0xf0 && lead < 0xf5
              ? 4
              : 0;
    const code = size === 0 ? -1 : decodePoint(bytes, at, size);
    text += String.fromCodePoint(code < 0 ? 0xfffd : code);
    at += code < 0 ? 1 : size;
  }
  return text;
}

function decodePoint(bytes: Uint8Array, at: number, size: number): number {
  const lead = bytes[at] ?? 0;
  if (size === 1) return lead;
  let code = lead & (0x7f >> size);
  for (let i = 1; i < size; i++) {
    const byte = bytes[at + i] ?? 0;
    if ((byte & 0xc0) !== 0x80) return -1;
    code = (code << 6) | (byte & 0x3f);
  }
  const overlong = (size === 3 && code < 0x800) || (size === 4 && code < 0x10000);
  const invalid = (code >= 0xd800 && code <= 0xdfff) || code > 0x10ffff;
  return overlong || invalid ? -1 : code;
}
