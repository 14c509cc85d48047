/** Encodes a composed request for HTTP/2: fields with lower-case names, built once. (OPT-8) */

import type { Encode } from "../http/message.ts";
import { type ComposedRequest, namesHeader } from "../http/request.ts";
import { type Template, varied } from "../http/variation.ts";
import { TRACEPARENT } from "../trace-context.ts";
import type { RequestHead } from "./frame-writer.ts";
import type { ConstantFields } from "./hpack/encoder.ts";
import { CONNECTION_FIELDS } from "./hpack/header-list.ts";

export class Http2Head implements RequestHead {
  readonly constant: ConstantFields;
  readonly path: string;
  readonly cookies: string;
  readonly traceparent: string;
  readonly isHead: boolean;

  constructor(head: RequestHead) {
    this.constant = head.constant;
    this.path = head.path;
    this.cookies = head.cookies;
    this.traceparent = head.traceparent;
    this.isHead = head.isHead;
  }

  /** Human-readable. */
  toString(): string {
    const { pseudo, rest } = this.constant;
    const added = [
      ["cookie", this.cookies],
      [TRACEPARENT, this.traceparent],
    ].filter(([, value]) => value !== "");
    const fields = [...pseudo, [":path", this.path] as const, ...rest, ...added];
    return fields.map(([name, value]) => `${name}: ${value}`).join("\r\n");
  }
}

export function encoder(template: Template): Encode<Http2Head> {
  const constant = constantFields(template.request);
  const isHead = template.request.method === "HEAD";
  const ownTrace = namesHeader(template.request.headers, TRACEPARENT);
  return (variation, cookies, given) => {
    const { headerValues, json, path } = variation;
    const onlyPath = json === null && headerValues.length === 0;
    const own = onlyPath ? constant : constantFields(varied(template, variation));
    const traceparent = ownTrace ? "" : given;
    return new Http2Head({ constant: own, path, cookies, traceparent, isHead });
  };
}

function constantFields(request: ComposedRequest): ConstantFields {
  const { body, method, url } = request;
  let authority = url.authority;
  const rest: (readonly [string, string])[] = [];
  for (const [given, value] of request.headers) {
    const name = given.toLowerCase();
    if (CONNECTION_FIELDS.has(name))
      throw new TypeError(`the header "${name}" is not allowed in HTTP/2: remove it`);
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
