/**
 * \n A Socket.IO server, as users write it.
 *
 *   const chat = socketio.target("https://chat.test/rooms", { auth: { token } });   // namespace /rooms
 *   const answer = await step("say", chat.request<[number]>("say", ["hello"]));       // answer.value[0]
 *   const news = await step("news", chat.receive("news", { timeout: "5s" }));         // news.value.args
 */

import type { Duration } from "../../core/base/duration.ts";
import type { HeaderValues } from "../http/parts.ts";
import { DescribedCall } from "../target/described-call.ts";
import type { TargetResult } from "../target/result.ts";
import { checkNames, Target, type TargetOptions, type TargetProtocol } from "../target/target.ts";
import { endpointOf, Handshake } from "../websocket/handshake.ts";
import { type SocketioCommand, SocketioConnection, type SocketioEvent } from "./connection.ts";
import { encodeArguments } from "./packet.ts";

export interface SocketioOptions extends TargetOptions {
  /** Sent when connecting to the namespace. */
  readonly auth?: object;
  /** Path of the Socket.IO endpoint; "/socket.io/" by default. */
  readonly path?: string;
  /** Headers of the handshake. */
  readonly headers?: HeaderValues;
  readonly query?: Readonly<Record<string, string>>;
}

export interface SocketioCallOptions {
  readonly timeout?: Duration;
}

export type SocketioResponse<Value = unknown> = TargetResult<Value>;

export type SocketioCall<Value> = DescribedCall<SocketioCommand, Value>;

const SOCKETIO: TargetProtocol = {
  name: "socketio",
  schemes: {
    http: { port: 80, secure: false },
    https: { port: 443, secure: true },
    ws: { port: 80, secure: false },
    wss: { port: 443, secure: true },
  },
  optionNames: ["auth", "path", "headers", "query"],
  callsPerConnectionMax: 1_024,
};

export class SocketioTarget {
  readonly #target: Target<SocketioCommand>;

  constructor(address: string, options: SocketioOptions = {}) {
    const { auth = null } = options;
    this.#target = new Target(SOCKETIO, address, options, (host, now) => {
      return new SocketioConnection(host, { handshake, namespace, auth }, now);
    });
    const handshake = this.#handshake(options);
    const namespace = decodeURIComponent(this.#target.url.pathname);
    if (namespace.includes(",")) throw new TypeError("the name of a namespace has no comma");
    if (auth !== null && (typeof auth !== "object" || Array.isArray(auth)))
      throw new TypeError("auth: an object");
  }

  #handshake({ headers, path = "/socket.io/", query = {} }: SocketioOptions): Handshake {
    const { origin, url } = this.#target;
    if (!path.startsWith("/")) throw new TypeError(`path begins with a slash, not "${path}"`);
    const href = `${origin.secure ? "wss" : "ws"}://${url.host}${path}`;
    const params = { ...query, EIO: "4", transport: "websocket" };
    return new Handshake(endpointOf(href, origin.route), {
      params,
      ...(headers === undefined ? {} : { headers }),
    });
  }

  /** Finishes when its bytes were handed to the network; there is no acknowledgement. */
  emit(event: string, args: readonly unknown[] = [], options?: SocketioCallOptions) {
    return this.#emit<null>("emit", event, args, options);
  }

  /** Finishes when the server has acknowledged; `Answer` is the type of its arguments. */
  request<Answer extends readonly unknown[] = readonly unknown[]>(
    event: string,
    args: readonly unknown[] = [],
    options?: SocketioCallOptions,
  ): SocketioCall<Answer> {
    return this.#emit<Answer>("request", event, args, options);
  }

  #emit<Value>(
    kind: "emit" | "request",
    event: string,
    args: readonly unknown[],
    options: SocketioCallOptions = {},
  ): SocketioCall<Value> {
    checkEvent(event);
    if (!Array.isArray(args)) throw new TypeError("the arguments of an event are a list");
    const encoded = encodeArguments([event, ...args]);
    return this.#call(`${kind} ${event}`, { kind, encoded }, options);
  }

  /** Receives an event of that name: the first unread one, or the next to arrive. */
  receive(event: string, options: SocketioCallOptions = {}): SocketioCall<SocketioEvent> {
    return this.#call(`receive ${event}`, { kind: "receive", event: checkEvent(event) }, options);
  }

  /** Leaves the namespace and closes the connection; the next call opens another. */
  disconnect(options: SocketioCallOptions = {}): SocketioCall<null> {
    return this.#call("disconnect", { kind: "disconnect" }, options);
  }

  #call<Value>(
    title: string,
    command: SocketioCommand,
    options: SocketioCallOptions,
  ): SocketioCall<Value> {
    checkNames(title, options, ["timeout"]);
    const { timeout } = options;
    return new DescribedCall(this.#target, {
      command,
      title,
      timeout,
      decode: (value) => value as Value,
    });
  }
}

function checkEvent(event: unknown): string {
  if (typeof event === "string" && event !== "") return event;
  throw new TypeError("an event has a name");
}
