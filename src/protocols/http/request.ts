/**
 * One HTTP request, independent of the HTTP version: method, address, headers, body, and success criterion. `compose`
 * joins the parts once; the clients of HTTP/1.1 and HTTP/2 turn the result into bytes or header blocks.
 */

import { type Duration, parseDuration } from "../../core/base/duration.ts";
import { didYouMean } from "../../core/base/nearest.ts";
import { type BodyValue, encodeFormValues, encodeJson, type FormValues } from "./body.ts";
import { type BodyContent, StreamSource } from "./body-source.ts";
import { FilePart } from "./file-part.ts";
import type { EncodedBody } from "./multipart.ts";
import {
  type AuthPart,
  type CookiesPart,
  checkedHeader,
  DataPart,
  HeadersPart,
  type HeaderValues,
  headerEntries,
  ParamsPart,
  type ParamValues,
  UrlPart,
} from "./parts.ts";

export type Method = "GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE" | "OPTIONS" | "TRACE";

export interface RequestOptions {
  readonly headers?: HeaderValues | HeadersPart;
  readonly params?: ParamValues | ParamsPart;
  readonly cookies?: CookiesPart;
  readonly auth?: AuthPart;
  /** Sent as JSON. */
  readonly json?: unknown;
  /** Sent in its own format: text, bytes, a Blob, a form, a stream, a prepared `data(…)` or a `file(…)`. */
  readonly body?: BodyValue | DataPart | FilePart;
  /** Form fields: multipart when a `file(…)` or a Blob is among them, else urlencoded. */
  readonly form?: FormValues;
  /** Timeout of the whole call; overrides the workflow's. */
  readonly timeout?: Duration;
  /** Redirects to follow; none by default. */
  readonly redirects?: number;
  /** Statuses that count as success; everything below 400 by default. */
  readonly expect?: number | readonly number[] | ((status: number) => boolean);
  /** Keeps the body even if no function can read the response, or discards it although one can. */
  readonly readBody?: boolean;
  /** Longest body to keep, before and after decompression; 16 MiB by default, 1 GiB at most. */
  readonly bodyBytesMax?: number;
}

/** A request with every part in its final form. Immutable. */
export interface ComposedRequest {
  readonly method: string;
  readonly url: UrlPart;
  /** Path with the query of `params`. */
  readonly path: string;
  readonly headers: readonly (readonly [string, string])[];
  /** Cookies named by the request itself; those of the virtual user's jar are added. */
  readonly cookies: string;
  readonly body: BodyContent | null;
  readonly timeoutMs: number | null;
  readonly redirects: number | null;
  readonly expect: ((status: number) => boolean) | null;
  readonly readBody: boolean | null;
  readonly bodyBytesMax: number | null;
}

type Header = readonly [name: string, value: string];

const USER_AGENT: Header = ["user-agent", "hyperscale"];
const ACCEPT: Header = ["accept", "*/*"];

/** `name` is in lower case. A request has few headers, so a scan costs less than a set. */
export function namesHeader(headers: readonly Header[], name: string): boolean {
  for (const [given] of headers)
    if (given.length === name.length && given.toLowerCase() === name) return true;
  return false;
}

function addMissing(headers: Header[], header: Header): void {
  if (!namesHeader(headers, header[0])) headers.push(header);
}

export function compose(
  method: string,
  target: string | UrlPart,
  options: RequestOptions,
): ComposedRequest {
  checkOptions(options);
  const address = typeof target === "string" ? new UrlPart(target) : target;
  const own = options.headers;
  const headers = own instanceof HeadersPart ? [...own.entries] : headerEntries(own ?? {});
  const body = bodyOf(options);
  const authorization = options.auth?.text ?? address.authorization;
  if (authorization !== "") addMissing(headers, ["authorization", authorization]);
  addMissing(headers, USER_AGENT);
  addMissing(headers, ACCEPT);
  if (body !== null) addContentType(body, headers);
  return {
    method,
    url: address,
    path: pathWithParams(address.path, options.params),
    headers,
    cookies: options.cookies?.text ?? "",
    body: body === null ? null : contentOf(body, headers),
    timeoutMs: options.timeout === undefined ? null : timeoutMsOf(options.timeout),
    redirects: options.redirects ?? null,
    expect: expectation(options.expect),
    readBody: options.readBody ?? null,
    bodyBytesMax: options.bodyBytesMax === undefined ? null : bytesMaxOf(options.bodyBytesMax),
  };
}

