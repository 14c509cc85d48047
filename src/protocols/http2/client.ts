/**
 * HTTP/2 as users write it: the same verbs and options as `http`, over one connection that carries
 * many requests at once.
 *
 *   step("home", http2.get("https://…"))             a prepared request
 *   step("home", ({ http2 }) => http2.get("https://…"))
 *
 * https:// is agreed on by ALPN; http:// speaks HTTP/2 from the first byte (prior knowledge).
 */

import { errorText } from "../errors.ts";
import {
  type ComposedRequest,
  compose,
  type Method,
  type RequestOptions,
} from "../http/request.ts";
import { HttpVerbs, type Target } from "../http/verbs.ts";
import { clock } from "../net/clock.ts";
import type {
  BoundCall,
  CallEnvironment,
  CallSettings,
  CallSink,
  PreparedCall,
  Session,
} from "../protocol.ts";
import { Http2Exchange } from "./exchange.ts";
import { Http2Message } from "./message.ts";
import type { Http2Response } from "./response.ts";
import { type Http2User, http2Sessions } from "./user.ts";

/** A request that is composed once; its header block is made when the executor core prepares it. */
export class Http2Request implements PreparedCall<Http2Response> {
  declare readonly resultType?: Http2Response;
  readonly protocol = "http2";
  readonly method: Method;
  readonly target: Target;
  readonly options: RequestOptions;
  #composed: ComposedRequest | undefined;
  readonly #messages = new WeakMap<CallSettings, Http2Message>();

  constructor(method: Method, target: Target, options: RequestOptions = {}) {
    this.method = method;
    this.target = target;
    this.options = options;
    // Composed at once where nothing must be read first, so that a mistake shows the user's own line.
    if (!("prepare" in Object(options.body))) this.#composed = compose(method, target, options);
  }

  async prepare(environment: CallEnvironment): Promise<void> {
    await this.message(environment.settings).origin.prepare(environment);
  }

  bind(session: Session, keep: boolean, sink: CallSink): BoundCall {
    return new Http2Exchange(
      this.message(session.settings),
      session.state(http2Sessions),
      keep,
      sink,
    );
  }

  message(settings: CallSettings): Http2Message {
    this.#composed ??= compose(this.method, this.target, this.options);
    let message = this.#messages.get(settings);
    if (message === undefined) {
      message = new Http2Message(this.#composed, settings);
      this.#messages.set(settings, message);
    }
    return message;
  }
}

/** One virtual user's client, for use inside functions. */
export class Http2Client extends HttpVerbs<Promise<Http2Response>> {
  readonly #session: Session;
  readonly #user: Http2User;

  constructor(session: Session) {
    super();
    this.#session = session;
    this.#user = session.state(http2Sessions);
  }

  override request(
    method: Method,
    target: Target,
    options?: RequestOptions,
  ): Promise<Http2Response> {
    return this.send(new Http2Request(method, target, options));
  }

  /** Sends a prepared request now. */
  async send(request: Http2Request): Promise<Http2Response> {
    const startedAt = clock();
    const message = request.message(this.#session.settings);
    let problem: string | null = null;
    if (message.origin.address === undefined) {
      await message.origin.prepare(this.#user).catch((error: unknown) => {
        problem = errorText(error);
      });
    }
    return new Promise((resolve) => {
      const sink: CallSink = {
        callFinished: (_record, result) => resolve(result as Http2Response),
      };
      const exchange = new Http2Exchange(message, this.#user, true, sink);
      if (problem === null) exchange.start(startedAt);
      else exchange.failBeforeStart("dns", problem, startedAt);
    });
  }
}

export function createHttp2Client(session: Session): Http2Client {
  return new Http2Client(session);
}

class PreparedVerbs extends HttpVerbs<Http2Request> {
  override request(method: Method, target: Target, options?: RequestOptions): Http2Request {
    return new Http2Request(method, target, options);
  }
}

/** Prepared requests: `step("home", http2.get("https://…"))`. */
export const http2 = new PreparedVerbs();
