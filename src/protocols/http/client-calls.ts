/** Calls made by functions of one virtual user, for every version of HTTP. */

import { clock } from "../call.ts";
import type { CallRecord, CallResult, CallSink, ClientCall, Session } from "../protocol.ts";
import type { HttpExchange, HttpMessage, HttpVersion } from "./message.ts";
import { PreparedRequest } from "./prepared-request.ts";
import type { Method, RequestOptions } from "./request.ts";
import type { HttpResponse } from "./response.ts";
import type { Target } from "./verbs.ts";

/** Requests without options that functions build repeatedly; each is composed once per core. */
const PLAIN_REQUESTS_MAX = 1_024;

export class PlainRequests<Sent> {
  readonly #version: HttpVersion<Sent>;
  readonly #byMethod = new Map<Method, Map<string, PreparedRequest<Sent>>>();

  constructor(version: HttpVersion<Sent>) {
    this.#version = version;
  }

  get(method: Method, target: string): PreparedRequest<Sent> {
    let requests = this.#byMethod.get(method);
    if (requests === undefined) {
      requests = new Map();
      this.#byMethod.set(method, requests);
    }
    let request = requests.get(target);
    if (request === undefined) {
      request = new PreparedRequest(this.#version, method, target);
      if (requests.size >= PLAIN_REQUESTS_MAX) requests.clear();
      requests.set(target, request);
    }
    return request;
  }
}

export class ClientCalls<Sent, Response extends HttpResponse> {
  readonly #version: HttpVersion<Sent>;
  readonly #plain: PlainRequests<Sent>;
  readonly #session: Session;
  readonly #spare: HttpCall<Sent, Response>[] = [];

  constructor(version: HttpVersion<Sent>, plain: PlainRequests<Sent>, session: Session) {
    this.#version = version;
    this.#plain = plain;
    this.#session = session;
  }

  request(method: Method, target: Target, options?: RequestOptions): Promise<Response> {
    const plain = options === undefined && typeof target === "string";
    return this.send(
      plain
        ? this.#plain.get(method, target)
        : new PreparedRequest(this.#version, method, target, options),
    );
  }

  send(request: PreparedRequest<Sent>): Promise<Response> {
    const message = request.message(this.#session.settings);
    return this.#call(message).start(message, clock());
  }

  #call(message: HttpMessage<Sent>): HttpCall<Sent, Response> {
    const { protocol } = this.#version;
    return (
      this.#spare.pop() ??
      new HttpCall(protocol, this.#spare, this.#session, (sink) =>
        this.#version.exchange(message, this.#session, true, sink),
      )
    );
  }
}

/** One call of a client, reused when it is done: a user rarely has more than one or two at once. */
class HttpCall<Sent, Response extends HttpResponse> implements CallSink, ClientCall {
  readonly protocol: string;
  startedAt = 0;
  readonly #exchange: HttpExchange<Sent>;
  readonly #spare: HttpCall<Sent, Response>[];
  readonly #session: Session;
  #message: HttpMessage<Sent> | undefined;
  #resolve: (response: Response) => void = unasked;
  readonly #executor = (resolve: (response: Response) => void): void => {
    this.#resolve = resolve;
  };

  constructor(
    protocol: string,
    spare: HttpCall<Sent, Response>[],
    session: Session,
    exchangeFor: (sink: CallSink) => HttpExchange<Sent>,
  ) {
    this.protocol = protocol;
    this.#spare = spare;
    this.#session = session;
    this.#exchange = exchangeFor(this);
  }

  get verb(): string {
    return this.#message?.method ?? "";
  }
  get path(): string {
    return this.#message?.path ?? "";
  }
  get title(): string {
    return this.#message?.title ?? "";
  }
  get sent(): number {
    return this.#exchange.sent ?? 0;
  }

  start(message: HttpMessage<Sent>, now: number): Promise<Response> {
    const answered = new Promise(this.#executor);
    this.#message = message;
    this.startedAt = now;
    this.#exchange.aim(message);
    this.#session.calling?.(this);
    this.#exchange.start(now);
    return answered;
  }

  callFinished(_record: CallRecord, result: CallResult | undefined): void {
    const resolve = this.#resolve;
    this.#resolve = unasked;
    if (result !== undefined) this.#session.called?.(this, result);
    this.#spare.push(this);
    resolve(result as Response);
  }
}

function unasked(): void {}
