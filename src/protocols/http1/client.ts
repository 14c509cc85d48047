/**
 * HTTP/1.1 as users write it.
 *
 *   http.get("https://…")                 at the top of a file or in `step(…)`: a prepared request
 *   ({ http }) => http.get("https://…")   in a function: sends it now and answers with the response
 *
 * A client call may also send a prepared request: `http.send(home)`.
 */

import { clock } from "../clock.ts";
import {
  type ComposedRequest,
  compose,
  type Method,
  type RequestOptions,
} from "../http/request.ts";
import type { HttpResponse } from "../http/response.ts";
import { HttpVerbs, type Target } from "../http/verbs.ts";
import type {
  BoundCall,
  CallEnvironment,
  CallRecord,
  CallResult,
  CallSettings,
  CallSink,
  PreparedCall,
  Session,
} from "../protocol.ts";
import { Exchange } from "./exchange.ts";
import { http1Sessions, type UserConnections } from "./pool.ts";
import { WireRequest } from "./wire-request.ts";

/** A request that is composed once; its bytes are made when the executor core prepares it. */
export class HttpRequest implements PreparedCall<HttpResponse> {
  declare readonly resultType?: HttpResponse;
  readonly protocol = "http";
  readonly method: Method;
  readonly target: Target;
  readonly options: RequestOptions;
  #composed: ComposedRequest | undefined;
  readonly #wires = new WeakMap<CallSettings, WireRequest>();

  constructor(method: Method, target: Target, options: RequestOptions = {}) {
    this.method = method;
    this.target = target;
    this.options = options;
    // Composed at once where nothing must be read first, so that a wrong URL shows the user's own line.
    if (!("prepare" in (Object(options.body) as object)))
      this.#composed = compose(method, target, options);
  }

  async prepare(environment: CallEnvironment): Promise<void> {
    await this.wire(environment.settings).origin.prepare(environment);
  }

  bind(session: Session, keep: boolean, sink: CallSink): BoundCall {
    return new Exchange(this.wire(session.settings), session.state(http1Sessions), keep, sink);
  }

  wire(settings: CallSettings): WireRequest {
    this.#composed ??= compose(this.method, this.target, this.options);
    let wire = this.#wires.get(settings);
    if (wire === undefined) {
      wire = new WireRequest(this.#composed, settings);
      this.#wires.set(settings, wire);
    }
    return wire;
  }
}

/** Requests without options that functions build again and again are composed once per core. */
const PLAIN_REQUESTS_MAX = 1_024;
const plainRequests = new Map<string, HttpRequest>();

/** One virtual user's client, for use inside functions. */
export class HttpClient extends HttpVerbs<Promise<HttpResponse>> {
  readonly #session: Session;
  readonly #connections: UserConnections;

  constructor(session: Session) {
    super();
    this.#session = session;
    this.#connections = session.state(http1Sessions);
  }

  override request(
    method: Method,
    target: Target,
    options?: RequestOptions,
  ): Promise<HttpResponse> {
    if (options === undefined && typeof target === "string")
      return this.send(plainRequest(method, target));
    return this.send(new HttpRequest(method, target, options));
  }

  /** Sends a prepared request now. */
  send(request: HttpRequest): Promise<HttpResponse> {
    const wire = request.wire(this.#session.settings);
    if (wire.origin.address === undefined) return this.#resolveAndSend(wire);
    return new Promise((resolve) => {
      new Exchange(wire, this.#connections, true, new PromiseSink(resolve)).start(clock());
    });
  }

  async #resolveAndSend(wire: WireRequest): Promise<HttpResponse> {
    const startedAt = clock();
    let problem: string | undefined;
    try {
      await wire.origin.prepare(this.#connections);
    } catch (error) {
      problem = error instanceof Error ? error.message : String(error);
    }
    return new Promise((resolve) => {
      const exchange = new Exchange(wire, this.#connections, true, new PromiseSink(resolve));
      if (problem === undefined) exchange.start(startedAt);
      else {
        exchange.startedAt = startedAt;
        exchange.fail("dns", problem, clock());
      }
    });
  }
}

class PromiseSink implements CallSink {
  readonly #resolve: (response: HttpResponse) => void;

  constructor(resolve: (response: HttpResponse) => void) {
    this.#resolve = resolve;
  }

  callFinished(_record: CallRecord, result: CallResult | undefined): void {
    this.#resolve(result as HttpResponse);
  }
}

function plainRequest(method: Method, target: string): HttpRequest {
  const key = `${method} ${target}`;
  let request = plainRequests.get(key);
  if (request === undefined) {
    request = new HttpRequest(method, target);
    if (plainRequests.size >= PLAIN_REQUESTS_MAX) plainRequests.clear();
    plainRequests.set(key, request);
  }
  return request;
}

class PreparedVerbs extends HttpVerbs<HttpRequest> {
  override request(method: Method, target: Target, options?: RequestOptions): HttpRequest {
    return new HttpRequest(method, target, options);
  }
}

/** Prepared requests: `step("home", http.get("https://…"))`. */
export const http = new PreparedVerbs();
