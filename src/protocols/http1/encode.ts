/**
 * Encodes a composed request for HTTP/1.1 in one piece, so that each send is one write. A request that is sent once is
 * a latin1 string, which Node writes without an intermediate buffer. A request that is sent repeatedly is a buffer.
 */

import { isSource } from "../http/body-source.ts";
import type { Encode } from "../http/message.ts";
import { type ComposedRequest, namesHeader } from "../http/request.ts";
import type { Template } from "../http/variation.ts";
import type { Origin } from "../net/origin.ts";
import type { CallSettings } from "../protocol.ts";
import { TRACEPARENT } from "../trace-context.ts";

/** A string contains one byte per character (latin1). */
export type Http1Bytes = Buffer | string;

/** Node copies longer strings to the heap before it writes them. */
const STRING_BYTES_MAX = 8 * 1024;

export function encoder(
  template: Template,
  settings: CallSettings,
  origin: Origin,
): Encode<Http1Bytes> {
  const { body, method, url } = template.request;
  // A proxy that reads the request itself needs the absolute form. RFC 9112 §3.2.2.
  const proxied = origin.proxy !== null && !url.secure;
  const before = `${method} ${proxied ? `http://${origin.authorityFor(url.authority)}` : ""}`;
  const [first = "", ...pieces] = headerPieces(template, settings.keepAlive, origin);
  const length = lengthText(template.request);
  const ownLength = namesHeader(template.request.headers, "content-length");
  const ownTrace = namesHeader(template.request.headers, TRACEPARENT);
  // Cached because consecutive requests often have the same path.
  let lastPath = "";
  let lastLine = "";
  return ({ headerValues, json, path }, cookies, traceparent, lasting) => {
    if (path !== lastPath) {
      lastPath = path;
      lastLine = before + path + first;
    }
    let head = lastLine;
    for (let at = 0; at < pieces.length; at++)
      head += (headerValues[at] as string) + (pieces[at] as string);
    if (cookies !== "") head += `cookie: ${cookies}\r\n`;
    if (traceparent !== "" && !ownTrace) head += `${TRACEPARENT}: ${traceparent}\r\n`;
    if (json !== null) return withJson(head, json, ownLength);
    head += length;
    if (body !== null && !isSource(body)) return joined(head, body);
    return lasting ? Buffer.from(head, "latin1") : head;
  };
}

function withJson(headers: string, json: string, ownLength: boolean): Http1Bytes {
  const length = Buffer.byteLength(json);
  const head = ownLength ? `${headers}\r\n` : `${headers}content-length: ${length}\r\n\r\n`;
  // For plain ASCII, bytes and characters are the same.
  if (length === json.length && length <= STRING_BYTES_MAX) return head + json;
  return joined(head, Buffer.from(json));
}

function joined(head: string, body: Uint8Array): Buffer {
  const bytes = Buffer.allocUnsafe(head.length + body.length);
  bytes.write(head, 0, "latin1");
  bytes.set(body, head.length);
  return bytes;
}

/** Text between the path and the last part, split where the varying headers have their values. */
function headerPieces(
  { request, varying }: Template,
  keepAlive: boolean,
  origin: Origin,
): readonly string[] {
  const { headers, url } = request;
  const proxy = url.secure ? null : origin.proxy;
  const pieces: string[] = [];
  let text = " HTTP/1.1\r\n";
  if (!namesHeader(headers, "host")) text += `host: ${url.authority}\r\n`;
  for (const [index, [name, value]] of headers.entries()) {
    text += `${name}: `;
    if (varying.includes(index)) {
      pieces.push(text);
      text = "\r\n";
    } else text += `${value}\r\n`;
  }
  if (proxy !== null && proxy.authorization !== "")
    text += `proxy-authorization: ${proxy.authorization}\r\n`;
  if (!keepAlive && !namesHeader(headers, "connection")) text += "connection: close\r\n";
  return [...pieces, text];
}

/** Content-Length, which comes last, and the empty line. */
function lengthText({ body, headers, method }: ComposedRequest): string {
  const needed = body !== null || method === "POST" || method === "PUT" || method === "PATCH";
  if (isSource(body) && body.length === null)
    return `${chunkedHeader(namesHeader(headers, "transfer-encoding"))}\r\n`;
  if (!needed || namesHeader(headers, "content-length")) return "\r\n";
  return `content-length: ${body?.length ?? 0}\r\n\r\n`;
}

function chunkedHeader(given: boolean): string {
  return given ? "" : "transfer-encoding: chunked\r\n";
}
