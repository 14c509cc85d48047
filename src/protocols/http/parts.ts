/**
 * \n Prepared parts of HTTP requests: a user builds them once at the top of a file and uses them in every call. Each
 * part is turned into text or bytes when it is made or prepared, never in the loop.
 *
 *   const api = url("https://api.example.com/users");
 *   const trace = headers({ "x-run": "nightly" });
 *   step("list", ({ http }) => http.get(api, { headers: trace }))
 */

import { maskCredentials } from "../../core/base/mask-credentials.ts";
import type { Endpoint, Route } from "../net/route.ts";
import { type BodyValue, encodeBody } from "./body.ts";
import type { BodyContent } from "./body-source.ts";
import type { EncodedBody } from "./multipart.ts";
import { nameOf } from "./plain-data.ts";

export class UrlPart implements Endpoint {
  /** Without credentials, because it is displayed. */
  readonly href: string;
  /** Value of the Authorization header for the credentials in the address; "" when it has none. */
  readonly authorization: string;
  readonly secure: boolean;
  readonly hostname: string;
  readonly port: number;
  /** Host header and :authority; includes the port unless it is the scheme's default. */
  readonly authority: string;
  /** Path with query, as in the request line. */
  readonly path: string;

  /** How connections are made, where the address alone does not determine it. */
  readonly route: Route | null;

  /** `base` is the prefix when `text` is a plain path under it; then nothing has to be parsed again. */
  constructor(text: string, route: Route | null = null, base: UrlPart | null = null) {
    this.route = route;
    if (base !== null) {
      this.authorization = base.authorization;
      this.secure = base.secure;
      this.hostname = base.hostname;
      this.port = base.port;
      this.authority = base.authority;
      this.path = text;
      this.href = `${base.secure ? "https" : "http"}://${base.authority}${text}`;
      return;
    }
    const parsed = parseUrl(text);
    this.authorization = basicOf(parsed);
    // Assign only when needed: each assignment makes Node parse the address again.
    if (this.authorization !== "") {
      parsed.username = "";
      parsed.password = "";
    }
    this.href = parsed.href;
    this.secure = parsed.protocol === "https:" || parsed.protocol === "wss:";
    // Brackets belong to the URL's notation of an IPv6 address, not to the address.
    this.hostname = parsed.hostname.replace(/^\[|\]$/g, "");
    this.port = parsed.port === "" ? (this.secure ? 443 : 80) : Number(parsed.port);
    this.authority = parsed.host;
    this.path = `${parsed.pathname}${parsed.search}`;
  }
}

export class HeadersPart {
  readonly entries: readonly (readonly [string, string])[];

  constructor(values: HeaderValues) {
    this.entries = headerEntries(values);
  }
}

export class DataPart implements EncodedBody {
  readonly content: BodyContent;
  readonly contentType: string;

  constructor(value: BodyValue, contentType?: string) {
    const encoded = encodeBody(value);
    this.content = encoded.content;
    this.contentType = contentType ?? encoded.contentType;
  }
}

export class ParamsPart {
  /** "a=1&b=2", without the question mark. */
  readonly text: string;

  constructor(values: ParamValues) {
    const search = new URLSearchParams();
    for (const [name, value] of Object.entries(values)) {
      for (const item of Array.isArray(value) ? value : [value]) {
        if (item !== undefined && item !== null) search.append(name, String(item));
      }
    }
    this.text = search.toString();
  }
}

export class CookiesPart {
  /** "a=1; b=2". */
  readonly text: string;

  constructor(values: Readonly<Record<string, string | number>>) {
    const pairs = Object.entries(values).map(([name, value]) => `${name}=${value}`);
    this.text = checkedHeader("cookie", pairs.join("; "))[1];
  }
}

export class AuthPart {
  /** Value of the Authorization header. */
  readonly text: string;

  constructor(text: string) {
    this.text = checkedHeader("authorization", text)[1];
  }
}

/** An undefined value is omitted, as in `params` and `form`. */
export type HeaderValues = Readonly<Record<string, string | number | undefined>>;
export type ParamValues = Readonly<Record<string, ParamValue | readonly ParamValue[]>>;
type ParamValue = string | number | boolean | null | undefined;

/** An address that is parsed once and resolved once per core. */
export const url = (text: string): UrlPart => new UrlPart(text);
export const headers = (values: HeaderValues): HeadersPart => new HeadersPart(values);
export const data = (value: BodyValue, contentType?: string): DataPart =>
  new DataPart(value, contentType);
export const params = (values: ParamValues): ParamsPart => new ParamsPart(values);
export const cookies = (values: Readonly<Record<string, string | number>>): CookiesPart =>
  new CookiesPart(values);
export const auth = {
  basic: (user: string, password: string): AuthPart => new AuthPart(basic(user, password)),
  bearer: (token: string): AuthPart => new AuthPart(`Bearer ${token}`),
};

function basic(user: string, password: string): string {
  return `Basic ${Buffer.from(`${user}:${password}`).toString("base64")}`;
}

/** "http://ada:secret@shop.test/" requests Basic authentication (RFC 7617). */
function basicOf({ password, username }: URL): string {
  if (username === "" && password === "") return "";
  return basic(unescaped(username), unescaped(password));
}

/** Keeps stray percent signs. */
function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function parseUrl(text: string): URL {
  if (typeof text !== "string") throw new TypeError(`a URL is text, not ${typeof text}`);
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) {
    if (text.startsWith("/"))
      throw new TypeError(
        `"${text}" has no host: write the whole URL, or call it of a target: ` +
          'http.target("https://shop.example").get("/users")',
      );
    const shown = maskCredentials(`http://${text}`).slice("http://".length);
    throw new TypeError(`"${shown}" has no scheme: write http://${shown} or https://${shown}`);
  }
  if (!/^(https?|wss?):/i.test(text)) {
    throw new TypeError(`"${maskCredentials(text)}" is not an http, https, ws or wss URL`);
  }
  try {
    return new URL(text);
  } catch {
    throw new TypeError(`"${maskCredentials(text)}" is not a URL`);
  }
}

export function headerEntries(values: HeaderValues): (readonly [string, string])[] {
  const entries: (readonly [string, string])[] = [];
  for (const name of Object.keys(values)) {
    const value: unknown = values[name];
    if (value === undefined) continue;
    if (typeof value !== "string" && typeof value !== "number") {
      throw new TypeError(`header "${name}" is ${nameOf(value)}: a header is text or a number`);
    }
    entries.push(checkedHeader(name, String(value)));
  }
  return entries;
}

/** Rejects line breaks and other control characters, which would split the request. */
export function checkedHeader(name: string, value: string): readonly [string, string] {
  if (!/^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(name))
    throw new TypeError(`"${name}" is not a header name`);
  return [name, checkedHeaderValue(name, value)];
}

export function checkedHeaderValue(name: string, value: string): string {
  // Tab and everything from space on, as in RFC 9110; characters above 255 cannot be sent.
  if (!/^[\t\x20-\x7e\x80-\xff]*$/.test(value)) {
    throw new TypeError(`the value of header "${name}" contains a character that cannot be sent`);
  }
  return value;
}
