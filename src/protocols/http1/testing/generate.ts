/**
 * Generates responses for the parser: valid ones, damaged ones, lines that have fooled parsers before, and noise.
 * Everything is derived from the seed.
 */

import type { Random } from "../../../core/base/random.ts";

export interface GeneratedAnswer {
  readonly bytes: Buffer;
  /** The request was HEAD. */
  readonly toHead: boolean;
}

export function generateAnswer(random: Random): GeneratedAnswer {
  const toHead = random.chance(0.1);
  const roll = random.float();
  if (roll < 0.05) return { bytes: noise(random, random.below(80)), toHead };
  const proper = properAnswer(random, roll > 0.55);
  return { bytes: roll < 0.45 ? damage(random, proper) : proper, toHead };
}

/** Splits at random positions, with an occasional empty piece. */
export function cut(random: Random, bytes: Buffer): readonly Buffer[] {
  const pieces: Buffer[] = [];
  let at = 0;
  while (at < bytes.length) {
    const size = random.chance(0.5) ? random.below(4) : random.below(bytes.length - at + 1);
    pieces.push(bytes.subarray(at, at + size));
    at += size;
  }
  return pieces;
}

function properAnswer(random: Random, withOdd: boolean): Buffer {
  const lines: string[] = [];
  for (let i = random.chance(0.1) ? 1 + random.below(2) : 0; i > 0; i--) {
    lines.push(
      random.pick(["HTTP/1.1 100 Continue", "HTTP/1.1 103 Early Hints\r\nlink: </a>"]),
      "",
    );
  }
  lines.push(statusLine(random));
  for (let i = random.below(5); i > 0; i--) lines.push(plainHeader(random));
  if (random.chance(0.3)) lines.push(`Connection: ${random.pick(CONNECTION_VALUES)}`);
  if (withOdd) lines.push(random.pick(ODD_LINES));
  const body = framedBody(random, lines);
  const head = Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1");
  const behind = random.chance(0.15) ? Buffer.from("HTTP/1.1 200 OK\r\n\r\n") : Buffer.alloc(0);
  return Buffer.concat([head, body, behind]);
}

function statusLine(random: Random): string {
  const version = random.chance(0.85) ? "HTTP/1.1" : "HTTP/1.0";
  const status = random.pick([200, 200, 200, 201, 204, 206, 301, 304, 404, 500, 599, 799]);
  return `${version} ${status}${random.pick([" OK", " Not Found", "", " ", " caf\u00e9"])}`;
}

function plainHeader(random: Random): string {
  const name = random.pick(["Date", "X-Trace", "set-cookie", "Location", "Server", "~!#", "a"]);
  const value = random.pick([
    "x",
    "",
    "a, b",
    "caf\u00e9",
    "Sun, 06 Nov 1994 08:49:37 GMT",
    "\t a",
  ]);
  return `${name}:${random.pick(["", " ", "\t", "  "])}${value}`;
}

/** Adds the framing header to `lines`, and returns the bytes after the head. */
function framedBody(random: Random, lines: string[]): Buffer {
  const content = noise(random, random.chance(0.1) ? random.below(2000) : random.below(12));
  const roll = random.float();
  if (roll < 0.35) {
    lines.push(`${random.pick(["Content-Length", "content-length"])}: ${content.length}`);
    return content;
  }
  if (roll < 0.8) {
    lines.push(`Transfer-Encoding: ${random.pick(["chunked", "Chunked", "gzip, chunked"])}`);
    return chunked(random, content);
  }
  return content;
}

function chunked(random: Random, content: Buffer): Buffer {
  const parts: Buffer[] = [];
  let at = 0;
  while (at < content.length) {
    const size = 1 + random.below(content.length - at);
    const text = size.toString(16).padStart(random.pick([1, 1, 4]), "0");
    const extension = random.chance(0.15) ? random.pick([";a", ";a=b", ';a="b c"', ";a;b=c"]) : "";
    parts.push(Buffer.from(`${random.chance(0.3) ? text.toUpperCase() : text}${extension}\r\n`));
    parts.push(content.subarray(at, at + size), Buffer.from("\r\n"));
    at += size;
  }
  const trailer = random.chance(0.2) ? "Expires: never\r\n" : "";
  parts.push(Buffer.from(`0\r\n${trailer}\r\n`));
  return Buffer.concat(parts);
}

function damage(random: Random, bytes: Buffer): Buffer {
  let damaged = bytes;
  for (let i = 1 + random.below(3); i > 0; i--) damaged = damageOnce(random, damaged);
  return damaged;
}

function damageOnce(random: Random, bytes: Buffer): Buffer {
  const at = random.below(bytes.length + 1);
  const span = random.below(6);
  switch (random.below(6)) {
    case 0: {
      const flipped = Buffer.from(bytes);
      if (at < bytes.length) flipped[at] = (flipped[at] ?? 0) ^ (1 << random.below(8));
      return flipped;
    }
    case 1:
      return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + span)]);
    case 2:
      return Buffer.concat([bytes.subarray(0, at), noise(random, span), bytes.subarray(at)]);
    case 3:
      return Buffer.concat([bytes.subarray(0, at + span), bytes.subarray(at)]);
    case 4:
      return bytes.subarray(0, at);
    default: {
      const inserted = Buffer.from(random.pick(INSERTIONS), "latin1");
      return Buffer.concat([bytes.subarray(0, at), inserted, bytes.subarray(at)]);
    }
  }
}

function noise(random: Random, length: number): Buffer {
  const bytes = Buffer.alloc(length);
  const printable = random.chance(0.5);
  for (let i = 0; i < length; i++) bytes[i] = printable ? 32 + random.below(95) : random.below(256);
  return bytes;
}

const CONNECTION_VALUES = [
  "close",
  "keep-alive",
  "Keep-Alive",
  "close, keep-alive",
  "keep-alive, close",
  "x",
  "upgrade",
  ",close",
];

const INSERTIONS = [
  "\r",
  "\n",
  "\r\n",
  "\r\n\r\n",
  "\0",
  " ",
  "\t",
  ":",
  ";",
  "0",
  "\x7f",
  "\xff",
  "-",
];

/** Lines that have fooled parsers before. */
const ODD_LINES = [
  "Content-Length: 5",
  "Content-Length: 3, 3",
  "Content-Length: +3",
  "Content-Length: -1",
  "Content-Length: 0x3",
  "Content-Length: 3 ",
  "Content-Length: 1 2",
  "Content-Length:",
  "Content-Length: 99999999999999999999",
  "Content-Length : 3",
  "Transfer-Encoding: chunked",
  "Transfer-Encoding: identity",
  "Transfer-Encoding: chunked, identity",
  "Transfer-Encoding: chunked, chunked",
  "Transfer-Encoding: xchunked",
  "Transfer-Encoding: \x0bchunked",
  "Transfer-Encoding : chunked",
  "Transfer-Encoding:",
  "Transfer-Encoding: chunked;q=1",
  " folded",
  "\tfolded",
  "X: a\r\n b",
  "X: a\rb",
  "X: a\nb",
  "X: a\0b",
  "X\0: a",
  ": no name",
  "no colon",
  "X Y: z",
  "Connection: close",
  "Connection: keep-alive",
  "Upgrade: h2c",
  "Connection: upgrade\r\nUpgrade: websocket",
];
