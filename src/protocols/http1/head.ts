/**
 * Reads the head of an HTTP/1.x answer: status line and headers, and of the headers only what
 * decides about framing and reuse. Everything else stays bytes until somebody asks (response.ts).
 *
 * Strict where leniency has been abused for request smuggling (RFC 9112): CRLF line ends only, no
 * white space before the colon, no folded lines, no doubled or contradicting lengths.
 */

export const BODY_NONE = 0;
export const BODY_LENGTH = 1;
export const BODY_CHUNKED = 2;
export const BODY_UNTIL_CLOSE = 3;

/** Filled by `parseHead`; one per connection, reused. */
export class Head {
  status = 0;
  bodyKind = BODY_NONE;
  bodyLength = 0;
  keepAlive = true;
  hasSetCookie = false;
  hasLocation = false;
  /** Set when the head breaks a rule; the text says which. */
  problem: string | null = null;
}

const CR = 13;
const LF = 10;

/**
 * Index just behind the empty line that ends the head which begins at `start`, or -1. Bytes before
 * `from` have been looked at before.
 */
export function findHeadEnd(buffer: Buffer, start: number, from: number, end: number): number {
  let at = from;
  for (;;) {
    at = buffer.indexOf(LF, at);
    if (at < 0 || at >= end) return -1;
    // The head ends with CRLF CRLF: this LF closes an empty line if CR LF CR stands right before.
    const closes = at - 3 >= start && buffer[at - 1] === CR && buffer[at - 2] === LF;
    if (closes && buffer[at - 3] === CR) return at + 1;
    at++;
  }
}

const PREFIX = Buffer.from("HTTP/1.");

/**
 * For a head that has begun but not ended: what is wrong with it already, or null. Without this, a
 * server that does not speak HTTP at all would be heard as silence until the time-out. Line ends
 * before `from` have been looked at before.
 */
export function earlyProblem(
  buffer: Buffer,
  start: number,
  from: number,
  end: number,
): string | null {
  const known = Math.min(end - start, PREFIX.length);
  for (let i = 0; i < known; i++) {
    if (buffer[start + i] !== PREFIX[i]) return NOT_HTTP;
  }
  let at = buffer.indexOf(LF, from);
  while (at >= 0 && at < end) {
    if (buffer[at - 1] !== CR) return "a line of the head ends without CR";
    at = buffer.indexOf(LF, at + 1);
  }
  return null;
}

const NOT_HTTP = "the status line is not HTTP/1.x";

/**
 * Parses buffer[from, end), where end is what `findHeadEnd` gave. `noBody` is true for answers to
 * HEAD. Returns false when the head breaks a rule.
 */
export function parseHead(
  head: Head,
  buffer: Buffer,
  from: number,
  end: number,
  noBody: boolean,
): boolean {
  head.problem = null;
  head.bodyKind = BODY_UNTIL_CLOSE;
  head.bodyLength = 0;
  head.hasSetCookie = false;
  head.hasLocation = false;
  let at = parseStatusLine(head, buffer, from, end);
  if (at < 0) return refuse(head, NOT_HTTP);
  // We never ask for an upgrade: what would follow is not HTTP.
  if (head.status === 101) return refuse(head, "the server switches protocols without being asked");
  // A server of HTTP/1.0 keeps the connection only where it says so; "close" outweighs everything.
  let keepAlive = buffer[from + 7] === 49;
  let close = false;
  let sawLength = false;
  let sawEncoding = false;
  while (at < end - 2) {
    const nameStart = at;
    let byte = buffer[at] as number;
    while (TOKEN[byte] === 1) byte = buffer[++at] as number;
    const nameLength = at - nameStart;
    if (byte !== 58 || nameLength === 0) return refuse(head, "a header has no proper name");
    at++;
    const valueStart = at;
    byte = buffer[at] as number;
    while (VALUE[byte] === 1) byte = buffer[++at] as number;
    if (byte !== CR || buffer[at + 1] !== LF)
      return refuse(head, "a header value holds a control character");
    const lineEnd = at;
    at += 2;
    // Only five names matter here, told apart by length first.
    if (nameLength === 14) {
      if (nameIs(buffer, nameStart, "content-length")) {
        if (sawLength) return refuse(head, "two Content-Length headers");
        sawLength = true;
        const length = parseLength(buffer, valueStart, lineEnd);
        if (length < 0) return refuse(head, "Content-Length is not a number");
        head.bodyKind = BODY_LENGTH;
        head.bodyLength = length;
      }
    } else if (nameLength === 10) {
      if (nameIs(buffer, nameStart, "connection")) {
        const wish = connectionWish(buffer, valueStart, lineEnd);
        if (wish === "close") close = true;
        else if (wish === "keep-alive") keepAlive = true;
      } else if (nameIs(buffer, nameStart, "set-cookie")) head.hasSetCookie = true;
    } else if (nameLength === 17) {
      if (nameIs(buffer, nameStart, "transfer-encoding")) {
        if (sawEncoding) return refuse(head, "two Transfer-Encoding headers");
        sawEncoding = true;
        const kind = encodedBodyKind(buffer, valueStart, lineEnd);
        if (kind < 0) return refuse(head, "Transfer-Encoding is not a proper list");
        head.bodyKind = kind;
        // HTTP/1.0 has no Transfer-Encoding (RFC 9112 §6.1): read it, and trust nothing behind it.
        if (buffer[from + 7] === 48) close = true;
      }
    } else if (nameLength === 8 && nameIs(buffer, nameStart, "location")) {
      head.hasLocation = true;
    }
  }
  if (sawLength && sawEncoding) return refuse(head, "both Content-Length and Transfer-Encoding");
  const status = head.status;
  if (noBody || status === 204 || status === 304 || status < 200) {
    head.bodyKind = BODY_NONE;
    head.bodyLength = 0;
  } else if (head.bodyKind === BODY_LENGTH && head.bodyLength === 0) {
    head.bodyKind = BODY_NONE;
  }
  head.keepAlive = keepAlive && !close && head.bodyKind !== BODY_UNTIL_CLOSE;
  return true;
}

