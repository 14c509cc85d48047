/** The calls that functions of one virtual user make, for every version of HTTP. */

import { clock } from "../call.ts";
import type { CallRecord, CallResult, CallSink, Session } from "../protocol.ts";
import type { HttpExchange, HttpMessage, HttpVersion } from "./message.ts";
import { PreparedRequest } from "./prepared-request.ts";
import type { Method, RequestOptions } from "./request.ts";
import type { HttpResponse } from "./response.ts";
import type { Target } from "./verbs.ts";

/** Requests without options that functions build again and again are composed once per core. */
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
  readonly #spare: ClientCall<Sent, Response>[] = [];

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

  #call(message: HttpMessage<Sent>): ClientCall<Sent, Response> {
    return (
      this.#spare.pop() ??
      new ClientCall(this.#spare, this.#session, (sink) =>
        this.#version.exchange(message, this.#session, true, sink),
      )
    );
  }
}

/** One call of a client, used again when it is done: a user rarely has more than one or two at once. */
class ClientCall<Sent, Response extends HttpResponse> implements CallSink {
  readonly #exchange: HttpExchange<Sent>;
  readonly #spare: ClientCall<Sent, Response>[];
  readonly #session: Session;
  #message: HttpMessage<Sent> | undefined;
  #resolve: (response: Response) => void = unasked;
  readonly #executor = (resolve: (response: Response) => void): void => {
    this.#resolve = resolve;
  };

  constructor(
    spare: ClientCall<Sent, Response>[],
    session: Session,
    exchangeFor: (sink: CallSink) => HttpExchange<Sent>,
  ) {
    this.#spare = spare;
    this.#session = session;
    this.#exchange = exchangeFor(this);
  }

  start(message: HttpMessage<Sent>, now: number): Promise<Response> {
    const answered = new Promise(this.#executor);
    this.#message = message;
    this.#exchange.aim(message);
    this.#exchange.start(now);
    return answered;
  }

  callFinished(_record: CallRecord, result: CallResult | undefined): void {
    const resolve = this.#resolve;
    this.#resolve = unasked;
    const { method = "", path = "" } = this.#message ?? {};
    if (result !== undefined) this.#session.called?.(result, method, path);
    this.#spare.push(this);
    resolve(result as Response);
  }
}

function unasked(): void {}
