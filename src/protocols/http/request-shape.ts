/**
 * Requests of one target that add the same headers, whatever their values. They share a template for each
 * method, with JSON and without, and differ from it in what a variation says: a loop that makes a
 * target by `with`, and requests of it, composes nothing.
 */

import type { ConnectionOptions } from "./connection-options.ts";
import {
  type AuthPart,
  checkedHeaderValue,
  HeadersPart,
  type HeaderValues,
  headerEntries,
  UrlPart,
} from "./parts.ts";
import type { Method, RequestOptions } from "./request.ts";
import type { Variation } from "./variation.ts";
import type { HttpKind, HttpOutputs } from "./verbs.ts";

export interface TargetOptions extends ConnectionOptions {
  /** For every request; one that names the same header has its way, undefined takes it out. */
  readonly headers?: HeaderValues;
  readonly auth?: AuthPart;
  /** False drops the bodies of answers; a request may say otherwise. */
  readonly readBody?: boolean;
}

/** Makes the requests of one version of HTTP. */
export interface CallMaker<Kind extends HttpKind> {
  describe<Body>(method: Method, url: UrlPart, options: RequestOptions): HttpOutputs<Body>[Kind];
  /** Says which headers have other values in requests that are like it; false when they cannot. */
  vary(template: HttpOutputs<unknown>[Kind], names: readonly string[]): boolean;
  /** The same as the template but for what varies. */
  like<Body>(
    template: HttpOutputs<unknown>[Kind],
    variation: Variation,
    title: string,
  ): HttpOutputs<Body>[Kind];
}

/** Where requests go and who makes them: the same for all that `with` gives, but for other connections. */
export interface Server<Kind extends HttpKind> {
  /** Without a slash at its end. */
  readonly base: string;
  readonly url: UrlPart;
  /** The path of the base: "" or "/api". */
  readonly prefix: string;
  readonly maker: CallMaker<Kind>;
}

/** What needs no parsing: nothing to escape, and no dots that would go up. */
const PLAIN_PATH = /^(?!.*\/\.{1,2}(?:[/?]|$))\/[\w\-.~!$&()*+,;=:@/?%]*$/;

/** Null where requests cannot be variations: a header that is named twice, say. */
type Template<Kind extends HttpKind> = HttpOutputs<unknown>[Kind] | null;

/** Combinations of header names that one target knows; requests with others are composed each by itself. */
const SHAPES_MAX = 16;

export class RequestShape<Kind extends HttpKind> {
  readonly server: Server<Kind>;
  /** Of the first target of this shape: others have other values for the headers that are named. */
  readonly #options: TargetOptions;
  readonly #names: readonly string[];
  readonly #plain = new Map<Method, Template<Kind>>();
  readonly #withJson = new Map<Method, Template<Kind>>();
  readonly #extended: RequestShape<Kind>[] = [];
  /** The last path that needed no parsing: a loop asks for the same ones again and again. */
  #plainPath = "/";

  constructor(server: Server<Kind>, options: TargetOptions, names: readonly string[] = []) {
    this.server = server;
    this.#options = options;
    this.#names = names;
  }

  /** Nothing of the path has to be parsed. */
  isPlain(path: string): boolean {
    if (path === this.#plainPath) return true;
    if (!PLAIN_PATH.test(path)) return false;
    this.#plainPath = path;
    return true;
  }

  /** Options of a target of this shape that has these values. */
  options(values: readonly string[]): TargetOptions {
    if (this.#names.length === 0) return this.#options;
    const own = this.#names.map((name, at) => [name, values[at] as string] as const);
    return { ...this.#options, headers: { ...this.#options.headers, ...Object.fromEntries(own) } };
  }

  /** The shape with these headers more; undefined where there can be none. */
  extendedBy(headers: HeaderValues): RequestShape<Kind> | undefined {
    for (const shape of this.#extended) if (shape.#adds(headers)) return shape;
    const names = Object.keys(headers);
    if (this.#names.length > 0 || this.#extended.length >= SHAPES_MAX) return undefined;
    if (names.some((name) => headers[name] === undefined)) return undefined;
    const shape = new RequestShape(this.server, optionsWith(this.#options, { headers }), names);
    this.#extended.push(shape);
    return shape;
  }

  #adds(headers: HeaderValues): boolean {
    let at = 0;
    for (const name in headers) {
      if (name !== this.#names[at++]) return false;
      const value: unknown = headers[name];
      if (typeof value !== "string" && typeof value !== "number") return false;
    }
    return at === this.#names.length;
  }

  /** The values of the headers that it adds, each checked. */
  valuesOf(headers: HeaderValues): readonly string[] {
    const values: string[] = [];
    for (const name of this.#names) values.push(checkedHeaderValue(name, String(headers[name])));
    return values;
  }

  /** The request for another path, with other values and another JSON text. */
  like<Body>(
    method: Method,
    variation: Variation,
    title: string,
  ): HttpOutputs<Body>[Kind] | undefined {
    const templates = variation.json === null ? this.#plain : this.#withJson;
    let template = templates.get(method);
    if (template === undefined) {
      template = this.#template(method, variation.json !== null);
      templates.set(method, template);
    }
    return template === null ? undefined : this.server.maker.like<Body>(template, variation, title);
  }

  #template(method: Method, hasJson: boolean): Template<Kind> {
    const template = describe(
      this.server,
      this.#options,
      { method, path: "/" },
      hasJson ? { json: null } : {},
    );
    return this.server.maker.vary(template, this.#names) ? template : null;
  }
}

/** A request that is composed by itself. */
export function describe<Kind extends HttpKind, Body>(
  { base, maker, prefix, url }: Server<Kind>,
  options: TargetOptions,
  { method, path }: { readonly method: Method; readonly path: string },
  given: RequestOptions,
): HttpOutputs<Body>[Kind] {
  const { auth, readBody } = options;
  const headers = mergedHeaders(options.headers, given.headers);
  const address = PLAIN_PATH.test(path)
    ? new UrlPart(`${prefix}${path}`, url.route, url)
    : new UrlPart(`${base}${path}`, url.route);
  return maker.describe<Body>(method, address, {
    ...(auth === undefined ? {} : { auth }),
    ...(readBody === undefined ? {} : { readBody }),
    ...given,
    ...(headers === undefined ? {} : { headers }),
  });
}

/** Later options have their way; headers are merged, and checked. */
export function optionsWith(options: TargetOptions, later: TargetOptions): TargetOptions {
  const headers = mergedHeaders(options.headers, later.headers);
  if (headers === undefined) return { ...options, ...later };
  headerEntries(headers);
  return { ...options, ...later, headers };
}

/** Names are the same whatever their case; the later value has its way. */
function mergedHeaders(
  common: HeaderValues | undefined,
  own: HeaderValues | HeadersPart | undefined,
): HeaderValues | undefined {
  const later = own instanceof HeadersPart ? Object.fromEntries(own.entries) : own;
  if (common === undefined || later === undefined) return common ?? later;
  const taken = new Set(Object.keys(later).map((name) => name.toLowerCase()));
  const kept = Object.entries(common).filter(([name]) => !taken.has(name.toLowerCase()));
  return { ...Object.fromEntries(kept), ...later };
}
