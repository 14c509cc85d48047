/**
 * \n HTTP/1.1, as users write it.
 *
 *   http.get("https://…")                 at the top of a file or in `step(…)`: a prepared request
 *   ({ http }) => http.get("https://…")   in a function: sends it now and resolves to the response
 *
 * A client can also send a prepared request: `http.send(home)`.
 */

import { DescriptionAwaited, type NotAwaitable } from "../description.ts";
import { ClientCalls, PlainRequests } from "../http/client-calls.ts";
import { PreparedRequest } from "../http/prepared-request.ts";
import type { Method, RequestOptions } from "../http/request.ts";
import { HttpResponse } from "../http/response.ts";
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
import type { Http1Bytes } from "./encode.ts";
import { HTTP1 } from "./exchange.ts";

declare module "../http/verbs.ts" {
  interface HttpOutputs<Body> {
    readonly http1: HttpRequest<Body>;
    readonly http1Answer: Promise<HttpResponse<Body>>;
  }
}

/** A described request: its bytes are encoded once. `Body` is the type of `json()` of its response. */
export class HttpRequest<Body = unknown> implements PreparedCall<HttpResponse<Body>> {
  declare readonly resultType?: HttpResponse<Body>;
  readonly protocol = HTTP1.protocol;
  readonly request: PreparedRequest<Http1Bytes>;

  constructor(request: PreparedRequest<Http1Bytes>) {
    this.request = request;
  }

  static of<Body>(method: Method, target: Target, options?: RequestOptions): HttpRequest<Body> {
    return new HttpRequest<Body>(new PreparedRequest(HTTP1, method, target, options));
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

  answered(answer: CannedAnswer): HttpResponse<Body> {
    const { error, kept, record } = this.request.answered(answer);
    return new HttpResponse<Body>(record, error, kept);
  }

  shown(settings: CallSettings): { readonly request: string; readonly prepared: string } {
    return {
      request: this.request.message(settings).sent.toString("latin1"),
      prepared: this.request.prepared,
    };
  }

  // biome-ignore lint/suspicious/noThenProperty: it throws the line to write instead.
  get then(): NotAwaitable {
    throw new DescriptionAwaited(this.title);
  }
}

const plainRequests = new PlainRequests(HTTP1);

/** Client of one virtual user, for use inside functions. */
export class HttpClient extends HttpVerbs<"http1Answer"> {
  readonly #calls: ClientCalls<Http1Bytes, HttpResponse>;

  constructor(session: Session) {
    super();
    this.#calls = new ClientCalls(HTTP1, plainRequests, session);
  }

  override request<Body = unknown>(
    method: Method,
    target: Target,
    options?: RequestOptions,
  ): Promise<HttpResponse<Body>> {
    return this.#calls.request(method, target, options);
  }

  /** Sends a prepared request now. */
  send<Body>({ request }: HttpRequest<Body>): Promise<HttpResponse<Body>> {
    return this.#calls.send(request);
  }
}

const MAKER: CallMaker<"http1"> = {
  describe: (method, url, options) => HttpRequest.of(method, url, options),
  vary: ({ request }, names) => request.vary(names),
  like: ({ request }, variation, title) => new HttpRequest(request.like(variation, title)),
};

class PreparedVerbs extends HttpVerbs<"http1"> {
  override request<Body = unknown>(
    method: Method,
    target: Target,
    options?: RequestOptions,
  ): HttpRequest<Body> {
    return HttpRequest.of<Body>(method, target, options);
  }

  /** Common options of all requests to one server: base address, headers, TLS, proxy. */
  target(base: string, options?: TargetOptions): HttpTarget<"http1">;
  /** Typed by the output of `hyperscale types` for an OpenAPI document. */
  target<Paths extends object>(
    base: string,
    options?: TargetOptions,
  ): TypedHttpTarget<Paths, "http1">;
  target(base: string, options: TargetOptions = {}): HttpTarget<"http1"> {
    return targetOf(base, options, MAKER);
  }
}

/** Prepared requests: `step("home", http.get("https://…"))`. */
export const http = new PreparedVerbs();
