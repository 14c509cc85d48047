/** A composed request as HTTP/2 wants it: one header object with lower-case names, made once. (OPT-8) */

import type { OutgoingHttpHeaders } from "node:http2";
import { type ComposedRequest, isSuccess } from "../http/request.ts";
import { type Origin, originOf } from "../net/origin.ts";
import type { CallSettings } from "../protocol.ts";

/** Headers about one connection; HTTP/2 forbids them (RFC 9113 §8.2.2). */
const CONNECTION_HEADERS = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "transfer-encoding",
  "upgrade",
]);

export class Http2Message {
  readonly source: ComposedRequest;
  readonly origin: Origin;
  readonly headers: OutgoingHttpHeaders;
  readonly timeoutMs: number;
  readonly firstByteTimeoutMs: number;
  readonly connectTimeoutMs: number;
  readonly redirectsMax: number;

  constructor(source: ComposedRequest, settings: CallSettings) {
    this.source = source;
    this.origin = originOf(source.url);
    this.headers = headersOf(source);
    this.timeoutMs = source.timeoutMs ?? settings.timeoutMs;
    this.firstByteTimeoutMs = Math.min(this.timeoutMs, settings.firstByteTimeoutMs);
    this.connectTimeoutMs = Math.min(this.timeoutMs, settings.connectTimeoutMs);
    this.redirectsMax = source.redirects ?? settings.redirectsMax;
  }

  /** The headers with the cookies of the virtual user's jar. */
  withCookies(fromJar: string): OutgoingHttpHeaders {
    const own = this.source.cookies;
    return { ...this.headers, cookie: own === "" ? fromJar : `${own}; ${fromJar}` };
  }

  succeeded(status: number): boolean {
    return isSuccess(this.source, status);
  }
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
  if (request.cookies !== "") headers["cookie"] = request.cookies;
  if (body !== null && headers["content-length"] === undefined)
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
