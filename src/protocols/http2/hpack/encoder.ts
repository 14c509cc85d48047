/**
 * \n Encodes header blocks. The first request stores its constant fields in the server's table; from the second on,
 * they are a few ready bytes. Paths and cookies are sent as literals.
 *
 * Fields are added to the table while there is space and never evicted, so that the table becomes stable. Each addition
 * shifts the indexes of all others, and ready bytes have to be encoded again.
 */

import { TRACEPARENT } from "../../trace-context.ts";
import { fieldBytes, TABLE_BYTES_MAX } from "./dynamic-table.ts";
import { encodeHuffman, huffmanBytes } from "./huffman.ts";
import { type Field, STATIC_TABLE, staticField, staticName } from "./static-table.ts";

/** Distinct requests whose bytes are cached on one connection. */
const READY_MAX = 64;

const INDEXED = 0x80;
const KEPT = 0x40;
const RESIZED = 0x20;
const NEVER_KEPT = 0x10;
const PATH_NAME = staticName(":path");
const COOKIE_NAME = staticName("cookie");
/** A literal field that is not added to the table. */
const TRACE_NAME = Buffer.from(
  `\0${String.fromCharCode(TRACEPARENT.length)}${TRACEPARENT}`,
  "latin1",
);
const ROOT_PATH = INDEXED | staticField(":path", "/");
/** Differ from request to request and would only fill the table. */
const CHANGING: ReadonlySet<string> = new Set([
  ...["age", "content-length", "etag", "if-modified-since", "if-none-match", "location"],
]);

/** Fields that are the same in every request. */
export interface ConstantFields {
  /** Fields that begin with ":", except the path. */
  readonly pseudo: readonly Field[];
  readonly rest: readonly Field[];
}

/** Fields of a request; "" for absent ones. */
interface EncodedFields {
  readonly constant: ConstantFields;
  readonly path: string;
  readonly cookies: string;
  readonly traceparent: string;
}

interface ReadyBytes {
  /** Fields in the table when they were encoded. */
  readonly tableSize: number;
  readonly pseudo: Uint8Array;
  readonly rest: Uint8Array;
}

export class HpackEncoder {
  #bytesMax = TABLE_BYTES_MAX;
  #bytes = 0;
  /** Name and value to position, counted from the oldest. */
  readonly #positions = new Map<string, number>();
  /** The server wants a smaller table; signalled with the next block. */
  #resize: number | null = null;
  readonly #ready = new Map<ConstantFields, ReadyBytes>();
  #last: ConstantFields | null = null;
  #lastReady: ReadyBytes | null = null;

