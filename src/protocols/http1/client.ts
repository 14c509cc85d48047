/**
 * HTTP/1.1 as users write it.
 *
 *   http.get("https://…")                 at the top of a file or in `step(…)`: a prepared request
 *   ({ http }) => http.get("https://…")   in a function: sends it now and answers with the response
 *
 * A client call may also send a prepared request: `http.send(home)`.
 */

import { errorText } from "../errors.ts";
import {
  type ComposedRequest,
  compose,
  type Method,
  type RequestOptions,
} from "../http/request.ts";
import type { HttpResponse } from "../http/response.ts";
import { HttpVerbs, type Target } from "../http/verbs.ts";
import { clock } from "../net/clock.ts";
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
  /** The last one asked for, which is nearly always the only one. */
  #wire: WireRequest | undefined;
  #wireSettings: CallSettings | undefined;

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
    if (this.#wire !== undefined && this.#wireSettings === settings) return this.#wire;
    this.#composed ??= compose(this.method, this.target, this.options);
    let wire = this.#wires.get(settings);
    if (wire === undefined) {
      wire = new WireRequest(this.#composed, settings);
      this.#wires.set(settings, wire);
    }
    this.#wire = wire;
    this.#wireSettings = settings;
    return wire;
  }
}

/** Requests without options that functions build again and again are composed once per core. */
const PLAIN_REQUESTS_MAX = 1_024;
const plainRequests = new Map<Method, Map<string, HttpRequest>>();

/** One virtual user's client, for use inside functions. */
export class HttpClient extends HttpVerbs<Promise<HttpResponse>> {
  readonly #session: Session;
  readonly #connections: UserConnections;
  readonly #spare: ClientCall[] = [];

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
    return new Promise((resolve) => this.#call(wire).start(wire, clock(), resolve));
  }

  #call(wire: WireRequest): ClientCall {
    return this.#spare.pop() ?? new ClientCall(wire, this.#connections, this.#spare);
  }

  async #resolveAndSend(wire: WireRequest): Promise<HttpResponse> {
    const startedAt = clock();
    let problem: string | undefined;
    try {
      await wire.origin.prepare(this.#connections);
    } catch (error) {
      problem = errorText(error);
    }
    return new Promise((resolve) => {
      const call = this.#call(wire);
      if (problem === undefined) call.start(wire, startedAt, resolve);
      else call.failBeforeStart(problem, startedAt, resolve);
    });
  }
}

/** One call of a client, used again when it is done: a user rarely has more than one or two at once. */
class ClientCall implements CallSink {
  readonly #exchange: Exchange;
  readonly #spare: ClientCall[];
  #resolve: (response: HttpResponse) => void = unasked;

  constructor(wire: WireRequest, connections: UserConnections, spare: ClientCall[]) {
    this.#exchange = new Exchange(wire, connections, true, this);
    this.#spare = spare;
  }

  start(wire: WireRequest, startedAt: number, resolve: (response: HttpResponse) => void): void {
    this.#resolve = resolve;
    this.#exchange.aim(wire);
    this.#exchange.start(startedAt);
  }

  failBeforeStart(
    problem: string,
    startedAt: number,
    resolve: (response: HttpResponse) => void,
  ): void {
    this.#resolve = resolve;
    this.#exchange.startedAt = startedAt;
    this.#exchange.fail("dns", problem, clock());
  }

  callFinished(_record: CallRecord, result: CallResult | undefined): void {
    const resolve = this.#resolve;
    this.#resolve = unasked;
    this.#spare.push(this);
    resolve(result as HttpResponse);
  }
}

function unasked(): void {}

function plainRequest(method: Method, target: string): HttpRequest {
  let requests = plainRequests.get(method);
  if (requests === undefined) {
    requests = new Map();
    plainRequests.set(method, requests);
  }
  let request = requests.get(target);
  if (request === undefined) {
    request = new HttpRequest(method, target);
    if (requests.size >= PLAIN_REQUESTS_MAX) requests.clear();
    requests.set(target, request);
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
