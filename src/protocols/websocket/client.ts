/**
 * WebSocket as users write it.
 *
 *   step("echo", websocket.exchange("wss://…", "hello"))         a prepared request and its answer
 *
 *   step("open", ({ ws }) => ws.connect("wss://…"))              the handshake, measured
 *   step("ask", ({ ws }) => ws.request({ id: 7 }, { match: (m) => m.json<Answer>().id === 7 }))
 *   step("news", ({ ws }) => ws.receive({ timeout: "5s" }))
 *
 * `ws.request`, `send`, `receive` and `close` speak on the connection that `ws.connect` opened last;
 * the response of `connect` holds that connection as `socket`, for those who need several.
 */

import type { Duration } from "../../core/base/duration.ts";
import { errorText } from "../errors.ts";
import type { UrlPart } from "../http/parts.ts";
import { clock } from "../net/clock.ts";
import type {
  BoundCall,
  CallEnvironment,
  CallSettings,
  CallSink,
  PreparedCall,
  Session,
} from "../protocol.ts";
import { WebsocketCall } from "./call.ts";
import {
  encodeMessage,
  type Match,
  type Matcher,
  matcherOf,
  type OutgoingMessage,
} from "./message.ts";
import type { WebsocketResponse } from "./response.ts";
import type { WaitOptions, WebsocketSocket } from "./socket.ts";
import { type ConnectOptions, timeoutOf, WebsocketTarget } from "./target.ts";
import { type WebsocketUser, websocketSessions } from "./user.ts";

export interface ExchangeOptions extends ConnectOptions {
  /** Which message is the answer; the next one by default. */
  readonly match?: Match;
}

/** One message and its answer on a connection that the virtual user keeps open. */
export class WebsocketExchange implements PreparedCall<WebsocketResponse> {
  declare readonly resultType?: WebsocketResponse;
  readonly protocol = "websocket";
  readonly target: WebsocketTarget;
  readonly payload: string | Buffer;
  readonly matches: Matcher | null;
  readonly #timeout: Duration | undefined;

  constructor(target: string | UrlPart, message: OutgoingMessage, options: ExchangeOptions = {}) {
    this.target = new WebsocketTarget(target, options);
    this.payload = encodeMessage(message);
    this.matches = matcherOf(options.match);
    this.#timeout = options.timeout;
  }

  timeoutMs(settings: CallSettings): number {
    return timeoutOf(this.#timeout, settings);
  }

  async prepare(environment: CallEnvironment): Promise<void> {
    this.timeoutMs(environment.settings);
    await this.target.origin.prepare(environment);
  }

  bind(session: Session, keep: boolean, sink: CallSink): BoundCall {
    return new BoundExchange(this, session.state(websocketSessions), keep, sink);
  }
}

class BoundExchange implements BoundCall {
  readonly #exchange: WebsocketExchange;
  readonly #user: WebsocketUser;
  readonly #call: WebsocketCall;
  readonly #timeoutMs: number;

  constructor(exchange: WebsocketExchange, user: WebsocketUser, keep: boolean, sink: CallSink) {
    this.#exchange = exchange;
    this.#user = user;
    this.#timeoutMs = exchange.timeoutMs(user.settings);
    this.#call = new WebsocketCall(user.settings.keepAlive ? sink : this.#closingSink(sink), keep);
  }

  start(now: number): void {
    const { matches, payload, target } = this.#exchange;
    this.#call.begin(now, this.#timeoutMs);
    this.#user.persistent(target).exchange(this.#call, payload, matches, now);
  }

  /** Connections are not to be kept: each call gets its own. */
  #closingSink(sink: CallSink): CallSink {
    return {
      callFinished: (record, result) => {
        this.#user.release(this.#exchange.target);
        sink.callFinished(record, result);
      },
    };
  }
}

/** One virtual user's client, for use inside functions. */
export class WebsocketClient {
  readonly #user: WebsocketUser;

  constructor(session: Session) {
    this.#user = session.state(websocketSessions);
  }

  /** Opens a connection; ends when the handshake is done. */
  connect = async (
    target: string | UrlPart,
    options: ConnectOptions = {},
  ): Promise<WebsocketResponse> => {
    const user = this.#user;
    const prepared = new WebsocketTarget(target, options);
    const timeoutMs = timeoutOf(options.timeout, user.settings);
    const startedAt = clock();
    let problem: string | null = null;
    if (prepared.origin.address === undefined) {
      await prepared.origin.prepare(user).catch((error: unknown) => {
        problem = errorText(error);
      });
    }
    const socket = problem === null ? user.open(prepared) : null;
    const response = await new Promise<WebsocketResponse>((resolve) => {
      const finished: CallSink["callFinished"] = (_record, result) =>
        resolve(result as WebsocketResponse);
      const call = new WebsocketCall({ callFinished: finished }, true);
      call.begin(startedAt, timeoutMs);
      if (socket === null) call.fail("dns", problem ?? "", clock());
      else
        socket.whenOpen(call, startedAt, (now) => {
          call.status = SWITCHING_PROTOCOLS;
          call.succeed(null, now);
        });
    });
    if (response.ok) user.latest = socket;
    return response;
  };

  /** Sends a message and waits for its answer. */
  request = (message: OutgoingMessage, options?: WaitOptions): Promise<WebsocketResponse> =>
    this.#latest("request").request(message, options);

  send = (
    message: OutgoingMessage,
    options?: Pick<WaitOptions, "timeout">,
  ): Promise<WebsocketResponse> => this.#latest("send").send(message, options);

  /** Waits for a message: one that came already and was not taken, or the next. */
  receive = (options?: WaitOptions): Promise<WebsocketResponse> =>
    this.#latest("receive").receive(options);

  close = (code?: number, reason?: string): Promise<WebsocketResponse> =>
    this.#latest("close").close(code, reason);

  #latest(verb: string): WebsocketSocket {
    const socket = this.#user.latest;
    if (socket === null) throw new Error(`ws.${verb}: call ws.connect(url) first`);
    return socket;
  }
}

const SWITCHING_PROTOCOLS = 101;

export function createWebsocketClient(session: Session): WebsocketClient {
  return new WebsocketClient(session);
}

/** Prepared calls: `step("echo", websocket.exchange("wss://…", "hello"))`. */
export const websocket = {
  exchange: (target: string | UrlPart, message: OutgoingMessage, options?: ExchangeOptions) =>
    new WebsocketExchange(target, message, options),
};
