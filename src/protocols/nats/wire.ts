/** The NATS protocol: lines, and messages followed by their payload. */

import type { StreamParser } from "../target/stream-buffer.ts";

/** Longest line; INFO of a large cluster is the longest. */
const LINE_BYTES_MAX = 64 * 1024;
/** Headers of one message. */
const HEADERS_BYTES_MAX = 64 * 1024;

export interface NatsMessage {
  readonly subject: string;
  /** Subject for the response; "" when none is requested. */
  readonly replyTo: string;
  /** Id of the subscription. */
  readonly sid: string;
  readonly headers: ReadonlyMap<string, string>;
  /** Status sent by the server instead of a response: 503 without responders; 0 for none. */
  readonly status: number;
  readonly data: Buffer;
}

interface NatsReader {
  info(text: string): void;
  message(message: NatsMessage, bytes: number): void;
  pong(): void;
  ping(): void;
  ok(): void;
  error(text: string): void;
}

export class NatsParser implements StreamParser {
  problem: string | null = null;
  readonly #reader: NatsReader;
  readonly #bytesMax: number;
  readonly #wants: (bytes: number) => void;

  /** `wants` receives the length of the first message. */
  constructor(reader: NatsReader, bytesMax: number, wants: (bytes: number) => void) {
    this.#reader = reader;
    this.#bytesMax = bytesMax;
    this.#wants = wants;
  }

  parse(buffer: Buffer, from: number, end: number): number {
    const lf = buffer.indexOf(10, from);
    if (lf < 0 || lf >= end) {
      if (end - from > LINE_BYTES_MAX) return this.#broken("a line is longer than 64 KiB");
      return this.#beginsWell(buffer, from, end)
        ? from
        : this.#broken("the server does not speak the NATS protocol");
    }
    if (buffer[lf - 1] !== 13) return this.#broken("a line does not end in CRLF");
    const line = buffer.toString("utf8", from, lf - 1);
    const [verb = "", rest = ""] = split(line);
    switch (verb.toUpperCase()) {
      case "MSG":
        return this.#message(rest, false, buffer, from, lf + 1, end);
      case "HMSG":
        return this.#message(rest, true, buffer, from, lf + 1, end);
      case "PING":
        this.#reader.ping();
        return lf + 1;
      case "PONG":
        this.#reader.pong();
        return lf + 1;
      case "+OK":
        this.#reader.ok();
        return lf + 1;
      case "INFO":
        this.#reader.info(rest);
        return this.problem === null ? lf + 1 : -1;
      case "-ERR":
        this.#reader.error(rest.trim().replace(/^'|'$/g, ""));
        return lf + 1;
      default:
        return this.#broken(
          `the server does not speak the NATS protocol: ${JSON.stringify(line.slice(0, 40))}`,
        );
    }
  }

  #broken(problem: string): -1 {
    this.problem ??= problem;
    return -1;
  }

  /** Returns false as soon as the bytes cannot become a line of the protocol. */
  #beginsWell(buffer: Buffer, from: number, end: number): boolean {
    const start = buffer.toString("latin1", from, Math.min(end, from + 4)).toUpperCase();
    return ["MSG ", "HMSG", "PING", "PONG", "+OK\r", "INFO", "-ERR"].some((verb) =>
      verb.startsWith(start),
    );
  }

  #message(
    rest: string,
    withHeaders: boolean,
    buffer: Buffer,
    from: number,
    at: number,
    end: number,
  ): number {
    const words = rest.trim().split(/[ \t]+/);
    const lengths = words.splice(withHeaders ? -2 : -1).map(lengthOf);
    const [subject, sid, replyTo = ""] = words;
    const headersLength = withHeaders ? (lengths[0] ?? -1) : 0;
    const length = lengths.at(-1) ?? -1;
    if (subject === undefined || sid === undefined || words.length > 3)
      return this.#broken("the line of a message is malformed");
    if (length < 0 || headersLength < 0 || headersLength > Math.min(length, HEADERS_BYTES_MAX))
      return this.#broken("the length of a message is malformed");
    if (length > this.#bytesMax)
      return this.#broken(`a message is longer than ${this.#bytesMax} bytes (bodyBytesMax)`);
    const last = at + length;
    if (last + 2 > end) {
      this.#wants(last + 2 - from);
      return from;
    }
    if (buffer[last] !== 13 || buffer[last + 1] !== 10)
      return this.#broken("a message does not end where its length says");
    const headers = withHeaders ? headersOf(buffer.toString("utf8", at, at + headersLength)) : null;
    if (withHeaders && headers === null) return this.#broken("the headers are malformed");
    const message = {
      subject,
      sid,
      replyTo,
      headers: headers?.values ?? NO_HEADERS,
      status: headers?.status ?? 0,
      data: Buffer.from(buffer.subarray(at + headersLength, last)),
    };
    this.#reader.message(message, last + 2 - from);
    return this.problem === null ? last + 2 : -1;
  }
}

const NO_HEADERS: ReadonlyMap<string, string> = new Map();

function split(line: string): readonly [string, string] {
  const at = line.search(/[ \t]/);
  return at < 0 ? [line, ""] : [line.slice(0, at), line.slice(at + 1)];
}

/** -1 for an invalid length. */
function lengthOf(text: string): number {
  return /^\d{1,10}$/.test(text) ? Number(text) : -1;
}

function headersOf(
  text: string,
): { readonly status: number; readonly values: ReadonlyMap<string, string> } | null {
  const [first = "", ...lines] = text.split("\r\n");
  const match = /^NATS\/1\.0(?: +(\d{3}).*)?$/.exec(first);
  if (match === null) return null;
  const values = new Map<string, string>();
  for (const line of lines) {
    if (line === "") continue;
    const colon = line.indexOf(":");
    if (colon < 1) return null;
    values.set(line.slice(0, colon), line.slice(colon + 1).trim());
  }
  return { status: Number(match[1] ?? 0), values };
}

/** Checks that a subject can be part of a line: no spaces, no control characters. */
export function checkSubject(subject: unknown, what: string): string {
  if (typeof subject === "string" && /^[^\s\p{Cc}.]+(?:\.[^\s\p{Cc}.]+)*$/u.test(subject))
    return subject;
  throw new TypeError(`${what} is not a subject: ${JSON.stringify(subject)}`);
}

export interface NatsPublish {
  readonly subject: string;
  readonly data: Uint8Array;
  readonly headers: Readonly<Record<string, string>>;
}

/** Encodes PUB or HPUB; `replyTo` "" requests no response. */
export function encodePublish({ data, headers, subject }: NatsPublish, replyTo: string): Buffer {
  const names = Object.entries(headers);
  const to = replyTo === "" ? "" : ` ${replyTo}`;
  if (names.length === 0)
    return Buffer.concat([Buffer.from(`PUB ${subject}${to} ${data.length}\r\n`), data, CRLF]);
  const lines = names.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  const head = Buffer.from(`NATS/1.0\r\n${lines}\r\n`);
  const line = `HPUB ${subject}${to} ${head.length} ${head.length + data.length}\r\n`;
  return Buffer.concat([Buffer.from(line), head, data, CRLF]);
}

const CRLF = Buffer.from("\r\n");
