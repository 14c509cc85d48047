/**
 * \n A target: the common options of all requests to one server. It has no user and sends nothing; its verbs describe
 * requests, which steps perform.
 *
 *   const shop = http.target("https://shop.test/api", { headers: { accept: "application/json" } });
 *   workflow(…).step("home", shop.get("/"))
 *     .step("cart", ({ http }) => http.send(shop.post("/cart", { json: { id: 7 } })));
 */

import { didYouMean } from "../../core/base/nearest.ts";
import { originOf } from "../net/origin.ts";
import { prepareBeforeLoop, workflowFolder } from "../protocol.ts";
import { CONNECTION_OPTION_NAMES, routeOf } from "./connection-options.ts";
import { HeadersPart, parseUrl, UrlPart } from "./parts.ts";
import { jsonText } from "./plain-data.ts";
import type { Method, RequestOptions } from "./request.ts";
import {
  type CallMaker,
  describe,
  optionsWith,
  RequestShape,
  type Server,
  type TargetOptions,
} from "./request-shape.ts";
import { RoutePart } from "./route-part.ts";
import { type HttpKind, type HttpOutputs, HttpVerbs } from "./verbs.ts";

export type { CallMaker, TargetOptions };

const TARGET_OPTION_NAMES = [...CONNECTION_OPTION_NAMES, "headers", "auth", "readBody"];
/** Cached requests of one target for a path without options. */
const LITERALS_MAX = 256;
const NO_VALUES: readonly string[] = [];
const [SLASH, QUESTION_MARK] = [0x2f, 0x3f];

export class HttpTarget<Kind extends HttpKind> extends HttpVerbs<Kind, string | RoutePart> {
  readonly #shape: RequestShape<Kind>;
  /** Values of the headers that its shape names. */
  readonly #values: readonly string[];
  /** By method and path; only for targets that are not made in a loop. */
  readonly #literals: Map<string, HttpOutputs<unknown>[Kind]> | null;

  constructor(shape: RequestShape<Kind>, values: readonly string[]) {
    super();
    this.#shape = shape;
    this.#values = values;
    this.#literals = workflowFolder() === null ? new Map() : null;
  }

  /** `path` begins with a slash and is appended to the base; "" is the base itself. */
  override request<Body = unknown>(
    method: Method,
    path: string | RoutePart,
    options?: RequestOptions,
  ): HttpOutputs<Body>[Kind] {
    const route = path instanceof RoutePart ? path.template : null;
    const text = path instanceof RoutePart ? path.path : path;
    if (!isPath(text))
      throw new TypeError(`a target takes a path that begins with "/", not ${shown(path)}`);
    if (route?.plain !== true && !this.#shape.isPlain(text))
      return this.#describe(method, text, options);
    const title = route?.title ?? withoutQuery(text);
    if (options !== undefined)
      return this.#varied(method, text, title, options) ?? this.#describe(method, text, options);
    if (route !== null || this.#literals === null) return this.#like(method, text, title);
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
    const variation = {
      path: this.#shape.server.prefix + path,
      headerValues: this.#values,
      json: null,
    };
    return (
      this.#shape.like<Body>(method, variation, title) ?? this.#describe(method, path, undefined)
    );
  }

  /** Undefined when a variation cannot express the options. */
  #varied<Body>(
    method: Method,
    path: string,
    title: string,
    options: RequestOptions,
  ): HttpOutputs<Body>[Kind] | undefined {
    let shape: RequestShape<Kind> | undefined = this.#shape;
    let headerValues = this.#values;
    for (const name in options) {
      if (name === "json") continue;
      if (name !== "headers" || options.headers === undefined) return undefined;
      if (options.headers instanceof HeadersPart) return undefined;
      shape = this.#shape.extendedBy(options.headers);
      if (shape === undefined) return undefined;
      headerValues = shape.valuesOf(options.headers);
    }
    const json = options.json === undefined ? null : jsonText(options.json, "json");
    const variation = { path: shape.server.prefix + path, headerValues, json };
    return shape.like<Body>(method, variation, title);
  }

  #describe<Body>(
    method: Method,
    path: string,
    given: RequestOptions = {},
  ): HttpOutputs<Body>[Kind] {
    return describe(this.#shape.server, this.#options, { method, path }, given);
  }

  get #options(): TargetOptions {
    return this.#shape.options(this.#values);
  }

  /** Returns the same target with other options; connections are shared when only headers differ. */
  with(options: TargetOptions): HttpTarget<Kind> {
    const { headers } = options;
    if (headers !== undefined && onlyHeaders(options)) {
      const shape = this.#shape.extendedBy(headers);
      if (shape !== undefined) return new HttpTarget(shape, shape.valuesOf(headers));
    }
    checkNames(options);
    const all = optionsWith(this.#options, options);
    const { server } = this.#shape;
    const sameWay = !Object.keys(options).some((name) => CONNECTION_OPTION_NAMES.includes(name));
    const there = sameWay ? server : serverOf(server.base, all, server.maker);
    return new HttpTarget(new RequestShape(there, all), NO_VALUES);
  }
}

/** Creates a target; implements `http.target(…)`. */
export function targetOf<Kind extends HttpKind>(
  base: string,
  options: TargetOptions,
  maker: CallMaker<Kind>,
): HttpTarget<Kind> {
  const { hash, search } = parseUrl(base);
  if (hash !== "" || search !== "")
    throw new TypeError("the base of a target has no query: give it as params of the requests");
  checkNames(options);
  const server = serverOf(base.replace(/\/+$/, ""), options, maker);
  return new HttpTarget(new RequestShape(server, optionsWith({}, options)), NO_VALUES);
}

function serverOf<Kind extends HttpKind>(
  base: string,
  options: TargetOptions,
  maker: CallMaker<Kind>,
): Server<Kind> {
  const route = routeOf(options);
  const url = new UrlPart(base, route);
  // Hosts of targets at the top of a file are resolved before the first call.
  if (workflowFolder() === null) {
    const origin = originOf(url, route);
    // A failed lookup fails the calls that need the host, not the rest of the file.
    prepareBeforeLoop({ prepare: () => origin.prepare().catch(() => undefined) });
  }
  return { base, url, prefix: url.path === "/" ? "" : url.path, maker };
}

function onlyHeaders(options: TargetOptions): boolean {
  for (const name in options) if (name !== "headers") return false;
  return true;
}

function checkNames(options: TargetOptions): void {
  for (const name of Object.keys(options)) {
    if (TARGET_OPTION_NAMES.includes(name)) continue;
    const hint = didYouMean(name, TARGET_OPTION_NAMES);
    throw new TypeError(`a target has no option "${name}"${hint}`);
  }
}

function isPath(text: unknown): text is string {
  if (typeof text !== "string") return false;
  const first = text.charCodeAt(0);
  return first === SLASH || first === QUESTION_MARK || text === "";
}

function withoutQuery(path: string): string {
  const query = path.indexOf("?");
  return query < 0 ? path : path.slice(0, query);
}

function shown(path: unknown): string {
  return typeof path === "string" ? `"${path}"` : "a prepared url(…)";
}
