/**
 * Growing writer and bounded reader of bytes: unsigned LEB128 numbers up to 2^53, zig-zag signed
 * numbers, doubles, length-prefixed UTF-8, and length-prefixed nesting in place. The reader never
 * throws: it turns `failed`, keeps the first problem and answers zeros, so a decoder checks once at
 * the end.
 */

import { assert } from "./assert.ts";
import type { PartMemory } from "./part-memory.ts";
import { carve, carveScratch } from "./slab.ts";

/** One scratch place to turn doubles into bytes and back: a view per packet costs more than the copy. */
const scratch = new DataView(new ArrayBuffer(8));

export class ByteWriter {
  #bytes: Uint8Array;
  #length = 0;

  constructor(capacity = 256) {
    this.#bytes = carveScratch(capacity);
  }

  get length(): number {
    return this.#length;
  }

  /** Forgets the content and keeps the memory. */
  clear(): void {
    this.#length = 0;
  }

  /** A copy of what was written, all of it or from a place on. */
  take(from = 0): Uint8Array {
    const taken = carve(this.#length - from);
    taken.set(this.#bytes.subarray(from, this.#length));
    return taken;
  }

  uint8(value: number): void {
    this.#reserve(1);
    this.#bytes[this.#length++] = value;
  }

  varint(value: number): void {
    // Most are small; only whole numbers from 0 to 127 equal their last seven bits.
    if ((value & 0x7f) === value) {
      this.uint8(value);
      return;
    }
    assert(value >= 0 && Number.isSafeInteger(value), "a varint is a safe non-negative integer");
    this.#reserve(8);
    let rest = value;
    while (rest > 0x7fff_ffff) {
      this.#bytes[this.#length++] = (rest % 0x80) | 0x80;
      rest = Math.floor(rest / 0x80);
    }
    while (rest >= 0x80) {
      this.#bytes[this.#length++] = (rest & 0x7f) | 0x80;
      rest >>>= 7;
    }
    this.#bytes[this.#length++] = rest;
  }

  signed(value: number): void {
    this.varint(value >= 0 ? value * 2 : -value * 2 - 1);
  }

  float64(value: number): void {
    this.#reserve(8);
    scratch.setFloat64(0, value, true);
    for (let i = 0; i < 8; i++) this.#bytes[this.#length++] = scratch.getUint8(i);
  }

  bytes(value: Uint8Array): void {
    this.varint(value.length);
    this.#reserve(value.length);
    this.#bytes.set(value, this.#length);
    this.#length += value.length;
  }

  text(value: string): void {
    // Names and addresses are ASCII in practice: straight into the buffer, no copy.
    const start = this.#length;
    this.varint(value.length);
    this.#reserve(value.length);
    for (let i = 0; i < value.length; i++) {
      const code = value.charCodeAt(i);
      if (code >= 0x80) {
        this.#length = start;
        this.bytes(encodeUtf8(value));
        return;
      }
      this.#bytes[this.#length++] = code;
    }
  }

  /** Bytes without a length before them. */
  raw(value: Uint8Array): void {
    this.#reserve(value.length);
    this.#bytes.set(value, this.#length);
    this.#length += value.length;
  }

  /** Opens a length-prefixed part; `end` with the returned mark closes it. Parts nest. */
  begin(): number {
    this.uint8(0);
    return this.#length;
  }

  end(mark: number): void {
    const size = this.#length - mark;
    if (size < 0x80) {
      this.#bytes[mark - 1] = size;
      return;
    }
    // One byte was reserved for the length; a longer part moves up to make space for the rest.
    const extra = varintBytes(size) - 1;
    this.#reserve(extra);
    this.#bytes.copyWithin(mark + extra, mark, this.#length);
    const end = this.#length + extra;
    this.#length = mark - 1;
    this.varint(size);
    this.#length = end;
  }

  #reserve(count: number): void {
    const needed = this.#length + count;
    if (needed <= this.#bytes.length) return;
    const grown = carveScratch(Math.max(needed, this.#bytes.length * 2));
    grown.set(this.#bytes);
    this.#bytes = grown;
  }
}

function varintBytes(value: number): number {
  let count = 1;
  for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 0x80)) count++;
  return count;
}

export class ByteReader {
  readonly #bytes: Uint8Array;
  #at = 0;
  /** The end of the part being read; the end of the bytes outside of any part. */
  #end: number;
  #problem: string | null = null;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#end = bytes.length;
  }

  /** True once anything was read past the end or out of range; all later answers are zeros. */
  get failed(): boolean {
    return this.#problem !== null;
  }

  /** The first problem; null if there is none. */
  get problem(): string | null {
    return this.#problem;
  }

  get remaining(): number {
    return this.#problem !== null ? 0 : this.#end - this.#at;
  }

  /** The caller found what it read unacceptable. The first problem stays. */
  fail(problem: string): void {
    this.#problem ??= problem;
  }

  /** Enters a length-prefixed part; reads stop at its end. `leave` with the returned mark goes back. */
  enter(): number {
    const length = this.varint();
    const outer = this.#end;
    if (!this.#take(length)) return outer;
    this.#end = this.#at + length;
    return outer;
  }

  /** Leaves a part, skipping what was not read of it. */
  leave(outer: number): void {
    if (this.#problem === null) this.#at = this.#end;
    this.#end = outer;
  }

  skip(count: number): void {
    if (this.#take(count)) this.#at += count;
  }

  /** Where the next read begins: the mark of `remember`. */
  get at(): number {
    return this.#at;
  }

  /** Reads the length-prefixed part that comes, if the memory knows its bytes; else reads nothing. */
  recall<Value>(memory: PartMemory<Value>): Value | undefined {
    const start = this.#at;
    const length = this.varint();
    const end = this.#at + length;
    const known = length <= this.remaining ? memory.find(this.#bytes, start, end) : undefined;
    this.#at = known === undefined ? start : end;
    return known;
  }

  /** Keeps a part that was read since the mark. */
  remember<Value>(memory: PartMemory<Value>, mark: number, value: Value): void {
    if (this.#problem === null) memory.keep(this.#bytes, mark, this.#at, value);
  }

  /** Bytes without a length before them: a view, not a copy. */
  raw(count: number): Uint8Array {
    if (!this.#take(count)) return new Uint8Array(0);
    const value = this.#bytes.subarray(this.#at, this.#at + count);
    this.#at += count;
    return value;
  }

  uint8(): number {
    if (!this.#take(1)) return 0;
    return this.#bytes[this.#at++] ?? 0;
  }

  varint(): number {
    if (this.#problem === null && this.#at < this.#end) {
      const first = this.#bytes[this.#at] ?? 0;
      if (first < 0x80) {
        this.#at++;
        return first;
      }
    }
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
    this.fail("a number is too long");
    return 0;
  }

  signed(): number {
    const value = this.varint();
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }

  float64(): number {
    if (!this.#take(8)) return 0;
    for (let i = 0; i < 8; i++) scratch.setUint8(i, this.#bytes[this.#at++] ?? 0);
    return scratch.getFloat64(0, true);
  }

  /** A view, not a copy. */
  bytes(lengthMax = this.remaining): Uint8Array {
    const length = this.varint();
    if (length > lengthMax) this.fail(`${length} bytes where at most ${lengthMax} are allowed`);
    if (!this.#take(length)) return new Uint8Array(0);
    const value = this.#bytes.subarray(this.#at, this.#at + length);
    this.#at += length;
    return value;
  }

  text(lengthMax = this.remaining): string {
    return this.familiar(lengthMax) ?? decodeUtf8(this.bytes(lengthMax));
  }

  /** A short ASCII text, as nearly all names are; null, with nothing read, when the text is another. */
  familiar(lengthMax: number): string | null {
    const start = this.#at;
    const length = this.varint();
    if (length <= lengthMax && length <= FAMILIAR_BYTES_MAX && length <= this.remaining) {
      if (isAscii(this.#bytes, this.#at, length)) {
        const value = familiarText(this.#bytes, this.#at, length);
        this.#at += length;
        return value;
      }
    }
    this.#at = start;
    return null;
  }

  #take(count: number): boolean {
    if (this.#problem !== null) return false;
    if (count <= this.#end - this.#at) return true;
    this.#problem = "truncated";
    return false;
  }
}

/** UTF-8 by hand: the pure rooms compile without the host's TextEncoder. Lone surrogates become U+FFFD. */
export function encodeUtf8(text: string): Uint8Array {
  return encodeAscii(text) ?? encodeAnyUtf8(text);
}

/** Null when the text is more than ASCII. Most is not, and needs neither code points nor a second copy. */
function encodeAscii(text: string): Uint8Array | null {
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code >= 0x80) return null;
    bytes[i] = code;
  }
  return bytes;
}

function encodeAnyUtf8(text: string): Uint8Array {
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
  const { length } = bytes;
  if (length <= ASCII_AT_ONCE_MAX && isAscii(bytes, 0, length)) return fromAscii(bytes);
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

const ASCII_AT_ONCE_MAX = 256;

/** One character per byte. An array-like is all `apply` needs; spreading would walk an iterator. */
export function fromAscii(bytes: Uint8Array): string {
  return String.fromCharCode.apply(null, bytes as unknown as number[]);
}

function isAscii(bytes: Uint8Array, at: number, length: number): boolean {
  let all = 0;
  for (let i = at; i < at + length; i++) all |= bytes[i] ?? 0;
  return all < 0x80;
}

const FAMILIAR_BYTES_MAX = 64;
const FAMILIAR_TEXTS = 4_096;
const familiarTexts = new Array<string>(FAMILIAR_TEXTS).fill("");

/**
 * The bytes as a text, one character each. A peer's name, address and session come with every packet: a known text is
 * found by its bytes, which costs a fifth of building it, leaves no garbage, and gives maps a key whose hash is known.
 * A text that maps to an occupied slot replaces its content.
 */
export function familiarText(bytes: Uint8Array, at: number, length: number): string {
  let hash = length;
  for (let i = at; i < at + length; i++) hash = Math.imul(hash ^ (bytes[i] ?? 0), 0x01000193);
  const place = (hash ^ (hash >>> 15)) & (FAMILIAR_TEXTS - 1);
  const held = familiarTexts[place] ?? "";
  if (held.length === length) {
    let same = 0;
    while (same < length && held.charCodeAt(same) === bytes[at + same]) same++;
    if (same === length) return held;
  }
  const value = fromAscii(bytes.subarray(at, at + length));
  familiarTexts[place] = value;
  return value;
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
