/**
 * Incremental parser of RESP2 and RESP3 replies. Values are completed one by one, so that a long list costs its length
 * once, however many reads it takes. Strings that are split over reads are collected as they arrive, never allocated by
 * the announced length.
 */

import { DEPTH_MAX, ELEMENTS_MAX, LINE_BYTES_MAX } from "./limits.ts";
import { RedisError, type RedisReply } from "./resp.ts";

const CR = 13;
const LF = 10;

/** An aggregate that is being read. */
interface Open {
  /** `*` list, `~` set, `%` map, `>` push, `|` attributes. */
  readonly kind: number;
  /** Outstanding values. */
  left: number;
  readonly values: RedisReply[];
}

interface ReplySink {
  reply(value: RedisReply): void;
}

const [LIST, SET, MAP, PUSH, ATTRIBUTES] = [..."*~%>|"].map((sign) => sign.charCodeAt(0));
const [SIMPLE, ERROR, NUMBER, TEXT] = [..."+-:$"].map((sign) => sign.charCodeAt(0));
const [NULL, BOOLEAN, DOUBLE, BIG, LONG_ERROR, VERBATIM] = [..."_#,(!="].map((sign) =>
  sign.charCodeAt(0),
);

export class RespReader {
  /** First violation of the protocol; null so far. */
  problem: string | null = null;
  /** Strings are needed, not only their ends. */
  keeps = true;
  readonly #sink: ReplySink;
  readonly #bytesMax: number;
  readonly #open: Open[] = [];
  /** Beginning of a line or string that continues in the next read; null nearly always. */
  #pieces: Buffer[] | null = null;
  #piecesLength = 0;
  /** Type byte of the current string; 0 for a line. */
  #textKind = 0;
  /** Outstanding bytes of the string, including its line end. */
  #textLeft = 0;
  #elements = 0;
  #bytes = 0;

  constructor(sink: ReplySink, bytesMax: number) {
    this.#sink = sink;
    this.#bytesMax = bytesMax;
  }

  /** No reply is partially read. */
  get between(): boolean {
    return this.#pieces === null && this.#open.length === 0;
  }

  /** Returns false on malformed input, after which nothing more may be read. */
  feed(buffer: Buffer, end: number): boolean {
    let at = 0;
    while (at < end && this.problem === null) {
      at = this.#textLeft > 0 ? this.#textPiece(buffer, at, end) : this.#line(buffer, at, end);
    }
    return this.problem === null;
  }

  #broken(problem: string, end: number): number {
    this.problem ??= problem;
    return end;
  }

  #line(buffer: Buffer, from: number, end: number): number {
    const lineEnd = buffer.indexOf(LF, from);
    if (lineEnd < 0 || lineEnd >= end) {
      const text = this.#piecesLength + end - from;
      if (text > LINE_BYTES_MAX) return this.#broken("a line is longer than 64 KiB", end);
      // Fail at once on bytes that begin with no type of the protocol.
      const first = this.#pieces?.[0]?.[0] ?? buffer[from] ?? 0;
      if (!isSign(first)) return this.#broken(strange(first), end);
      this.#keepPiece(buffer, from, end);
      return end;
    }
    if (this.#pieces === null) return this.#wholeLine(buffer, from, lineEnd, buffer, lineEnd, end);
    this.#keepPiece(buffer, from, lineEnd + 1);
    const whole = this.#takePieces();
    return this.#wholeLine(whole, 0, whole.length - 1, buffer, lineEnd, end);
  }

  /** `line` from its type byte up to its LF; the rest of the read is in `buffer` after `lineEnd`. */
  #wholeLine(
    line: Buffer,
    from: number,
    lineLf: number,
    buffer: Buffer,
    lineEnd: number,
    end: number,
  ): number {
    const sign = line[from] ?? 0;
    if (lineLf - from < 2 || line[lineLf - 1] !== CR)
      return this.#broken(isSign(sign) ? "a line does not end in CRLF" : strange(sign), end);
    const next = lineEnd + 1;
    const last = lineLf - 1;
    if (sign === TEXT || sign === LONG_ERROR || sign === VERBATIM)
      return this.#text(sign, lengthOf(line, from + 1, last), buffer, next, end);
    if (sign === LIST || sign === SET || sign === MAP || sign === PUSH || sign === ATTRIBUTES) {
      this.#aggregate(sign, lengthOf(line, from + 1, last));
      return this.problem === null ? next : end;
    }
    const value = scalarOf(sign, line, from + 1, last);
    if (value === undefined)
      return this.#broken(isSign(sign) ? "a value is malformed" : strange(sign), end);
    this.#value(value);
    return this.problem === null ? next : end;
  }

  #text(kind: number, length: number, buffer: Buffer, from: number, end: number): number {
    if (length === -1 && kind === TEXT) {
      this.#value(null);
      return from;
    }
    if (length < 0) return this.#broken("the length of a text is malformed", end);
    this.#bytes += length;
    if (this.#bytes > this.#bytesMax)
      return this.#broken(`the reply is longer than ${this.#bytesMax} bytes (bodyBytesMax)`, end);
    const textEnd = from + length;
    if (textEnd + 2 <= end) {
      if (buffer[textEnd] !== CR || buffer[textEnd + 1] !== LF)
        return this.#broken("a text does not end where its length says", end);
      this.#value(this.#textOf(kind, buffer, from, textEnd));
      return textEnd + 2;
    }
    this.#textKind = kind;
    this.#textLeft = length + 2;
    return from < end ? this.#textPiece(buffer, from, end) : end;
  }

  #textPiece(buffer: Buffer, from: number, end: number): number {
    const take = Math.min(this.#textLeft, end - from);
    this.#textLeft -= take;
    this.#keepPiece(buffer, from, from + take);
    if (this.#textLeft > 0) return end;
    const whole = this.#takePieces();
    const textEnd = whole.length - 2;
    if (whole[textEnd] !== CR || whole[textEnd + 1] !== LF)
      return this.#broken("a text does not end where its length says", end);
    this.#value(this.#textOf(this.#textKind, whole, 0, textEnd));
    return this.problem === null ? from + take : end;
  }

  #textOf(kind: number, buffer: Buffer, from: number, end: number): RedisReply {
    if (kind === LONG_ERROR) return new RedisError(buffer.toString("utf8", from, end));
    if (!this.keeps) return null;
    // A verbatim string begins with its format and a colon: "txt:".
    return copyOf(buffer, kind === VERBATIM ? Math.min(from + 4, end) : from, end);
  }

  #aggregate(kind: number, length: number): void {
    if (length === -1 && kind === LIST) {
      this.#value(null);
      return;
    }
    const left = kind === MAP || kind === ATTRIBUTES ? 2 * length : length;
    if (length < 0) this.problem = "the length of a list is malformed";
    else if (this.#open.length >= DEPTH_MAX) this.problem = "lists are nested too deeply";
    else if (this.#elements + left > ELEMENTS_MAX)
      this.problem = `the reply has more than ${ELEMENTS_MAX} values`;
    if (this.problem !== null) return;
    this.#open.push({ kind, left, values: [] });
    if (left === 0) this.#complete();
  }

  #value(value: RedisReply): void {
    const open = this.#open.at(-1);
    if (open === undefined) {
      this.#reply(value);
      return;
    }
    open.values.push(value);
    this.#elements++;
    if (--open.left === 0) this.#complete();
  }

  /** The innermost aggregate is complete. */
  #complete(): void {
    const open = this.#open.pop();
    if (open === undefined) return;
    // Neither answers a command: server pushes, and attributes of the value that follows.
    if (open.kind === PUSH && this.#open.length === 0) this.#start();
    else if (open.kind !== ATTRIBUTES)
      this.#value(open.kind === MAP ? mapOf(open.values) : open.values);
  }

  #reply(value: RedisReply): void {
    this.#start();
    this.#sink.reply(value);
  }

  #start(): void {
    this.#elements = 0;
    this.#bytes = 0;
  }

  /** Copied, because the buffer is shared. */
  #keepPiece(buffer: Buffer, from: number, end: number): void {
    this.#pieces ??= [];
    this.#pieces.push(copyOf(buffer, from, end));
    this.#piecesLength += end - from;
  }

  #takePieces(): Buffer {
    const [first] = this.#pieces ?? [];
    const whole =
      this.#pieces?.length === 1 && first !== undefined ? first : Buffer.concat(this.#pieces ?? []);
    this.#pieces = null;
    this.#piecesLength = 0;
    return whole;
  }
}

