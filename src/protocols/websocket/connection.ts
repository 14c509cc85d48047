/** Result of a step that connected: the measured handshake, and the connection to use. */

import type { Duration } from "../../core/base/duration.ts";
import { contentAsked } from "../failed-content.ts";
import { type CallRecord, CallResult, type CannedAnswer } from "../protocol.ts";
import { CLOSE_TIMEOUT_MS } from "./limits.ts";
import {
  encodeMessage,
  type Match,
  matcherOf,
  type OutgoingMessage,
  WebsocketMessage,
} from "./message.ts";
import { WebsocketResponse } from "./response.ts";
import {
  type Act,
  answeredRecord,
  checkListenName,
  MeasuredMessages,
  SocketCall,
  type Speaking,
  type TimestampOf,
} from "./socket-call.ts";

export interface SocketWaitOptions {
  /** Selects the response; the next message by default. */
  readonly match?: Match;
  /** Timeout of the wait. */
  readonly within?: Duration;
}

type Described<Body> = SocketCall<WebsocketResponse<Body>>;

export class Connection extends CallResult {
  override readonly protocol: string = "websocket";
  /** Null when connecting failed, or when its response was canned. */
  readonly #speaking: Speaking | null;

  constructor(record: CallRecord, error: string | null, speaking: Speaking | null) {
    super(record, error);
    this.#speaking = speaking;
  }

  get open(): boolean {
    return this.#speaking?.[1].open ?? false;
  }

  /** Describes a message and the response to wait for. `Body` is the type of `json()` of the response. */
  request<Body = unknown>(
    message: OutgoingMessage,
    { match, within }: SocketWaitOptions = {},
  ): Described<Body> {
    const payload = encodeMessage(message);
    const matches = matcherOf(match);
    const act: Act = (socket, call, now) => socket.exchange(call, payload, matches, now);
    return this.#call("request", within, act, payload);
  }

  /** Describes a message; the call finishes when its bytes were written to the network. */
  send(
    message: OutgoingMessage,
    { within }: Pick<SocketWaitOptions, "within"> = {},
  ): Described<never> {
    const payload = encodeMessage(message);
    const act: Act = (socket, call, now) => socket.deliver(call, payload, now);
    return this.#call("send", within, act, payload);
  }

  /** Describes the wait for a message: the first unread one, or the next to arrive. */
  receive<Body = unknown>({ match, within }: SocketWaitOptions = {}): Described<Body> {
    const matches = matcherOf(match);
    return this.#call("receive", within, (socket, call, now) => socket.await(call, matches, now));
  }

  /** Describes an orderly close; the call finishes when the server has confirmed it. */
  close(code = 1000, reason = ""): Described<never> {
    return this.#call("close", CLOSE_TIMEOUT_MS, (socket, call, now) =>
      socket.finish(call, code, reason, now),
    );
  }

  #call<Body>(
    verb: string,
    within: Duration | undefined,
    act: Act,
    payload: string | Buffer = "",
  ): Described<Body> {
    contentAsked(this);
    const { protocol } = this;
    const spoken = { protocol, title: `ws ${verb}`, within, payload, act, answered };
    return new SocketCall({ ...spoken, result: asItIs<Body> }, this.#speaking);
  }

  /**
   * Counts messages that no call waits for under this name. Their latency counts from the time that `at` returns;
   * without `at` they have none. A lost connection counts as a failure.
   */
  listen(name: string, at?: TimestampOf<WebsocketMessage>): void {
    contentAsked(this);
    checkListenName(name);
    if (this.#speaking === null) return;
    this.#speaking[1].listen(new MeasuredMessages(this.#speaking, { name, at }));
  }
}

function asItIs<Body>(response: WebsocketResponse): WebsocketResponse<Body> {
  return response as WebsocketResponse<Body>;
}

function answered<Body>({ body, json, status = 0 }: CannedAnswer): WebsocketResponse<Body> {
  const record = answeredRecord(status);
  const text = body ?? (json === undefined ? null : JSON.stringify(json));
  const message =
    text === null ? null : new WebsocketMessage(Buffer.from(text), false, record.endedAt);
  return new WebsocketResponse<Body>(record, null, message, null);
}
