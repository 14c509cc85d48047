/** A request that is composed once and encoded once per settings, for every version of HTTP. */

import type { BoundCall, CallEnvironment, CallSettings, CallSink, Session } from "../protocol.ts";
import { HttpMessage, type HttpVersion } from "./message.ts";
import { type ComposedRequest, compose, type Method, type RequestOptions } from "./request.ts";
import type { Target } from "./verbs.ts";

export class PreparedRequest<Sent> {
  readonly #version: HttpVersion<Sent>;
  readonly #method: Method;
  readonly #target: Target;
  readonly #options: RequestOptions;
  #composed: ComposedRequest | undefined;
  /** The last one asked for, which is nearly always the only one. */
  #message: HttpMessage<Sent> | undefined;
  #settings: CallSettings | undefined;
  #others: WeakMap<CallSettings, HttpMessage<Sent>> | undefined;

  constructor(
    version: HttpVersion<Sent>,
    method: Method,
    target: Target,
    options: RequestOptions = {},
  ) {
    this.#version = version;
    this.#method = method;
    this.#target = target;
    this.#options = options;
    // Composed at once where nothing must be read first, so that a mistake shows the user's own line.
    if (!("prepare" in Object(options.body))) this.#composed = compose(method, target, options);
  }

  async prepare({ settings }: CallEnvironment): Promise<void> {
    await this.message(settings).origin.prepare();
  }

  bind(session: Session, keep: boolean, sink: CallSink): BoundCall {
    return this.#version.exchange(this.message(session.settings), session, keep, sink);
  }

  message(settings: CallSettings): HttpMessage<Sent> {
    if (this.#message !== undefined && this.#settings === settings) return this.#message;
    let message = this.#others?.get(settings);
    if (message === undefined) {
      this.#composed ??= compose(this.#method, this.#target, this.#options);
      message = new HttpMessage(this.#version, this.#composed, settings);
    }
    if (this.#message !== undefined && this.#settings !== undefined) {
      this.#others ??= new WeakMap();
      this.#others.set(this.#settings, this.#message);
    }
    this.#message = message;
    this.#settings = settings;
    return message;
  }
}
