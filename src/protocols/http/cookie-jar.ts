/**
 * \n Cookies of one virtual user, following RFC 6265 §5.3 and §5.4, optimised for the hot path: an empty jar costs one
 * comparison per request, a full one a walk over a short list that is kept in sending order (longer paths first, then
 * older cookies first), with "name=value" already joined.
 *
 * A load generator visits only its targets, so two features of browsers are omitted: SameSite, since every request is
 * first-party, and the public suffix list, instead of which a Domain of one label ("com") is rejected.
 *
 * Bounded: a server that keeps setting cookies evicts its own oldest ones.
 */

import { parseSetCookie, type SetCookie } from "./set-cookie.ts";

export interface CookieOrigin {
  /** Lower case, without port: cookies ignore ports. */
  readonly host: string;
  /** Path of the request; may include a query. */
  readonly path: string;
  readonly secure: boolean;
}

/** RFC 6265 §6.1 requires at least 50 per domain. */
export const COOKIES_PER_DOMAIN_MAX = 50;
/** Per virtual user; there may be tens of thousands of users. */
export const COOKIES_MAX = 200;

interface Cookie {
  readonly name: string;
  readonly pair: string;
  readonly domain: string;
  /** ".domain" for the suffix test; null for a host-only cookie. */
  readonly suffix: string | null;
  readonly path: string;
  readonly secure: boolean;
  readonly expiresAt: number;
  /** Order of creation; kept when the cookie is set again. */
  readonly order: number;
}

/** Shared by all empty jars, so that a virtual user without cookies costs no array. */
const NONE: Cookie[] = [];

export class CookieJar {
  #cookies = NONE;
  #created = 0;

  get size(): number {
    return this.#cookies.length;
  }

  clear(): void {
    this.#cookies = NONE;
  }

  /** Stores the Set-Cookie lines of one response. `nowMs` is wall-clock time, like Expires. */
  store(lines: readonly string[], origin: CookieOrigin, nowMs: number): void {
    for (const line of lines) {
      const parsed = parseSetCookie(line, nowMs);
      const cookie = parsed === null ? null : accept(parsed, origin, this.#created);
      if (cookie === null) continue;
      this.#created += 1;
      this.#put(cookie, nowMs);
    }
  }

  /** Returns the value of the Cookie header for a request; "" when there is nothing to send. */
  header({ host, path, secure }: CookieOrigin, nowMs: number): string {
    if (this.#cookies === NONE) return "";
    let header = "";
    for (const cookie of this.#cookies) {
      if (cookie.expiresAt <= nowMs || (cookie.secure && !secure)) continue;
      if (!hostMatches(cookie, host) || !pathMatches(cookie.path, path)) continue;
      header = header === "" ? cookie.pair : `${header}; ${cookie.pair}`;
    }
    return header;
  }

  #put(cookie: Cookie, nowMs: number): void {
    const at = this.#cookies.findIndex((existing) => isSame(existing, cookie));
    const existing = this.#cookies[at];
    if (existing !== undefined && existing.expiresAt > nowMs && cookie.expiresAt > nowMs) {
      // A cookie that is set again keeps its age, and with it its position.
      this.#cookies[at] = { ...cookie, order: existing.order };
      return;
    }
    const kept = this.#cookies.filter((other) => other.expiresAt > nowMs && !isSame(other, cookie));
    if (cookie.expiresAt > nowMs) {
      makeRoom(kept, cookie.domain);
      const after = kept.findIndex(({ path }) => path.length < cookie.path.length);
      kept.splice(after < 0 ? kept.length : after, 0, cookie);
    }
    this.#cookies = kept.length === 0 ? NONE : kept;
  }
}

/** Returns the cookie to store, or null when this origin may not set it. */
function accept(given: SetCookie, origin: CookieOrigin, order: number): Cookie | null {
  const { name, value, secure, expiresAt } = given;
  const domain = given.domain ?? origin.host;
  if (domain !== origin.host && !maySetFor(domain, origin.host)) return null;
  const hostOnly = given.domain === null || isAddress(domain) || !domain.includes(".");
  const path = given.path ?? defaultPath(origin.path);
  // RFC 6265bis §4.1.3: a name prefix requires matching attributes.
  if (name.startsWith("__Secure-") && !secure) return null;
  if (name.startsWith("__Host-") && !(secure && given.domain === null && given.path === "/")) {
    return null;
  }
  const suffix = hostOnly ? null : `.${domain}`;
  return { name, pair: `${name}=${value}`, domain, suffix, path, secure, expiresAt, order };
}

function maySetFor(domain: string, host: string): boolean {
  return domain.includes(".") && host.endsWith(`.${domain}`) && !isAddress(host);
}

function isAddress(host: string): boolean {
  return host.includes(":") || /^\d+\.\d+\.\d+\.\d+$/.test(host);
}

function hostMatches(cookie: Cookie, host: string): boolean {
  if (cookie.domain === host) return true;
  return cookie.suffix !== null && host.endsWith(cookie.suffix);
}

const SLASH = 0x2f;
const QUESTION_MARK = 0x3f;

function pathMatches(cookiePath: string, path: string): boolean {
  if (cookiePath === "/") return true;
  if (!path.startsWith(cookiePath)) return false;
  if (path.length === cookiePath.length || cookiePath.endsWith("/")) return true;
  const next = path.charCodeAt(cookiePath.length);
  return next === SLASH || next === QUESTION_MARK;
}

/** The directory of the request's path (§5.1.4). */
function defaultPath(target: string): string {
  const mark = target.indexOf("?");
  const path = mark < 0 ? target : target.slice(0, mark);
  const slash = path.lastIndexOf("/");
  return slash <= 0 || !path.startsWith("/") ? "/" : path.slice(0, slash);
}

function isSame(a: Cookie, b: Cookie): boolean {
  return a.name === b.name && a.domain === b.domain && a.path === b.path;
}

/** Evicts the oldest cookie of the domain, or of the jar, when a limit is reached. */
function makeRoom(cookies: Cookie[], domain: string): void {
  const ofDomain = cookies.filter((cookie) => cookie.domain === domain);
  const crowd =
    ofDomain.length >= COOKIES_PER_DOMAIN_MAX
      ? ofDomain
      : cookies.length >= COOKIES_MAX
        ? cookies
        : [];
  let oldest: Cookie | null = null;
  for (const cookie of crowd) {
    if (oldest === null || cookie.order < oldest.order) oldest = cookie;
  }
  if (oldest !== null) cookies.splice(cookies.indexOf(oldest), 1);
}
