/** A composed request as HTTP/2 wants it: one header object with lower-case names, made once. (OPT-8) */

import type { OutgoingHttpHeaders } from "node:http2";
import type { ComposedRequest } from "../http/request.ts";

/** Headers about one connection; HTTP/2 forbids them (RFC 9113 §8.2.2). */
const CONNECTION_HEADERS = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "transfer-encoding",
  "upgrade",
]);

export function encoder(
  request: ComposedRequest,
): (path: string, cookies: string) => OutgoingHttpHeaders {
  const headers = headersOf(request);
  return (path, cookie) => {
    const own = path === request.path ? headers : { ...headers, ":path": path };
    return cookie === "" ? own : { ...own, cookie };
  };
}

function headersOf(request: ComposedRequest): OutgoingHttpHeaders {
  const { body, method, path, url } = request;
  const headers: Record<string, string | string[]> = {
    ":method": method,
    ":scheme": url.secure ? "https" : "http",
    ":authority": url.authority,
    ":path": path,
  };
  for (const [name, value] of request.headers) add(headers, name.toLowerCase(), value);
  if (body !== null && body.length !== null && headers["content-length"] === undefined)
    headers["content-length"] = String(body.length);
  return headers;
}

function add(headers: Record<string, string | string[]>, name: string, value: string): void {
  if (CONNECTION_HEADERS.has(name))
    throw new TypeError(`the header "${name}" has no place in HTTP/2: leave it out`);
  if (name === "te" && value !== "trailers")
    throw new TypeError('the header "te" may only say "trailers" in HTTP/2');
  const key = name === "host" ? ":authority" : name;
  const before = headers[key];
  if (before === undefined || key === ":authority") headers[key] = value;
  else headers[key] = Array.isArray(before) ? [...before, value] : [before, value];
}