/** Byte after the status line, or -1. "HTTP/1.1 200 OK", the reason being optional. */
function parseStatusLine(head: Head, buffer: Buffer, from: number, end: number): number {
  const proper =
    end - from >= 14 &&
    buffer[from] === 72 &&
    buffer[from + 1] === 84 &&
    buffer[from + 2] === 84 &&
    buffer[from + 3] === 80 &&
    buffer[from + 4] === 47 &&
    buffer[from + 5] === 49 &&
    buffer[from + 6] === 46 &&
    buffer[from + 8] === 32;
  if (!proper) return -1;
  const minor = buffer[from + 7];
  if (minor !== 49 && minor !== 48) return -1;
  const hundreds = (buffer[from + 9] as number) - 48;
  const tens = (buffer[from + 10] as number) - 48;
  const ones = (buffer[from + 11] as number) - 48;
  if (hundreds < 1 || hundreds > 9 || tens < 0 || tens > 9 || ones < 0 || ones > 9) return -1;
  head.status = hundreds * 100 + tens * 10 + ones;
  let at = from + 12;
  if (buffer[at] === 32) {
    at++;
    while (VALUE[buffer[at] as number] === 1) at++;
  }
  return buffer[at] === CR && buffer[at + 1] === LF ? at + 2 : -1;
}

function nameIs(buffer: Buffer, at: number, name: string): boolean {
  for (let i = 0; i < name.length; i++) {
    // Header names are tokens, where setting bit 5 folds letters and leaves "-" alone.
    if (((buffer[at + i] as number) | 0x20) !== name.charCodeAt(i)) return false;
  }
  return true;
}

function parseLength(buffer: Buffer, from: number, end: number): number {
  let start = from;
  let stop = end;
  while (start < stop && isBlank(buffer[start] as number)) start++;
  while (stop > start && isBlank(buffer[stop - 1] as number)) stop--;
  if (start === stop || stop - start > 15) return -1;
  let value = 0;
  for (let i = start; i < stop; i++) {
    const digit = (buffer[i] as number) - 48;
    if (digit < 0 || digit > 9) return -1;
    value = value * 10 + digit;
  }
  return value;
}

function connectionWish(buffer: Buffer, from: number, end: number): "close" | "keep-alive" | null {
  // By far the most common value, told without making a string of it.
  if (end - from === 11 && nameIs(buffer, from + 1, "keep-alive")) return "keep-alive";
  const words = listOf(buffer, from, end);
  if (words.includes("close")) return "close";
  return words.includes("keep-alive") ? "keep-alive" : null;
}

/** Chunked must come last and only once; without it the body ends with the connection. -1: improper. */
function encodedBodyKind(buffer: Buffer, from: number, end: number): number {
  const codings = listOf(buffer, from, end);
  if (codings.length === 0) return -1;
  const at = codings.indexOf("chunked");
  if (at >= 0 && at < codings.length - 1) return -1;
  return at >= 0 ? BODY_CHUNKED : BODY_UNTIL_CLOSE;
}

/** Members of a comma-separated list, in lower case; empty members do not count (RFC 9110 §5.6.1). */
function listOf(buffer: Buffer, from: number, end: number): readonly string[] {
  const members = buffer.toString("latin1", from, end).toLowerCase().split(",");
  return members.map((member) => member.replace(/^[ \t]+|[ \t]+$/g, "")).filter(Boolean);
}

function isBlank(byte: number): boolean {
  return byte === 32 || byte === 9;
}

function refuse(head: Head, problem: string): false {
  head.problem = problem;
  return false;
}

/** 1 for bytes of a header name. */
export const TOKEN = new Uint8Array(256);
for (const character of "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") {
  TOKEN[character.charCodeAt(0)] = 1;
}
/** 1 for bytes of a header value: visible, blank, tab and everything above 127. */
export const VALUE = new Uint8Array(256).fill(1);
VALUE.fill(0, 0, 32);
VALUE[9] = 1;
VALUE[127] = 0;
