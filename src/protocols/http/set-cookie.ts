/**
 * Parses one Set-Cookie line as user agents must (RFC 6265 §5.1.1 and §5.2): lenient inside attributes, strict about
 * the cookie itself. The jar decides whether to accept it.
 */

export interface SetCookie {
  readonly name: string;
  readonly value: string;
  /** Without a leading dot, in lower case; null when absent. */
  readonly domain: string | null;
  /** Null when absent or without a leading slash. */
  readonly path: string | null;
  readonly secure: boolean;
  /** Wall clock; Infinity for a session cookie, -Infinity for a deletion. */
  readonly expiresAt: number;
}

/** Name and value together; browsers ignore larger ones (RFC 6265bis §5.6). */
export const COOKIE_BYTES_MAX = 4_096;
/** An attribute longer than this is ignored (RFC 6265bis §5.6). */
const ATTRIBUTE_BYTES_MAX = 1_024;

/** Returns null for a line that sets no cookie. */
export function parseSetCookie(line: string, nowMs: number): SetCookie | null {
  const end = line.indexOf(";");
  const pair = end < 0 ? line : line.slice(0, end);
  const equals = pair.indexOf("=");
  if (equals < 0) return null;
  const name = pair.slice(0, equals).trim();
  const value = pair.slice(equals + 1).trim();
  if (name === "" || name.length + value.length > COOKIE_BYTES_MAX) return null;
  if (/[\x00-\x1f\x7f]/.test(name) || /[\x00-\x1f\x7f]/.test(value)) return null;
  return { name, value, ...parseAttributes(end < 0 ? "" : line.slice(end + 1), nowMs) };
}

type Attributes = Omit<SetCookie, "name" | "value">;

/** The last of several attributes of one name wins; Max-Age takes precedence over Expires. */
function parseAttributes(text: string, nowMs: number): Attributes {
  let domain: string | null = null;
  let path: string | null = null;
  let secure = false;
  let expires = Number.POSITIVE_INFINITY;
  let maxAge: number | null = null;
  for (const attribute of text === "" ? [] : text.split(";")) {
    const equals = attribute.indexOf("=");
    const name = (equals < 0 ? attribute : attribute.slice(0, equals)).trim().toLowerCase();
    const value = equals < 0 ? "" : attribute.slice(equals + 1).trim();
    if (value.length > ATTRIBUTE_BYTES_MAX) continue;
    if (name === "secure") secure = true;
    else if (name === "path") path = value.startsWith("/") ? value : null;
    else if (name === "domain") domain = value.replace(/^\./, "").toLowerCase() || domain;
    else if (name === "expires") expires = parseCookieDate(value) ?? expires;
    else if (name === "max-age" && /^-?\d+$/.test(value)) maxAge = Number(value);
  }
  if (maxAge === null) return { domain, path, secure, expiresAt: expires };
  const expiresAt = maxAge <= 0 ? Number.NEGATIVE_INFINITY : nowMs + maxAge * 1_000;
  return { domain, path, secure, expiresAt };
}

const DELIMITERS = /[\t\x20-\x2f\x3b-\x40\x5b-\x60\x7b-\x7e]+/;
const TIME = /^(\d{1,2}):(\d{1,2}):(\d{1,2})(?:\D|$)/;
const DAY = /^(\d{1,2})(?:\D|$)/;
const MONTH = /^(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)/i;
const YEAR = /^(\d{2,4})(?:\D|$)/;
const MONTHS = "janfebmaraprmayjunjulaugsepoctnovdec";

/** Parses dates in any form that servers have ever used (§5.1.1); null when invalid. */
export function parseCookieDate(text: string): number | null {
  let time: RegExpExecArray | null = null;
  let day: RegExpExecArray | null = null;
  let month: RegExpExecArray | null = null;
  let year: RegExpExecArray | null = null;
  for (const token of text.split(DELIMITERS)) {
    // Each token fills the first missing field whose format it matches.
    let found: RegExpExecArray | null = null;
    if (time === null) found = time = TIME.exec(token);
    if (found === null && day === null) found = day = DAY.exec(token);
    if (found === null && month === null) found = month = MONTH.exec(token);
    if (found === null && year === null) year = YEAR.exec(token);
  }
  if (time === null || day === null || month === null || year === null) return null;
  return instant({
    year: fullYear(Number(year[1])),
    month: MONTHS.indexOf((month[1] ?? "").toLowerCase()) / 3,
    day: Number(day[1]),
    hours: Number(time[1]),
    minutes: Number(time[2]),
    seconds: Number(time[3]),
  });
}

function fullYear(year: number): number {
  if (year >= 70 && year <= 99) return year + 1_900;
  return year <= 69 ? year + 2_000 : year;
}

function instant(parts: {
  readonly year: number;
  readonly month: number;
  readonly day: number;
  readonly hours: number;
  readonly minutes: number;
  readonly seconds: number;
}): number | null {
  const { year, month, day, hours, minutes, seconds } = parts;
  if (year < 1_601 || hours > 23 || minutes > 59 || seconds > 59) return null;
  const at = Date.UTC(year, month, day, hours, minutes, seconds);
  // Reject a day that rolled over into the next month.
  return new Date(at).getUTCDate() === day ? at : null;
}
