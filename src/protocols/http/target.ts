/**
 * A target: what all requests to one server have in common. It has no user and sends nothing; its verbs
 * describe requests, which steps perform.
 *
 *   const shop = http.target("https://shop.test/api", { headers: { accept: "application/json" } });
 *   workflow(…).step("home", shop.get("/"))
 *     .step("cart", ({ http }) => http.send(shop.post("/cart", { json: { id: 7 } })));
 */

import { didYouMean } from "../../core/base/nearest.ts";
import type { Route } from "../net/route.ts";
import { CONNECTION_OPTION_NAMES, type ConnectionOptions, routeOf } from "./connection-options.ts";
import { type AuthPart, HeadersPart, type HeaderValues, parseUrl, UrlPart } from "./parts.ts";
import type { Method, RequestOptions } from "./request.ts";
import { type HttpKind, type HttpOutputs, HttpVerbs, type Target } from "./verbs.ts";

export interface TargetOptions extends ConnectionOptions {
  /** For every request; one that names the same header has its way, undefined takes it out. */
  readonly headers?: HeaderValues;
  readonly auth?: AuthPart;
}

/** Makes the request of one version of HTTP. */
type MakeCall<Kind extends HttpKind> = <Body>(
  method: Method,
  url: UrlPart,
  options: RequestOptions,
) => HttpOutputs<Body>[Kind];

const TARGET_OPTION_NAMES = [...CONNECTION_OPTION_NAMES, "headers", "auth"];

export class HttpTarget<Kind extends HttpKind> extends HttpVerbs<Kind> {
  /** Without a slash at its end. */
  readonly #base: string;
  readonly #options: TargetOptions;
  readonly #route: Route | null;
  readonly #make: MakeCall<Kind>;

  constructor(base: string, options: TargetOptions, make: MakeCall<Kind>, route?: Route | null) {
    super();
    const { hash, search } = parseUrl(base);
    if (hash !== "" || search !== "")
      throw new TypeError("the base of a target has no query: give it as params of the requests");
    for (const name of Object.keys(options)) {
      if (!TARGET_OPTION_NAMES.includes(name)) {
        const hint = didYouMean(name, TARGET_OPTION_NAMES);
        throw new TypeError(`a target has no option "${name}"${hint}`);
      }
    }
    this.#base = base.replace(/\/+$/, "");
    this.#options = options;
    this.#make = make;
    this.#route = route === undefined ? routeOf(options) : route;
  }

  /** `path` begins with a slash and is put behind the base; "" is the base itself. */
  override request<Body = unknown>(
    method: Method,
    path: Target,
    options: RequestOptions = {},
  ): HttpOutputs<Body>[Kind] {
    if (typeof path !== "string" || (path !== "" && !/^[/?]/.test(path)))
      throw new TypeError(`a target takes a path that begins with "/", not ${shown(path)}`);
    const { auth } = this.#options;
    const headers = merged(this.#options.headers, options.headers);
    return this.#make<Body>(method, new UrlPart(`${this.#base}${path}`, this.#route), {
      ...(auth === undefined ? {} : { auth }),
      ...options,
      ...(headers === undefined ? {} : { headers }),
    });
  }

  /** The same target with other options; the same connections where only headers differ. */
  with(options: TargetOptions): HttpTarget<Kind> {
    const headers = merged(this.#options.headers, options.headers);
    const all = { ...this.#options, ...options, ...(headers === undefined ? {} : { headers }) };
    const sameWay = !Object.keys(options).some((name) => CONNECTION_OPTION_NAMES.includes(name));
    return new HttpTarget<Kind>(this.#base, all, this.#make, sameWay ? this.#route : undefined);
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
