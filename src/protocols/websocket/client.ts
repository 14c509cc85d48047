/**
 * \n WebSocket, as users write it.
 *
 *   step("echo", websocket.exchange("wss://…", "hello"))         a prepared request and its response
 *   step("open", ws.target("wss://…").connect())                 in a flow: see target.ts
 *
 *   step("open", ({ ws }) => ws.connect("wss://…"))              the handshake, measured
 *   step("ask", ({ ws }) => ws.request({ id: 7 }, { match: (m) => m.json<Answer>().id === 7 }))
 *   step("news", ({ ws }) => ws.receive({ timeout: "5s" }))
 *
 * `ws.request`, `send`, `receive` and `close` use the connection that `ws.connect` opened last; the response of
 * `connect` has that connection as `socket`, for code that needs several.
 */

import type { Duration } from "../../core/base/duration.ts";
import { errorText } from "../../core/base/error-text.ts";
import { type CallTimeouts, clock } from "../call.ts";
import { DescriptionAwaited, type NotAwaitable } from "../description.ts";
import type { UrlPart } from "../http/parts.ts";
import type { Origin } from "../net/origin.ts";
import { setImmediate } from "../net/timers.ts";
import type {
  BoundCall,
  CallEnvironment,
  CallSettings,
  CallSink,
  ClientCall,
  PreparedCall,
  Session,
} from "../protocol.ts";
import { type CallBegan, WebsocketCall } from "./call.ts";
import { type ConnectOptions, Handshake, timeoutsFor } from "./handshake.ts";
import {
  encodeMessage,
  type Match,
  type Matcher,
  matcherOf,
  type OutgoingMessage,
  type WaitOptions,
} from "./message.ts";
import type { WebsocketResponse } from "./response.ts";
import type { UserSocket } from "./socket.ts";
import { SWITCHING_PROTOCOLS, WebsocketTarget, type WebsocketTargetOptions } from "./target.ts";
import { type WebsocketUser, websocketSessions } from "./user.ts";

export interface ExchangeOptions extends ConnectOptions {
  /** Selects the response; the next message by default. */
  readonly match?: Match;
}

/** One message and its response on a connection that the virtual user keeps open. */
export class WebsocketExchange implements PreparedCall<WebsocketResponse> {
  declare readonly resultType?: WebsocketResponse;
  readonly protocol = "websocket";
  readonly handshake: Handshake;
  readonly payload: string | Buffer;
  readonly matches: Matcher | null;
  readonly #timeout: Duration | undefined;

  constructor(target: string | UrlPart, message: OutgoingMessage, options: ExchangeOptions = {}) {
    this.handshake = new Handshake(target, options);
    this.payload = encodeMessage(message);
    this.matches = matcherOf(options.match);
    this.#timeout = options.timeout;
  }

  timeouts(settings: CallSettings): CallTimeouts {
    return timeoutsFor(this.#timeout, settings);
  }

  async prepare({ settings }: CallEnvironment): Promise<void> {
    this.timeouts(settings);
    await this.handshake.origin.prepare();
  }

  origin(): Origin {
    return this.handshake.origin;
  }

  bind(session: Session, keep: boolean, sink: CallSink): BoundCall {
    return new BoundExchange(this, session.state(websocketSessions), keep, sink);
  }

  // biome-ignore lint/suspicious/noThenProperty: it throws the line to write instead.
  get then(): NotAwaitable {
    throw new DescriptionAwaited("a WebSocket exchange", '.step("name", exchange)');
  }
}

class BoundExchange implements BoundCall {
  readonly #exchange: WebsocketExchange;
  readonly #user: WebsocketUser;
  readonly #call: WebsocketCall;
  readonly #timeouts: CallTimeouts;

  constructor(exchange: WebsocketExchange, user: WebsocketUser, keep: boolean, sink: CallSink) {
    this.#exchange = exchange;
    this.#user = user;
    this.#timeouts = exchange.timeouts(user.settings);
    this.#call = new WebsocketCall(
      user,
      keep,
      user.settings.keepAlive ? sink : this.#closingSink(sink),
    );
  }

