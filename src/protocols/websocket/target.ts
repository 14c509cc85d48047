/**
 * \n A WebSocket server as a target. It has no user and sends nothing; `connect` and the methods of its result describe
 * calls, which steps of a flow perform.
 *
 *   const room = ws.target("wss://chat.test/room");
 *   const socket = await step("connect", room.connect({ params: { ticket }, keep: "user" }));
 *   const echo = await step("say", socket.request<Said>({ id }, { match: …, within: "2s" }));
 */

import { errorText } from "../../core/base/error-text.ts";
import { didYouMean } from "../../core/base/nearest.ts";
import { type CallTimeouts, clock } from "../call.ts";
import { DescriptionAwaited, type NotAwaitable } from "../description.ts";
import {
  CONNECTION_OPTION_NAMES,
  type ConnectionOptions,
  routeOf,
} from "../http/connection-options.ts";
import { HeadersPart, type HeaderValues, type UrlPart } from "../http/parts.ts";
import type { Origin } from "../net/origin.ts";
import {
  type BoundCall,
  type CallEnvironment,
  type CallRecord,
  type CallResult,
  type CallSink,
  type CannedAnswer,
  type PreparedCall,
  prepareBeforeLoop,
  type Session,
  workflowFolder,
} from "../protocol.ts";
import { WebsocketCall } from "./call.ts";
import { Connection } from "./connection.ts";
import { type ConnectOptions, endpointOf, Handshake, timeoutsFor } from "./handshake.ts";
import { LaterSink } from "./later-sink.ts";
import type { WebsocketResponse } from "./response.ts";
import type { UserSocket } from "./socket.ts";
import { type Act, answeredRecord, type Speaking } from "./socket-call.ts";
import { type WebsocketUser, websocketSessions } from "./user.ts";

export interface WebsocketTargetOptions extends Omit<ConnectOptions, "params">, ConnectionOptions {}

const OPTION_NAMES = [
  ...CONNECTION_OPTION_NAMES,
  ...["headers", "auth", "cookies", "protocols", "compress", "timeout"],
];

export interface TargetConnectOptions extends ConnectOptions {
  /** "user" keeps the connection for further iterations; otherwise it closes with its iteration. */
  readonly keep?: "user" | "iteration";
}

export const SWITCHING_PROTOCOLS = 101;

/** Exchange on a new connection before it is used, and the result of its step. */
export interface Greeting<Result extends CallResult> {
  readonly protocol: string;
  /** Finishes the call, at once or when the server has confirmed. */
  readonly greet: Act;
  result(record: CallRecord, error: string | null, speaking: Speaking | null): Result;
}

const PLAIN: Greeting<Connection> = {
  protocol: "websocket",
  greet: (_, call, now) => call.succeed(null, now),
  result: (record, error, speaking) => new Connection(record, error, speaking),
};

export class WebsocketTarget {
  readonly #url: UrlPart;
  readonly #options: WebsocketTargetOptions;