/** Copies without an intermediate view. */
function copyOf(buffer: Buffer, from: number, end: number): Buffer {
  const copy = Buffer.allocUnsafe(end - from);
  buffer.copy(copy, 0, from, end);
  return copy;
}

function isSign(code: number): boolean {
  return "*~%>|+-:$_#,(!=".includes(String.fromCharCode(code));
}

function strange(code: number): string {
  return `the server does not speak RESP: a reply begins with byte ${code}`;
}

/** -1 for null, -2 for an invalid length. */
function lengthOf(line: Buffer, from: number, end: number): number {
  let length = 0;
  for (let at = from; at < end; at++) {
    const digit = (line[at] ?? 0) - 48;
    if (digit < 0 || digit > 9)
      return end - from === 2 && line.toString("latin1", from, end) === "-1" ? -1 : -2;
    length = length * 10 + digit;
  }
  return end > from && end - from < 16 ? length : -2;
}

/** Undefined for an invalid value. */
function scalarOf(sign: number, line: Buffer, from: number, end: number): RedisReply | undefined {
  if (sign === SIMPLE) return copyOf(line, from, end);
  const text = line.toString("utf8", from, end);
  switch (sign) {
    case ERROR:
      return new RedisError(text);
    case NUMBER: {
      if (!/^[+-]?\d{1,20}$/.test(text)) return undefined;
      const number = Number(text);
      return Number.isSafeInteger(number) ? number : BigInt(text);
    }
    case NULL:
      return text === "" ? null : undefined;
    case BOOLEAN:
      return text === "t" ? true : text === "f" ? false : undefined;
    case DOUBLE:
      return doubleOf(text);
    case BIG:
      return /^[+-]?\d{1,4096}$/.test(text) ? BigInt(text) : undefined;
    default:
      return undefined;
  }
}

function doubleOf(text: string): number | undefined {
  if (/^[+-]?inf$/.test(text)) return text.startsWith("-") ? -Infinity : Infinity;
  if (/^-?nan$/.test(text)) return Number.NaN;
  return /^[+-]?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?$/.test(text) ? Number(text) : undefined;
}

/** Text keys are converted to strings, so that they can be looked up. */
function mapOf(values: readonly RedisReply[]): ReadonlyMap<unknown, RedisReply> {
  const map = new Map<unknown, RedisReply>();
  for (let at = 0; at + 1 < values.length; at += 2) {
    const key = values[at];
    map.set(Buffer.isBuffer(key) ? key.toString("utf8") : key, values[at + 1] ?? null);
  }
  return map;
}
