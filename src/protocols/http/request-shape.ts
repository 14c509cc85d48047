/**
 * Requests of one target that add the same header names, with any values. They share a template for each method, with
 * and without JSON, and differ from it only by a variation: a loop that calls `with` on a target and describes requests
 * composes nothing.
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
  /** Headers of every request; those of a request take precedence, and undefined removes one. */
  readonly headers?: HeaderValues;
  readonly auth?: AuthPart;
  /** False drops response bodies; a request may override it. */
  readonly readBody?: boolean;
}

/** Creates the requests of one version of HTTP. */
export interface CallMaker<Kind extends HttpKind> {
  describe<Body>(method: Method, url: UrlPart, options: RequestOptions): HttpOutputs<Body>[Kind];
  /** Declares the headers whose values vary; returns false when the template does not support it. */
  vary(template: HttpOutputs<unknown>[Kind], names: readonly string[]): boolean;
  /** Returns the template with a variation. */
  like<Body>(
    template: HttpOutputs<unknown>[Kind],
    variation: Variation,
    title: string,
  ): HttpOutputs<Body>[Kind];
}

/** Destination and maker of requests: the same for all targets made by `with`, unless their connections differ. */
export interface Server<Kind extends HttpKind> {
  /** Without a trailing slash. */
  readonly base: string;
  readonly url: UrlPart;
  /** Path of the base: "" or "/api". */
  readonly prefix: string;
  readonly maker: CallMaker<Kind>;
}

/** Paths that need no parsing: nothing to escape, and no dot segments. */
const PLAIN_PATH = /^(?!.*\/\.{1,2}(?:[/?]|$))\/[\w\-.~!$&()*+,;=:@/?%]*$/;

/** Null when requests cannot be variations, for example because a header is named twice. */
type Template<Kind extends HttpKind> = HttpOutputs<unknown>[Kind] | null;

/** Combinations of header names cached per target; requests with others are composed individually. */
const SHAPES_MAX = 16;

export class RequestShape<Kind extends HttpKind> {
  readonly server: Server<Kind>;
  /** Options of the first target of this shape; others differ in the values of the named headers. */
  readonly #options: TargetOptions;
  readonly #names: readonly string[];
  readonly #plain = new Map<Method, Template<Kind>>();
  readonly #withJson = new Map<Method, Template<Kind>>();
  readonly #extended: RequestShape<Kind>[] = [];
  /** Last path that needed no parsing: a loop requests the same ones repeatedly. */
  #plainPath = "/";

  constructor(server: Server<Kind>, options: TargetOptions, names: readonly string[] = []) {
    this.server = server;
    this.#options = options;
    this.#names = names;
  }

  /** True when no part of the path has to be parsed. */
  isPlain(path: string): boolean {
    if (path === this.#plainPath) return true;
    if (!PLAIN_PATH.test(path)) return false;
    this.#plainPath = path;
    return true;
  }

  /** Options of a target of this shape with these values. */
  options(values: readonly string[]): TargetOptions {
    if (this.#names.length === 0) return this.#options;
    const own = this.#names.map((name, at) => [name, values[at] as string] as const);
    return { ...this.#options, headers: { ...this.#options.headers, ...Object.fromEntries(own) } };
  }

  /** Returns the shape with these additional headers; undefined when it cannot exist. */
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

  /** Returns the checked values of its additional headers. */
  valuesOf(headers: HeaderValues): readonly string[] {
    const values: string[] = [];
    for (const name of this.#names) values.push(checkedHeaderValue(name, String(headers[name])));
    return values;
  }

  /** Returns the request for another path, with other values and another JSON text. */
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

/** Composes a single request without a template. */
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

/** Later options take precedence; headers are merged and checked. */
export function optionsWith(options: TargetOptions, later: TargetOptions): TargetOptions {
  const headers = mergedHeaders(options.headers, later.headers);
  if (headers === undefined) return { ...options, ...later };
  headerEntries(headers);
  return { ...options, ...later, headers };
}

/** Header names are case-insensitive; the later value takes precedence. */
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