  constructor(url: string, options: WebsocketTargetOptions = {}) {
    for (const name of Object.keys(options))
      if (!OPTION_NAMES.includes(name))
        throw new TypeError(`a target has no option "${name}"${didYouMean(name, OPTION_NAMES)}`);
    this.#url = endpointOf(url, routeOf(options));
    this.#options = options;
    // Validate now, so that an error shows the user's own line.
    const { origin } = new Handshake(this.#url, options);
    // Hosts of targets at the top of a file are resolved before the first call.
    if (workflowFolder() === null)
      prepareBeforeLoop({ prepare: () => origin.prepare().catch(() => undefined) });
  }

  /** Describes a connection; the result of its step can be used to send and receive. */
  connect(options: TargetConnectOptions = {}): WebsocketConnect<Connection> {
    return this.connectAs(PLAIN, options);
  }

  /** The same for a subprotocol. */
  connectAs<Result extends CallResult>(
    greeting: Greeting<Result>,
    options: TargetConnectOptions,
  ): WebsocketConnect<Result> {
    const headers = {
      ...headerValuesOf(this.#options.headers),
      ...headerValuesOf(options.headers),
    };
    return new WebsocketConnect(this.#url, { ...this.#options, ...options, headers }, greeting);
  }
}

/** Header names are case-insensitive. */
export function headerValuesOf(headers: HeaderValues | HeadersPart | undefined): HeaderValues {
  const entries = headers instanceof HeadersPart ? headers.entries : Object.entries(headers ?? {});
  return Object.fromEntries(entries.map(([name, value]) => [name.toLowerCase(), value]));
}

/** An opening handshake that a step performs. */
export class WebsocketConnect<Result extends CallResult> implements PreparedCall<Result> {
  declare readonly resultType?: Result;
  readonly protocol: string;
  readonly title: string;
  readonly #handshake: Handshake;
  readonly #options: TargetConnectOptions;
  readonly #greeting: Greeting<Result>;

  constructor(url: UrlPart, options: TargetConnectOptions, greeting: Greeting<Result>) {
    const { keep = "iteration" } = options;
    if (keep !== "user" && keep !== "iteration")
      throw new TypeError(`keep: "user" or "iteration", not ${JSON.stringify(keep)}`);
    this.#handshake = new Handshake(url, options);
    this.#options = options;
    this.#greeting = greeting;
    this.protocol = greeting.protocol;
    this.title = `connect ${new URL(this.#handshake.href).pathname}`;
  }

  async prepare({ settings }: CallEnvironment): Promise<void> {
    timeoutsFor(this.#options.timeout, settings);
    await this.#handshake.origin.prepare();
  }

  origin(): Origin {
    return this.#handshake.origin;
  }

  bind(session: Session, _keep: boolean, sink: CallSink): BoundCall {
    const call = { handshake: this.#handshake, options: this.#options, greeting: this.#greeting };
    return new BoundConnect(session, call, sink);
  }

  answered(answer: CannedAnswer): Result {
    const record = answeredRecord(answer.status ?? SWITCHING_PROTOCOLS);
    return this.#greeting.result(record, null, null);
  }

  shown(): { readonly request: string; readonly prepared: string } {
    return { request: this.#handshake.shown, prepared: "composed for each call" };
  }

  // biome-ignore lint/suspicious/noThenProperty: it throws the line to write instead.
  get then(): NotAwaitable {
    throw new DescriptionAwaited(this.title, "return ws.connect(…) in a step");
  }
}

interface ConnectCall<Result extends CallResult> {
  readonly handshake: Handshake;
  readonly options: TargetConnectOptions;
  readonly greeting: Greeting<Result>;
}

class BoundConnect<Result extends CallResult> implements BoundCall {
  readonly #user: WebsocketUser;
  readonly #handshake: Handshake;
  readonly #greet: Act;
  readonly #keeps: boolean;
  readonly #timeouts: CallTimeouts;
  readonly #sink: LaterSink;
  readonly #call: WebsocketCall;
  #socket: UserSocket | null = null;

  constructor(session: Session, connect: ConnectCall<Result>, sink: CallSink) {
    const { greeting, handshake, options } = connect;
    this.#user = session.state(websocketSessions);
    this.#handshake = handshake;
    this.#greet = greeting.greet;
    this.#keeps = options.keep === "user";
    this.#timeouts = timeoutsFor(options.timeout, session.settings);
    this.#sink = new LaterSink({
      callFinished: (record, response) => {
        const socket = this.#opened(record);
        const { error } = response as WebsocketResponse;
        const speaking = socket === null ? null : ([session, socket] as const);
        const result = greeting.result(record, error, speaking);
        sink.callFinished(result, result);
      },
    });
    this.#call = new WebsocketCall(this.#user, true, this.#sink);
  }

  /** Closes a connection whose handshake or greeting failed, because it cannot be used. */
  #opened({ errorKind }: CallRecord): UserSocket | null {
    if (errorKind === null) return this.#socket;
    this.#socket?.terminate();
    return null;
  }

  get sent(): number {
    return this.#call.measure.sent;
  }

  start(now: number): void {
    // A call that continues after its virtual user has stopped generates no more load.
    if (this.#user.closed) return;
    this.#socket = null;
    this.#sink.during(() => {
      this.#call.begin(now, this.#timeouts);
      const { origin } = this.#handshake;
      if (origin.address !== undefined) this.#open(now);
      else this.#call.lookUp(origin, now, (lookedUp) => this.#open(lookedUp));
    });
  }

  #open(now: number): void {
    let socket: UserSocket;
    try {
      socket = this.#keeps
        ? this.#user.open(this.#handshake)
        : this.#user.openForIteration(this.#handshake);
    } catch (error) {
      this.#call.fail("resources", errorText(error), clock());
      return;
    }
    this.#socket = socket;
    socket.whenOpen(this.#call, now, (openNow) => {
      this.#call.measure.status = SWITCHING_PROTOCOLS;
      this.#greet(socket, this.#call, openNow);
    });
  }
}
