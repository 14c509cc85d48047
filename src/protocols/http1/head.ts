/**
 * \n Parses the head of an HTTP/1.x response: the status line, and the headers that affect framing and reuse.
 * Everything else stays bytes until it is read (response.ts).
 *
 * Strict where leniency has been abused for request smuggling (RFC 9112): CRLF line ends only, no white space before
 * the colon, no folded lines, no duplicate or contradicting lengths.
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
  /** Set when the head violates a rule; names the rule. */
  problem: string | null = null;
  /** Headers seen so far; `conclude` derives the fields above from them. */
  minor = 1;
  sawLength = false;
  sawEncoding = false;
  sawKeepAlive = false;
  sawClose = false;

  start(): void {
    this.problem = null;
    this.bodyKind = BODY_UNTIL_CLOSE;
    this.bodyLength = 0;
    this.hasSetCookie = false;
    this.hasLocation = false;
    this.sawLength = false;
    this.sawEncoding = false;
    this.sawKeepAlive = false;
    this.sawClose = false;
  }
}

export const HEAD_INCOMPLETE = 0;
export const HEAD_BROKEN = -1;

const CR = 13;
const LF = 10;
const SPACE = 32;
const COLON = 58;
/** "HTTP/1.1 200" and its line end. */
const STATUS_LINE_BYTES_MIN = 14;

/**
 * Returns the index after the empty line that ends the head at `start`, or -1. Bytes before `from` have been scanned
 * before.
 */
export function findHeadEnd(buffer: Buffer, start: number, from: number, end: number): number {
  let at = from;
  for (;;) {
    at = buffer.indexOf(LF, at);
    if (at < 0 || at >= end) return -1;
    // The head ends with CRLF CRLF: this LF closes an empty line if it follows CR LF CR.
    const closes = at - 3 >= start && buffer[at - 1] === CR && buffer[at - 2] === LF;
    if (closes && buffer[at - 3] === CR) return at + 1;
    at++;
  }
}

const PREFIX = Buffer.from("HTTP/1.");

/**
 * Checks an incomplete head; returns what is wrong with it already, or null. Without this check, a server that does not
 * speak HTTP would look silent until the timeout. Line ends before `from` have been checked before.
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
 * Parses the head that begins at `from`, in one pass; bytes from `end` on are ignored. `noBody` is true for responses
 * to HEAD. Returns the index after the head, HEAD_INCOMPLETE, or HEAD_BROKEN with `head.problem` set.
 */
export function parseHead(
  head: Head,
  buffer: Buffer,
  from: number,
  end: number,
  noBody: boolean,
): number {
  head.start();
  let at = parseStatusLine(head, buffer, from, end);
  if (at <= 0) return at;
  for (;;) {
    const nameStart = at;
    let byte = buffer[at] as number;
    while (TOKEN[byte] === 1) byte = buffer[++at] as number;
    if (at >= end) return HEAD_INCOMPLETE;
    const nameLength = at - nameStart;
    if (byte !== COLON || nameLength === 0) {
      if (byte !== CR || nameLength > 0) return refuse(head, "a header has an invalid name");
      if (at + 1 >= end) return HEAD_INCOMPLETE;
      if (buffer[at + 1] !== LF) return refuse(head, "a header has an invalid name");
      return conclude(head, noBody) ? at + 2 : HEAD_BROKEN;
    }
    const valueStart = ++at;
    byte = buffer[at] as number;
    while (VALUE[byte] === 1) byte = buffer[++at] as number;
    if (at >= end) return HEAD_INCOMPLETE;
    if (byte !== CR) return refuse(head, "a header value contains a control character");
    if (at + 1 >= end) return HEAD_INCOMPLETE;
    if (buffer[at + 1] !== LF) return refuse(head, "a header value contains a control character");
    // Only five names matter here, distinguished by length first.
    if (nameLength === 14 || nameLength === 10 || nameLength === 17 || nameLength === 8) {
      const problem = applyHeader(head, buffer, nameStart, valueStart, at);
      if (problem !== null) return refuse(head, problem);
    }
    at += 2;
  }
}

/** Returns the index after the status line. "HTTP/1.1 200 OK", the reason being optional. */
function parseStatusLine(head: Head, buffer: Buffer, from: number, end: number): number {
  if (end - from < STATUS_LINE_BYTES_MIN) return HEAD_INCOMPLETE;
  const proper =
    buffer[from] === 72 &&
    buffer[from + 1] === 84 &&
    buffer[from + 2] === 84 &&
    buffer[from + 3] === 80 &&
    buffer[from + 4] === 47 &&
    buffer[from + 5] === 49 &&
    buffer[from + 6] === 46 &&
    buffer[from + 8] === 32;
  const minor = (buffer[from + 7] as number) - 48;
  if (!proper || minor < 0 || minor > 1) return refuse(head, NOT_HTTP);
  const hundreds = (buffer[from + 9] as number) - 48;
  const tens = (buffer[from + 10] as number) - 48;
  const ones = (buffer[from + 11] as number) - 48;
  if (hundreds < 1 || hundreds > 9 || tens < 0 || tens > 9 || ones < 0 || ones > 9)
    return refuse(head, NOT_HTTP);
  head.status = hundreds * 100 + tens * 10 + ones;
  head.minor = minor;
  let at = from + 12;
  if (buffer[at] === 32) {
    at++;
    while (VALUE[buffer[at] as number] === 1) at++;
  }
  if (at >= end) return HEAD_INCOMPLETE;
  if (buffer[at] !== CR) return refuse(head, NOT_HTTP);
  if (at + 1 >= end) return HEAD_INCOMPLETE;
  return buffer[at + 1] === LF ? at + 2 : refuse(head, NOT_HTTP);
}

