/** A composed request as HTTP/2 sends it: fields with lower-case names, put together once. (OPT-8) */

import type { ComposedRequest } from "../http/request.ts";
import type { RequestHead } from "./frame-writer.ts";
import type { ConstantFields } from "./hpack/encoder.ts";
import { CONNECTION_FIELDS } from "./hpack/header-list.ts";

export class Http2Head implements RequestHead {
  readonly constant: ConstantFields;
  readonly path: string;
  readonly cookies: string;
  readonly isHead: boolean;

  constructor(constant: ConstantFields, path: string, cookies: string, isHead: boolean) {
    this.constant = constant;
    this.path = path;
    this.cookies = cookies;
    this.isHead = isHead;
  }

  /** For people. */
  toString(): string {
    const { pseudo, rest } = this.constant;
    const cookies = this.cookies === "" ? [] : [["cookie", this.cookies] as const];
    const fields = [...pseudo, [":path", this.path] as const, ...rest, ...cookies];
    return fields.map(([name, value]) => `${name}: ${value}`).join("\r\n");
  }
}

export function encoder(request: ComposedRequest): (path: string, cookies: string) => Http2Head {
  const constant = constantFields(request);
  const isHead = request.method === "HEAD";
  return (path, cookies) => new Http2Head(constant, path, cookies, isHead);
}

function constantFields(request: ComposedRequest): ConstantFields {
  const { body, method, url } = request;
  let authority = url.authority;
  const rest: (readonly [string, string])[] = [];
  for (const [given, value] of request.headers) {
    const name = given.toLowerCase();
    if (CONNECTION_FIELDS.has(name))
      throw new TypeError(`the header "${name}" has no place in HTTP/2: leave it out`);
    if (name === "te" && value !== "trailers")
      throw new TypeError('the header "te" may only say "trailers" in HTTP/2');
    if (name === "host") authority = value;
    else rest.push([name, value]);
  }
  const hasLength = rest.some(([name]) => name === "content-length");
  if (body !== null && body.length !== null && !hasLength)
    rest.push(["content-length", String(body.length)]);
  const scheme = url.secure ? "https" : "http";
  const pseudo = [
    [":method", method],
    [":scheme", scheme],
    [":authority", authority],
  ] as const;
  return { pseudo, rest };
}
