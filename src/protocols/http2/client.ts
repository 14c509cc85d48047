/**
 * HTTP/2 as users write it: the same verbs and options as `http`, over one connection that carries
 * many requests at once.
 *
 *   step("home", http2.get("https://…"))             a prepared request
 *   step("home", ({ http2 }) => http2.get("https://…"))
 *
 * https:// is agreed on by ALPN; http:// speaks HTTP/2 from the first byte (prior knowledge).
 */

import type { OutgoingHttpHeaders } from "node:http2";
import { ClientCalls, PlainRequests } from "../http/client-calls.ts";
import { PreparedRequest } from "../http/prepared-request.ts";
import type { Method, RequestOptions } from "../http/request.ts";
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
import { HTTP2 } from "./exchange.ts";
import type { Http2Response } from "./response.ts";

/** A request whose header block is made once. */
export class Http2Request implements PreparedCall<Http2Response> {
  declare readonly resultType?: Http2Response;
  readonly protocol = HTTP2.protocol;
  readonly request: PreparedRequest<OutgoingHttpHeaders>;

  constructor(method: Method, target: Target, options?: RequestOptions) {
    this.request = new PreparedRequest(HTTP2, method, target, options);
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

const plainRequests = new PlainRequests(HTTP2);

/** One virtual user's client, for use inside functions. */
export class Http2Client extends HttpVerbs<Promise<Http2Response>> {
  readonly #calls: ClientCalls<OutgoingHttpHeaders, Http2Response>;

  constructor(session: Session) {
    super();
    this.#calls = new ClientCalls(HTTP2, plainRequests, session);
  }

  override request(
    method: Method,
    target: Target,
    options?: RequestOptions,
  ): Promise<Http2Response> {
    return this.#calls.request(method, target, options);
  }

  /** Sends a prepared request now. */
  send({ request }: Http2Request): Promise<Http2Response> {
    return this.#calls.send(request);
  }
}

class PreparedVerbs extends HttpVerbs<Http2Request> {
  override request(method: Method, target: Target, options?: RequestOptions): Http2Request {
    return new Http2Request(method, target, options);
  }

  /** What all requests to one server have in common: base address, headers, TLS, proxy. */
  target(base: string, options: TargetOptions = {}): HttpTarget<Http2Request> {
    return new HttpTarget(base, options, (method, url, own) => new Http2Request(method, url, own));
  }
}

/** Prepared requests: `step("home", http2.get("https://…"))`. */
export const http2 = new PreparedVerbs();
