/** A composed request as HTTP/2 sends it: fields with lower-case names, put together once. (OPT-8) */

import type { Encode } from "../http/message.ts";
import type { ComposedRequest } from "../http/request.ts";
import { type Template, varied } from "../http/variation.ts";
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

export function encoder(template: Template): Encode<Http2Head> {
  const constant = constantFields(template.request);
  const isHead = template.request.method === "HEAD";
  return (variation, cookies) => {
    const { headerValues, json, path } = variation;
    const onlyPath = json === null && headerValues.length === 0;
    const own = onlyPath ? constant : constantFields(varied(template, variation));
    return new Http2Head(own, path, cookies, isHead);
  };
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