  start(now: number): void {
    const { handshake, matches, payload } = this.#exchange;
    // A call that continues after its virtual user has stopped generates no more load.
    if (this.#user.closed) return;
    this.#call.begin(now, this.#timeouts);
    let socket: UserSocket;
    try {
      socket = this.#user.persistent(handshake);
    } catch (error) {
      // In a separate turn, so that a loop of calls that fail at once does not block the event loop.
      setImmediate(() => this.#call.fail("resources", errorText(error), clock()));
      return;
    }
    socket.exchange(this.#call, payload, matches, now);
  }

  get sent(): number {
    return this.#call.measure.sent;
  }

  /** Closes the connection after the call, for workflows without keep-alive. */
  #closingSink(sink: CallSink): CallSink {
    return {
      callFinished: (record, result) => {
        this.#user.release(this.#exchange.handshake);
        sink.callFinished(record, result);
      },
    };
  }
}

/** Client of one virtual user, for use inside functions. */
export class WebsocketClient {
  readonly #user: WebsocketUser;
  readonly #session: Session;

  constructor(session: Session) {
    this.#session = session;
    this.#user = session.state(websocketSessions);
  }

  /** Opens a connection; finishes when the handshake is done. */
  connect = async (
    target: string | UrlPart,
    options: ConnectOptions = {},
  ): Promise<WebsocketResponse> => {
    const prepared = new Handshake(target, options);
    const timeouts = timeoutsFor(options.timeout, this.#user.settings);
    return this.#reported(
      "connect",
      (began) =>
        new Promise<WebsocketResponse>((resolve, reject) => {
          const call = new WebsocketCall(this.#user, true, {
            callFinished: (_record, result) => resolve(result as WebsocketResponse),
          });
          const open = (now: number): void => {
            try {
              this.#open(prepared, call, now);
            } catch (error) {
              call.cancel();
              reject(error);
            }
          };
          const now = clock();
          call.begin(now, timeouts);
          began(call);
          if (prepared.origin.address !== undefined) open(now);
          else call.lookUp(prepared.origin, now, open);
        }),
    );
  };

  /** Reports the call to the session, because its caller may not return it, or be cut off meanwhile. */
  #reported(
    verb: string,
    make: (began: CallBegan) => Promise<WebsocketResponse>,
  ): Promise<WebsocketResponse> {
    let measure: { readonly sent: number } | null = null;
    const clientCall: ClientCall = {
      ...{ protocol: "websocket", verb: "ws", path: verb, title: `ws ${verb}` },
      startedAt: clock(),
      get sent() {
        return measure?.sent ?? 0;
      },
    };
    const made = make((call) => {
      measure = call.measure;
      this.#session.calling?.(clientCall);
    });
    return made.then((response) => {
      this.#session.called?.(clientCall, response);
      return response;
    });
  }

  #open(handshake: Handshake, call: WebsocketCall, now: number): void {
    const user = this.#user;
    const socket = user.open(handshake);
    socket.whenOpen(call, now, (openNow) => {
      user.latest = socket;
      call.measure.status = SWITCHING_PROTOCOLS;
      call.succeed(null, openNow);
    });
  }

  /** Sends a message and waits for its response. */
  request = (message: OutgoingMessage, options?: WaitOptions): Promise<WebsocketResponse> =>
    this.#reported("request", (began) => this.#latest("request").request(message, options, began));

  send = (
    message: OutgoingMessage,
    options?: Pick<WaitOptions, "timeout">,
  ): Promise<WebsocketResponse> =>
    this.#reported("send", (began) => this.#latest("send").send(message, options, began));

  /** Waits for a message: the first unread one, or the next to arrive. */
  receive = (options?: WaitOptions): Promise<WebsocketResponse> =>
    this.#reported("receive", (began) => this.#latest("receive").receive(options, began));

  close = (code?: number, reason?: string): Promise<WebsocketResponse> =>
    this.#reported("close", (began) => this.#latest("close").close(code, reason, began));

  #latest(verb: string): UserSocket {
    const socket = this.#user.latest;
    if (socket === null) throw new Error(`ws.${verb}: call ws.connect(url) first`);
    return socket;
  }
}

/** Prepared calls: `step("echo", websocket.exchange("wss://…", "hello"))`. */
export const websocket = {
  exchange: (target: string | UrlPart, message: OutgoingMessage, options?: ExchangeOptions) =>
    new WebsocketExchange(target, message, options),
  /** Common options of all connections to one server, for flows. */
  target: (url: string, options?: WebsocketTargetOptions) => new WebsocketTarget(url, options),
};

/** Alias: the name of the client in functions. */
export const ws = websocket;
