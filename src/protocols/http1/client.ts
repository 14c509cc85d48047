/**
 * HTTP/1.1 as users write it.
 *
 *   http.get("https://…")                 at the top of a file or in `step(…)`: a prepared request
 *   ({ http }) => http.get("https://…")   in a function: sends it now and answers with the response
 *
 * A client call may also send a prepared request: `http.send(home)`.
 */

import { ClientCalls, PlainRequests } from "../http/client-calls.ts";
import { PreparedRequest } from "../http/prepared-request.ts";
import type { Method, RequestOptions } from "../http/request.ts";
import type { HttpResponse } from "../http/response.ts";
import { HttpTarget, type TargetOptions } from "../http/target.ts";
import { HttpVerbs, type Target } from "../http/verbs.ts";
import type { Origin } from "../net/origin.ts";
import type {
  BoundCall,
  CallEnvironment,
  CallSettings,
  CallSink,
  PreparedCall,
  Session,
} from "../protocol.ts";
import { HTTP1 } from "./exchange.ts";

/** A request whose bytes are made once. */
export class HttpRequest implements PreparedCall<HttpResponse> {
  declare readonly resultType?: HttpResponse;
  readonly protocol = HTTP1.protocol;
  readonly request: PreparedRequest<Buffer>;

  constructor(method: Method, target: Target, options?: RequestOptions) {
    this.request = new PreparedRequest(HTTP1, method, target, options);
  }

  prepare(environment: CallEnvironment): Promise<void> {
    return this.request.prepare(environment);
  }

  origin(settings: CallSettings): Origin {
    return this.request.message(settings).origin;
  }

  bind(session: Session, keep: boolean, sink: CallSink): BoundCall {
    return this.request.bind(session, keep, sink);
  }
}

const plainRequests = new PlainRequests(HTTP1);

/** One virtual user's client, for use inside functions. */
export class HttpClient extends HttpVerbs<Promise<HttpResponse>> {
  readonly #calls: ClientCalls<Buffer, HttpResponse>;

  constructor(session: Session) {
    super();
    this.#calls = new ClientCalls(HTTP1, plainRequests, session);
  }

  override request(
    method: Method,
    target: Target,
    options?: RequestOptions,
  ): Promise<HttpResponse> {
    return this.#calls.request(method, target, options);
  }

  /** Sends a prepared request now. */
  send({ request }: HttpRequest): Promise<HttpResponse> {
    return this.#calls.send(request);
  }
}

class PreparedVerbs extends HttpVerbs<HttpRequest> {
  override request(method: Method, target: Target, options?: RequestOptions): HttpRequest {
    return new HttpRequest(method, target, options);
  }

  /** What all requests to one server have in common: base address, headers, TLS, proxy. */
  target(base: string, options: TargetOptions = {}): HttpTarget<HttpRequest> {
    return new HttpTarget(base, options, (method, url, own) => new HttpRequest(method, url, own));
  }
}

/** Prepared requests: `step("home", http.get("https://…"))`. */
export const http = new PreparedVerbs();
