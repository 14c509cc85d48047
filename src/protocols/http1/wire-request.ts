/** A composed request as the bytes of HTTP/1.1: one Buffer, so that each send is one write. */

import { type ComposedRequest, isSuccess } from "../http/request.ts";
import { type Origin, originOf } from "../net/origin.ts";
import type { CallSettings } from "../protocol.ts";

export class WireRequest {
  readonly source: ComposedRequest;
  readonly origin: Origin;
  readonly bytes: Buffer;
  /** The answer has no body whatever its headers say. */
  readonly isHead: boolean;
  readonly timeoutMs: number;
  readonly firstByteTimeoutMs: number;
  readonly connectTimeoutMs: number;
  readonly redirectsMax: number;
  readonly #head: string;

  constructor(source: ComposedRequest, settings: CallSettings) {
    this.source = source;
    this.origin = originOf(source.url);
    this.isHead = source.method === "HEAD";
    this.timeoutMs = source.timeoutMs ?? settings.timeoutMs;
    this.firstByteTimeoutMs = Math.min(this.timeoutMs, settings.firstByteTimeoutMs);
    this.connectTimeoutMs = Math.min(this.timeoutMs, settings.connectTimeoutMs);
    this.redirectsMax = source.redirects ?? settings.redirectsMax;
    this.#head = headText(source, settings.keepAlive);
    this.bytes = this.withCookies(source.cookies);
  }

  /** The request with a Cookie header of its own; empty text means none. */
  withCookies(cookies: string): Buffer {
    const head = cookies === "" ? `${this.#head}\r\n` : `${this.#head}cookie: ${cookies}\r\n\r\n`;
    const headBytes = Buffer.from(head, "latin1");
    return this.source.body === null ? headBytes : Buffer.concat([headBytes, this.source.body]);
  }

  succeeded(status: number): boolean {
    return isSuccess(this.source, status);
  }
}

function headText(request: ComposedRequest, keepAlive: boolean): string {
  const { body, headers, method, path, url } = request;
  const names = new Set(headers.map(([name]) => name.toLowerCase()));
  let text = `${method} ${path} HTTP/1.1\r\n`;
  if (!names.has("host")) text += `host: ${url.authority}\r\n`;
  for (const [name, value] of headers) text += `${name}: ${value}\r\n`;
  const needsLength = body !== null || method === "POST" || method === "PUT" || method === "PATCH";
  if (needsLength && !names.has("content-length"))
    text += `content-length: ${body?.length ?? 0}\r\n`;
  if (!keepAlive && !names.has("connection")) text += "connection: close\r\n";
  return text;
}