/** The names of `RequestOptions`; the compiler keeps the list complete. */
const OPTIONS: Readonly<Record<keyof RequestOptions, true>> = {
  auth: true,
  body: true,
  bodyBytesMax: true,
  cookies: true,
  expect: true,
  form: true,
  headers: true,
  json: true,
  params: true,
  readBody: true,
  redirects: true,
  timeout: true,
};

const NAMES: ReadonlySet<string> = new Set(Object.keys(OPTIONS));

/** Rejects unknown options, which would silently have no effect. */
function checkOptions(options: RequestOptions): void {
  let content: string | null = null;
  for (const name in options) {
    if (!NAMES.has(name)) {
      const hint = didYouMean(name, NAMES);
      throw new TypeError(`a request has no option "${name}"${hint}`);
    }
    const isContent = name === "body" || name === "json" || name === "form";
    if (!isContent || options[name] === undefined) continue;
    if (content !== null) {
      throw new TypeError(`a request has one content: leave out ${content} or ${name}`);
    }
    content = name;
  }
}

function bodyOf(options: RequestOptions): EncodedBody | null {
  const { body, form, json } = options;
  if (json !== undefined) return encodeJson(json, "json");
  if (form !== undefined) return encodeFormValues(form);
  if (body === undefined) return null;
  return body instanceof DataPart || body instanceof FilePart ? body : new DataPart(body);
}

function addContentType({ contentType }: EncodedBody, headers: Header[]): void {
  if (!namesHeader(headers, "content-type")) {
    if (contentType !== "") headers.push(checkedHeader("content-type", contentType));
    return;
  }
  if (contentType.startsWith("multipart/")) {
    throw new TypeError(
      'leave the header "content-type" out: that of a form with files names the boundary of its parts',
    );
  }
}

/** A stream whose length is given in the request is sent without chunks. */
function contentOf(
  { content }: EncodedBody,
  headers: readonly (readonly [string, string])[],
): BodyContent {
  if (!(content instanceof StreamSource)) return content;
  const named = headers.find(([name]) => name.toLowerCase() === "content-length")?.[1];
  if (named === undefined) return content;
  if (!/^\d{1,15}$/.test(named)) throw new TypeError(`content-length: "${named}" is not a length`);
  return content.withLength(Number(named));
}

function pathWithParams(path: string, values: RequestOptions["params"]): string {
  if (values === undefined) return path;
  const text = (values instanceof ParamsPart ? values : new ParamsPart(values)).text;
  return text === "" ? path : `${path}${path.includes("?") ? "&" : "?"}${text}`;
}

/** Practical limit of one Node buffer. */
const KEPT_BYTES_MAX = 1024 * 1024 * 1024;

function bytesMaxOf(value: number): number {
  if (Number.isInteger(value) && value > 0 && value <= KEPT_BYTES_MAX) return value;
  throw new TypeError(`bodyBytesMax: a whole number of bytes, at most ${KEPT_BYTES_MAX}`);
}

export function timeoutMsOf(value: Duration): number {
  const parsed = parseDuration(value);
  if (!parsed.ok) throw new TypeError(`timeout: ${parsed.problem}`);
  if (parsed.ms <= 0) throw new TypeError("timeout: must be more than zero");
  return parsed.ms;
}

function expectation(value: RequestOptions["expect"]): ((status: number) => boolean) | null {
  if (value === undefined) return null;
  if (typeof value === "function") return value;
  if (typeof value === "number") return (status) => status === value;
  const wanted = new Set(value);
  return (status) => wanted.has(status);
}

/** The default rule (C30-12), unless the request overrides it. */
export function isSuccess(request: ComposedRequest, status: number): boolean {
  return request.expect === null ? status < 400 : request.expect(status);
}