/** Applies one header that affects framing or reuse; returns the problem, if there is one. */
function applyHeader(
  head: Head,
  buffer: Buffer,
  nameStart: number,
  valueStart: number,
  valueEnd: number,
): string | null {
  // The colon immediately precedes the value.
  switch (valueStart - 1 - nameStart) {
    case 14:
      if (!nameIs(buffer, nameStart, "content-length")) return null;
      if (head.sawLength) return "two Content-Length headers";
      head.sawLength = true;
      head.bodyKind = BODY_LENGTH;
      head.bodyLength = parseLength(buffer, valueStart, valueEnd);
      return head.bodyLength < 0 ? "Content-Length is not a number" : null;
    case 10:
      if (nameIs(buffer, nameStart, "connection"))
        applyConnection(head, buffer, valueStart, valueEnd);
      else if (nameIs(buffer, nameStart, "set-cookie")) head.hasSetCookie = true;
      return null;
    case 17:
      if (!nameIs(buffer, nameStart, "transfer-encoding")) return null;
      if (head.sawEncoding) return "two Transfer-Encoding headers";
      head.sawEncoding = true;
      head.bodyKind = encodedBodyKind(buffer, valueStart, valueEnd);
      return head.bodyKind < 0 ? "Transfer-Encoding is not a valid list" : null;
    default:
      if (nameIs(buffer, nameStart, "location")) head.hasLocation = true;
      return null;
  }
}

/** Derives body and reuse from all headers. Returns false when they contradict each other. */
function conclude(head: Head, noBody: boolean): boolean {
  const { status } = head;
  if (head.sawLength && head.sawEncoding) {
    refuse(head, "both Content-Length and Transfer-Encoding");
    return false;
  }
  // No upgrade was requested; the bytes that follow are not HTTP.
  if (status === 101) {
    refuse(head, "the server switches protocols without being asked");
    return false;
  }
  if (noBody || status === 204 || status === 304 || status < 200) {
    head.bodyKind = BODY_NONE;
    head.bodyLength = 0;
  } else if (head.bodyKind === BODY_LENGTH && head.bodyLength === 0) {
    head.bodyKind = BODY_NONE;
  }
  // HTTP/1.0 keeps a connection only on request, and has no Transfer-Encoding (RFC 9112 §6.1): read it, but do not
  // reuse the connection. "close" overrides everything.
  const wanted = head.minor === 1 || (head.sawKeepAlive && !head.sawEncoding);
  head.keepAlive = wanted && !head.sawClose && head.bodyKind !== BODY_UNTIL_CLOSE;
  return true;
}

function nameIs(buffer: Buffer, at: number, name: string): boolean {
  for (let i = 0; i < name.length; i++) {
    // In tokens, setting bit 5 folds letters and leaves "-" unchanged. The only other byte it maps to "-" is CR, which
    // ends a value.
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

function applyConnection(head: Head, buffer: Buffer, from: number, end: number): void {
  // Nearly always a single token.
  const start = buffer[from] === SPACE ? from + 1 : from;
  if (end - start === 10 && nameIs(buffer, start, "keep-alive")) head.sawKeepAlive = true;
  else if (end - start === 5 && nameIs(buffer, start, "close")) head.sawClose = true;
  else {
    const words = listOf(buffer, from, end);
    if (words.includes("close")) head.sawClose = true;
    if (words.includes("keep-alive")) head.sawKeepAlive = true;
  }
}

/** Chunked must come last and only once; without it, the body ends with the connection. -1: invalid. */
function encodedBodyKind(buffer: Buffer, from: number, end: number): number {
  const codings = listOf(buffer, from, end);
  if (codings.length === 0) return -1;
  const at = codings.indexOf("chunked");
  if (at >= 0 && at < codings.length - 1) return -1;
  return at >= 0 ? BODY_CHUNKED : BODY_UNTIL_CLOSE;
}

/** Items of a comma-separated list, in lower case; empty items are ignored (RFC 9110 §5.6.1). */
function listOf(buffer: Buffer, from: number, end: number): readonly string[] {
  const members = buffer.toString("latin1", from, end).toLowerCase().split(",");
  return members.map((member) => member.replace(/^[ \t]+|[ \t]+$/g, "")).filter(Boolean);
}

function isBlank(byte: number): boolean {
  return byte === 32 || byte === 9;
}

function refuse(head: Head, problem: string): typeof HEAD_BROKEN {
  head.problem = problem;
  return HEAD_BROKEN;
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
