/**
 * A target: what all requests to one server have in common. It has no user and sends nothing; its verbs
 * describe requests, which steps perform.
 *
 *   const shop = http.target("https://shop.test/api", { headers: { accept: "application/json" } });
 *   workflow(…).step("home", shop.get("/"))
 *     .step("cart", ({ http }) => http.send(shop.post("/cart", { json: { id: 7 } })));
 */

import { didYouMean } from "../../core/base/nearest.ts";
import { originOf } from "../net/origin.ts";
import type { Route } from "../net/route.ts";
import { prepareBeforeLoop, workflowFolder } from "../protocol.ts";
import { CONNECTION_OPTION_NAMES, type ConnectionOptions, routeOf } from "./connection-options.ts";
import { type AuthPart, HeadersPart, type HeaderValues, parseUrl, UrlPart } from "./parts.ts";
import type { Method, RequestOptions } from "./request.ts";
import { RoutePart } from "./route-part.ts";
import { type HttpKind, type HttpOutputs, HttpVerbs } from "./verbs.ts";

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
  /** The same as another in all but its path. */
  like<Body>(
    template: HttpOutputs<unknown>[Kind],
    method: Method,
    url: UrlPart,
    title: string,
  ): HttpOutputs<Body>[Kind];
}

const TARGET_OPTION_NAMES = [...CONNECTION_OPTION_NAMES, "headers", "auth", "readBody"];
/** Requests of one target for a path and no options, kept from call to call. */
const LITERALS_MAX = 256;
/** What needs no parsing: nothing to escape, and no dots that would go up. */
const PLAIN_PATH = /^(?!.*\/\.{1,2}(?:[/?]|$))\/[\w\-.~!$&()*+,;=:@/?%]*$/;

export class HttpTarget<Kind extends HttpKind> extends HttpVerbs<Kind, string | RoutePart> {
  /** Without a slash at its end. */
  readonly #base: string;
  readonly #url: UrlPart;
  readonly #options: TargetOptions;
  /** Checked once, for all requests that add none of their own. */
  readonly #headers: HeadersPart | undefined;
  readonly #route: Route | null;
  readonly #maker: CallMaker<Kind>;
  /** By method: what differs is the path alone. */
  readonly #templates = new Map<Method, HttpOutputs<unknown>[Kind]>();
  /** By method and path; only of targets that are made once, not in a loop. */
  readonly #literals: Map<string, HttpOutputs<unknown>[Kind]> | null;

  constructor(
    base: string,
    options: TargetOptions,
    maker: CallMaker<Kind>,
    route?: Route | null,
    url?: UrlPart,
  ) {
    super();
    checkTarget(base, options, url === undefined);
    this.#base = url === undefined ? base.replace(/\/+$/, "") : base;
    this.#options = options;
    this.#headers = options.headers === undefined ? undefined : new HeadersPart(options.headers);
    this.#maker = maker;
    this.#route = route === undefined ? routeOf(options) : route;
    this.#url = url ?? new UrlPart(this.#base, this.#route);
    const atTheTop = workflowFolder() === null;
    this.#literals = atTheTop ? new Map() : null;
    // Hosts of targets at the top of a file are looked up before the first call.
    if (atTheTop && url === undefined) {
      const origin = originOf(this.#url, this.#route);
      // Who is not found there fails the calls that need it, not what else the file runs.
      prepareBeforeLoop({ prepare: () => origin.prepare().catch(() => undefined) });
    }
  }

  /** `path` begins with a slash and is put behind the base; "" is the base itself. */
  override request<Body = unknown>(
    method: Method,
    path: string | RoutePart,
    options?: RequestOptions,
  ): HttpOutputs<Body>[Kind] {
    const text = path instanceof RoutePart ? path.path : path;
    if (typeof text !== "string" || (text !== "" && !/^[/?]/.test(text)))
      throw new TypeError(`a target takes a path that begins with "/", not ${shown(path)}`);
    if (options !== undefined || !PLAIN_PATH.test(text))
      return this.#describe(method, text, options);
    if (path instanceof RoutePart) return this.#like(method, text, path.title);
    const query = text.indexOf("?");
    const title = query < 0 ? text : text.slice(0, query);
    if (this.#literals === null) return this.#like(method, text, title);
    const key = `${method} ${text}`;
    let literal = this.#literals.get(key);
    if (literal === undefined) {
      literal = this.#like(method, text, title);
      if (this.#literals.size >= LITERALS_MAX) this.#literals.clear();
      this.#literals.set(key, literal);
    }
    return literal;
  }

  #like<Body>(method: Method, path: string, title: string): HttpOutputs<Body>[Kind] {
    let template = this.#templates.get(method);
    if (template === undefined) {
      template = this.#describe(method, "/", undefined);
      this.#templates.set(method, template);
    }
    const url = new UrlPart(`${this.#prefix}${path}`, this.#route, this.#url);
    return this.#maker.like<Body>(template, method, url, title);
  }

  /** The path of the base: "" or "/api". */
  get #prefix(): string {
    return this.#url.path === "/" ? "" : this.#url.path;
  }

  #describe<Body>(
    method: Method,
    path: string,
    options: RequestOptions = {},
  ): HttpOutputs<Body>[Kind] {
    const { auth, readBody } = this.#options;
    const headers =
      options.headers === undefined
        ? this.#headers
        : merged(this.#options.headers, options.headers);
    const url = PLAIN_PATH.test(path)
      ? new UrlPart(`${this.#prefix}${path}`, this.#route, this.#url)
      : new UrlPart(`${this.#base}${path}`, this.#route);
    return this.#maker.describe<Body>(method, url, {
      ...(auth === undefined ? {} : { auth }),
      ...(readBody === undefined ? {} : { readBody }),
      ...options,
      ...(headers === undefined ? {} : { headers }),
    });
  }

  /** The same target with other options; the same connections where only headers differ. */
  with(options: TargetOptions): HttpTarget<Kind> {
    const headers = merged(this.#options.headers, options.headers);
    const all = { ...this.#options, ...options, ...(headers === undefined ? {} : { headers }) };
    const sameWay = !Object.keys(options).some((name) => CONNECTION_OPTION_NAMES.includes(name));
    const [route, url] = sameWay ? [this.#route, this.#url] : [undefined, undefined];
    return new HttpTarget<Kind>(this.#base, all, this.#maker, route, url);
  }
}

function checkTarget(base: string, options: TargetOptions, unparsed: boolean): void {
  if (unparsed) {
    const { hash, search } = parseUrl(base);
    if (hash !== "" || search !== "")
      throw new TypeError("the base of a target has no query: give it as params of the requests");
  }
  for (const name of Object.keys(options)) {
    if (TARGET_OPTION_NAMES.includes(name)) continue;
    const hint = didYouMean(name, TARGET_OPTION_NAMES);
    throw new TypeError(`a target has no option "${name}"${hint}`);
  }
}

function shown(path: unknown): string {
  return typeof path === "string" ? `"${path}"` : "a prepared url(…)";
}

/** Names are the same whatever their case; the later value has its way. */
function merged(
  common: HeaderValues | undefined,
  own: HeaderValues | HeadersPart | undefined,
): HeaderValues | undefined {
  const later = own instanceof HeadersPart ? Object.fromEntries(own.entries) : own;
  if (common === undefined || later === undefined) return common ?? later;
  const taken = new Set(Object.keys(later).map((name) => name.toLowerCase()));
  const kept = Object.entries(common).filter(([name]) => !taken.has(name.toLowerCase()));
  return { ...Object.fromEntries(kept), ...later };
}
