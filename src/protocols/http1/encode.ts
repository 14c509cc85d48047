/** A composed request as the bytes of HTTP/1.1: one Buffer, so that each send is one write. */

import { isSource } from "../http/body-source.ts";
import { type ComposedRequest, namesHeader } from "../http/request.ts";
import type { Origin } from "../net/origin.ts";
import type { CallSettings } from "../protocol.ts";

export function encoder(
  request: ComposedRequest,
  settings: CallSettings,
  origin: Origin,
): (path: string, cookies: string) => Buffer {
  const { body, method, url } = request;
  // A proxy that reads the request itself gets the whole address. RFC 9112 §3.2.2.
  const proxied = origin.proxy !== null && !url.secure;
  const before = `${method} ${proxied ? `http://${origin.authorityFor(url.authority)}` : ""}`;
  const after = ` HTTP/1.1\r\n${headersText(request, settings.keepAlive, origin)}`;
  return (path, cookies) => {
    const text = before + path + after;
    const head = cookies === "" ? `${text}\r\n` : `${text}cookie: ${cookies}\r\n\r\n`;
    if (body === null || isSource(body)) return Buffer.from(head, "latin1");
    const bytes = Buffer.allocUnsafe(head.length + body.length);
    bytes.write(head, 0, "latin1");
    bytes.set(body, head.length);
    return bytes;
  };
}

function headersText(request: ComposedRequest, keepAlive: boolean, origin: Origin): string {
  const { body, headers, method, url } = request;
  const names = (name: string): boolean => namesHeader(headers, name);
  const proxy = url.secure ? null : origin.proxy;
  let text = "";
  if (!names("host")) text += `host: ${url.authority}\r\n`;
  for (const [name, value] of headers) text += `${name}: ${value}\r\n`;
  const needsLength = body !== null || method === "POST" || method === "PUT" || method === "PATCH";
  if (isSource(body) && body.length === null) text += chunkedHeader(names("transfer-encoding"));
  else if (needsLength && !names("content-length"))
    text += `content-length: ${body?.length ?? 0}\r\n`;
  if (proxy !== null && proxy.authorization !== "")
    text += `proxy-authorization: ${proxy.authorization}\r\n`;
  if (!keepAlive && !names("connection")) text += "connection: close\r\n";
  return text;
}

function chunkedHeader(given: boolean): string {
  return given ? "" : "transfer-encoding: chunked\r\n";
}
