/** Following a redirect (opt-in): the same call goes on with another request. RFC 9110 §15.4. */

import { UrlPart } from "../http/parts.ts";
import type { ComposedRequest } from "../http/request.ts";
import type { Exchange } from "./exchange.ts";
import { WireRequest } from "./wire-request.ts";

/** True when the exchange goes on with the redirect's target. */
export function followRedirect(exchange: Exchange, now: number): boolean {
  const { location, request, status } = exchange;
  if (location === null || status < 300 || status > 399 || status === 304) return false;
  let target: UrlPart;
  try {
    target = new UrlPart(new URL(location, request.source.url.href).href);
  } catch {
    return false;
  }
  const next = new WireRequest(
    redirected(request.source, target, status),
    exchange.source.settings,
  );
  if (next.origin.address !== undefined) {
    exchange.restart(next, now);
    return true;
  }
  next.origin.prepare(exchange.source).then(
    () => exchange.restart(next, performance.now()),
    (error: Error) => exchange.fail("dns", error.message, performance.now()),
  );
  return true;
}

function redirected(request: ComposedRequest, target: UrlPart, status: number): ComposedRequest {
  const rewritten =
    status === 303 || ((status === 301 || status === 302) && request.method === "POST");
  const method = rewritten && request.method !== "HEAD" ? "GET" : request.method;
  const sameHost =
    target.authority === request.url.authority && target.secure === request.url.secure;
  const headers = request.headers.filter(([name]) => {
    const key = name.toLowerCase();
    // Credentials stay with the host they were given for; a dropped body takes its headers along.
    if (!sameHost && (key === "authorization" || key === "cookie" || key === "host")) return false;
    return !(rewritten && key.startsWith("content-"));
  });
  return {
    ...request,
    method,
    url: target,
    path: target.path,
    headers,
    body: rewritten ? null : request.body,
    cookies: sameHost ? request.cookies : "",
  };
}
