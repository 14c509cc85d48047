/**
 * \n HTTP/2, as users write it: the same verbs and options as `http`, over one connection that carries many concurrent
 * requests.
 *
 *   step("home", http2.get("https://…"))             a prepared request
 *   step("home", ({ http2 }) => http2.get("https://…"))
 *
 * https:// is negotiated by ALPN; http:// uses HTTP/2 from the first byte (prior knowledge).
 */

import { DescriptionAwaited, type NotAwaitable } from "../description.ts";
import { ClientCalls, PlainRequests } from "../http/client-calls.ts";
import { PreparedRequest } from "../http/prepared-request.ts";
import type { Method, RequestOptions } from "../http/request.ts";
import { type CallMaker, type HttpTarget, type TargetOptions, targetOf } from "../http/target.ts";
import type { TypedHttpTarget } from "../http/typed-target.ts";
import { HttpVerbs, type Target } from "../http/verbs.ts";
import type { Origin } from "../net/origin.ts";
import type {
  BoundCall,
  CallEnvironment,
  CallSettings,
  CallSink,
  CannedAnswer,
  PreparedCall,
  Session,
} from "../protocol.ts";
import type { Http2Head } from "./encode.ts";
import { HTTP2 } from "./exchange.ts";
import { Http2Response } from "./response.ts";

declare module "../http/verbs.ts" {
  interface HttpOutputs<Body> {
    readonly http2: Http2Request<Body>;
    readonly http2Answer: Promise<Http2Response<Body>>;
  }
}

/** A described request: its header block is encoded once. `Body` is the type of `json()` of its response. */
export class Http2Request<Body = unknown> implements PreparedCall<Http2Response<Body>> {
  declare readonly resultType?: Http2Response<Body>;
  readonly protocol = HTTP2.protocol;
  readonly request: PreparedRequest<Http2Head>;

  constructor(request: PreparedRequest<Http2Head>) {
    this.request = request;
  }

  static of<Body>(method: Method, target: Target, options?: RequestOptions): Http2Request<Body> {
    return new Http2Request<Body>(new PreparedRequest(HTTP2, method, target, options));
  }

  prepare(environment: CallEnvironment): Promise<void> {
    return this.request.prepare(environment);
  }

  origin(): Origin {
    return this.request.origin;
  }

  bind(session: Session, keep: boolean, sink: CallSink): BoundCall {
    return this.request.bind(session, keep, sink);
  }

  rebind(session: Session, spent: BoundCall | null, sink: CallSink): BoundCall {
    return this.request.rebind(session, spent, sink);
  }

  get title(): string {
    return this.request.title;
  }

  answered(answer: CannedAnswer): Http2Response<Body> {
    const { error, kept, record } = this.request.answered(answer);
    return new Http2Response<Body>(record, error, kept);
  }

  shown(settings: CallSettings): { readonly request: string; readonly prepared: string } {
    const request = String(this.request.message(settings).sent);
    return { request, prepared: this.request.prepared };
  }

  // biome-ignore lint/suspicious/noThenProperty: it throws the line to write instead.
  get then(): NotAwaitable {
    throw new DescriptionAwaited(this.title);
  }
}

const plainRequests = new PlainRequests(HTTP2);

/** Client of one virtual user, for use inside functions. */
export class Http2Client extends HttpVerbs<"http2Answer"> {
  readonly #calls: ClientCalls<Http2Head, Http2Response>;

  constructor(session: Session) {
    super();
    this.#calls = new ClientCalls(HTTP2, plainRequests, session);
  }

  override request<Body = unknown>(
    method: Method,
    target: Target,
    options?: RequestOptions,
  ): Promise<Http2Response<Body>> {
    return this.#calls.request(method, target, options);
  }

  /** Sends a prepared request now. */
  send<Body>({ request }: Http2Request<Body>): Promise<Http2Response<Body>> {
    return this.#calls.send(request);
  }
}

const MAKER: CallMaker<"http2"> = {
  describe: (method, url, options) => Http2Request.of(method, url, options),
  vary: ({ request }, names) => request.vary(names),
  like: ({ request }, variation, title) => new Http2Request(request.like(variation, title)),
};

class PreparedVerbs extends HttpVerbs<"http2"> {
  override request<Body = unknown>(
    method: Method,
    target: Target,
    options?: RequestOptions,
  ): Http2Request<Body> {
    return Http2Request.of<Body>(method, target, options);
  }

  /** Common options of all requests to one server: base address, headers, TLS, proxy. */
  target(base: string, options?: TargetOptions): HttpTarget<"http2">;
  /** Typed by the output of `hyperscale types` for an OpenAPI document. */
  target<Paths extends object>(
    base: string,
    options?: TargetOptions,
  ): TypedHttpTarget<Paths, "http2">;
  target(base: string, options: TargetOptions = {}): HttpTarget<"http2"> {
    return targetOf(base, options, MAKER);
  }
}

/** Prepared requests: `step("home", http2.get("https://…"))`. */
export const http2 = new PreparedVerbs();