  /** Applies the server's limit on the table size. */
  limit(bytesMax: number): void {
    const wanted = Math.min(bytesMax, TABLE_BYTES_MAX);
    if (wanted === this.#bytesMax) return;
    this.#bytesMax = wanted;
    this.#resize = wanted;
    // Resizing to zero and back drops all entries on both sides, so that no index has to be recomputed.
    this.#bytes = 0;
    this.#positions.clear();
    this.#ready.clear();
    this.#last = null;
  }

  /** Returns the block for these fields, after `free` unused bytes. */
  encode({ constant, cookies, path, traceparent }: EncodedFields, free: number): Buffer {
    const prefix = this.#sizeUpdates();
    const ready = this.#readyFor(constant);
    const pathBytes = path === "/" ? 1 : 1 + textBytes(path);
    const cookieBytes = cookies === "" ? 0 : 2 + textBytes(cookies);
    const traceBytes = traceparent === "" ? 0 : TRACE_NAME.length + textBytes(traceparent);
    const { pseudo, rest } = ready;
    const block = Buffer.allocUnsafe(
      free + prefix.length + pseudo.length + pathBytes + rest.length + cookieBytes + traceBytes,
    );
    let at = put(block, free, prefix);
    at = put(block, at, pseudo);
    if (path === "/") block[at++] = ROOT_PATH;
    else {
      block[at++] = PATH_NAME;
      at = writeText(block, at, path);
    }
    at = put(block, at, rest);
    if (cookies !== "") {
      block[at++] = NEVER_KEPT | 0x0f;
      block[at++] = COOKIE_NAME - 0x0f;
      at = writeText(block, at, cookies);
    }
    if (traceparent !== "") {
      block.set(TRACE_NAME, at);
      writeText(block, at + TRACE_NAME.length, traceparent);
    }
    return block;
  }

  #readyFor(constant: ConstantFields): ReadyBytes {
    const tableSize = this.#positions.size;
    if (constant === this.#last && this.#lastReady?.tableSize === tableSize) return this.#lastReady;
    let ready = this.#ready.get(constant);
    if (ready?.tableSize !== tableSize) {
      const pseudo = this.#fields(constant.pseudo);
      ready = { tableSize, pseudo, rest: this.#fields(constant.rest) };
      // Only bytes that added nothing to the table can be sent again.
      if (this.#positions.size !== tableSize) return ready;
      if (this.#ready.size >= READY_MAX) this.#ready.clear();
      this.#ready.set(constant, ready);
    }
    this.#last = constant;
    this.#lastReady = ready;
    return ready;
  }

  #sizeUpdates(): Uint8Array {
    if (this.#resize === null) return NOTHING;
    const bytes: number[] = [RESIZED];
    pushInteger(bytes, RESIZED, 5, this.#resize);
    this.#resize = null;
    return Uint8Array.from(bytes);
  }

  #fields(fields: readonly Field[]): Uint8Array {
    const bytes: number[] = [];
    for (const [name, value] of fields) this.#field(bytes, name, value);
    return Uint8Array.from(bytes);
  }

  #field(bytes: number[], name: string, value: string): void {
    const key = `${name}\0${value}`;
    const position = this.#positions.get(key);
    const index =
      position === undefined
        ? staticField(name, value)
        : STATIC_TABLE.length + this.#positions.size - position;
    if (index > 0) {
      pushInteger(bytes, INDEXED, 7, index);
      return;
    }
    const size = fieldBytes(name, value);
    const isSecret = name === "authorization" || name === "cookie";
    const kept = !isSecret && !CHANGING.has(name) && this.#bytes + size <= this.#bytesMax;
    if (kept) pushInteger(bytes, KEPT, 6, staticName(name));
    else pushInteger(bytes, isSecret ? NEVER_KEPT : 0, 4, staticName(name));
    if (staticName(name) === 0) pushText(bytes, name);
    pushText(bytes, value);
    if (!kept) return;
    this.#positions.set(key, this.#positions.size);
    this.#bytes += size;
  }
}

const NOTHING = new Uint8Array(0);

function pushInteger(bytes: number[], flags: number, prefixBits: number, value: number): void {
  const mask = 2 ** prefixBits - 1;
  if (value < mask) {
    bytes.push(flags | value);
    return;
  }
  bytes.push(flags | mask);
  let rest = value - mask;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80);
  bytes.push(rest);
}

/** Uses Huffman code where it is shorter: encoded once, sent often. */
function pushText(bytes: number[], text: string): void {
  const coded = huffmanBytes(text);
  if (coded < text.length) {
    pushInteger(bytes, 0x80, 7, coded);
    encodeHuffman(text, bytes);
    return;
  }
  pushInteger(bytes, 0, 7, text.length);
  for (let i = 0; i < text.length; i++) bytes.push(text.charCodeAt(i));
}

/** Most are a few bytes, for which `set` costs more than a loop. */
function put(into: Buffer, at: number, bytes: Uint8Array): number {
  for (let from = 0; from < bytes.length; from++) into[at + from] = bytes[from] as number;
  return at + bytes.length;
}

/** Size of a text that differs in every request and is therefore sent without Huffman code. */
function textBytes(text: string): number {
  if (text.length < 0x7f) return 1 + text.length;
  let bytes = 2 + text.length;
  for (let rest = text.length - 0x7f; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes++;
  return bytes;
}

function writeText(into: Buffer, at: number, text: string): number {
  const { length } = text;
  let next = at;
  if (length < 0x7f) into[next++] = length;
  else {
    into[next++] = 0x7f;
    let rest = length - 0x7f;
    for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) into[next++] = (rest % 0x80) | 0x80;
    into[next++] = rest;
  }
  return next + into.write(text, next, "latin1");
}
