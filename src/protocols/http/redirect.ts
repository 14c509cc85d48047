/** Builds the request that follows a redirect, for any version of HTTP. RFC 9110 §15.4. */

import { UrlPart } from "./parts.ts";
import type { ComposedRequest } from "./request.ts";

/** Null when the response is not a redirect that can be followed. */
export function redirectOf(
  request: ComposedRequest,
  status: number,
  location: string | null,
): ComposedRequest | null {
  if (location === null || status < 300 || status > 399 || status === 304) return null;
  try {
    const { href, route } = request.url;
    const target = new UrlPart(new URL(location, href).href, route);
    return redirected(request, target, status);
  } catch {
    return null;
  }
}

function redirected(request: ComposedRequest, target: UrlPart, status: number): ComposedRequest {
  const rewritten =
    status === 303 || ((status === 301 || status === 302) && request.method === "POST");
  const method = rewritten && request.method !== "HEAD" ? "GET" : request.method;
  const sameHost =
    target.authority === request.url.authority && target.secure === request.url.secure;
  const headers = request.headers.filter(([name]) => {
    const key = name.toLowerCase();
    // Credentials stay with their host; a dropped body takes its headers along.
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
