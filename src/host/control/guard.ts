/**
 * Access to a control interface. Without a token it is served on the loopback only, and not under a name that a web
 * page could have made resolve to us. Pages of other sites are rejected even with a token: a browser on this machine
 * must not act for a hostile site.
 */

import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { isIPv4 } from "node:net";
import { HttpError } from "./http-error.ts";

/** Whether an address or name can only mean this machine. */
export function isLoopback(host: string): boolean {
  const bare = host.replace(/^\[(.*)\]$/, "$1");
  return bare === "localhost" || bare === "::1" || (isIPv4(bare) && bare.startsWith("127."));
}

/** Returns why this address must not be served; null when it may be. */
export function listenProblem(host: string, token: string | null): string | null {
  if (token !== null || isLoopback(host)) return null;
  return `refusing to listen on ${host} without authentication`;
}

/** The name a request was sent to, without its port. */
function nameOf(host: string | undefined): string {
  return (host ?? "").replace(/:\d+$/, "");
}

/**
 * Rejects pages of other sites and, where no token protects us, names that are not the loopback's: numeric addresses
 * cannot be rebound, a name that resolves to us is how a page would get here. `ownPages` admits pages of this very
 * server.
 */
export function refuseForeignPages(
  headers: IncomingHttpHeaders,
  { token, ownPages }: { readonly token: string | null; readonly ownPages: boolean },
): void {
  const { host, origin } = headers;
  const own = ownPages && (origin === `http://${host}` || origin === `https://${host}`);
  if (origin !== undefined && !own) throw new HttpError(403, "calls from web pages are refused");
  // Images and no-cors requests of a page carry no Origin. Following a link to our page is allowed.
  const site = headers["sec-fetch-site"];
  const navigates = ownPages && headers["sec-fetch-mode"] === "navigate";
  if ((site === "cross-site" || site === "same-site") && !navigates) {
    throw new HttpError(403, "calls from pages of other sites are refused");
  }
  if (token !== null) return;
  const name = nameOf(host);
  if (!isLoopback(name)) {
    throw new HttpError(403, `this node answers to a loopback name only, not to "${name}"`);
  }
}

/** A token for a part of a service; the service defines which. */
export interface ScopedToken {
  readonly scope: string;
  readonly token: string;
}

/** Returns the scope of a request's token; null for full access. */
export function requireToken(
  headers: IncomingHttpHeaders,
  token: string | null,
  scoped: readonly ScopedToken[] = [],
): ScopedToken | null {
  if (token === null) return null;
  const given = /^Bearer (.+)$/.exec(headers.authorization ?? "")?.[1];
  const fits = (one: string): boolean =>
    given !== undefined && timingSafeEqual(digest(given), digest(one));
  if (fits(token)) return null;
  const part = scoped.find((one) => fits(one.token));
  if (part !== undefined) return part;
  throw new HttpError(401, "a bearer token is required: send Authorization: Bearer <token>");
}

/** Equal lengths for any input. */
function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
