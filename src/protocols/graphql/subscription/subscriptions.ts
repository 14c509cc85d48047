/**
 * \n The subscriptions on one WebSocket, following graphql-transport-ws: each has its own id and channel. Messages for
 * an id that has ended are dropped, because the server may have sent them before it learned of the end.
 *
 *   connection_init ──▶ connection_ack      subscribe ──▶ next … error | complete
 */

import { errorText } from "../../../core/base/error-text.ts";
import type { ErrorKind } from "../../errors.ts";
import type { WebsocketCall } from "../../websocket/call.ts";
import type { Channel } from "../../websocket/channel.ts";
import { CHANNELS_MAX } from "../../websocket/limits.ts";
import type { WebsocketMessage } from "../../websocket/message.ts";
import type { Subprotocol, UserSocket } from "../../websocket/socket.ts";
import {
  completeMessage,
  initMessage,
  PONG,
  readMessage,
  type ServerMessage,
  SUBPROTOCOL,
  subscribeMessage,
} from "./messages.ts";

/** A subscription that was requested from the server. */
export interface LiveSubscription {
  readonly id: string;
  readonly channel: Channel;
  /** No more messages will arrive: the server completed or rejected it, or its user unsubscribed. */
  done: boolean;
}

/** Close codes of the subprotocol that are not lost connections. */
const CLOSE_KINDS: Readonly<Record<number, ErrorKind>> = {
  4400: "protocol",
  4401: "application",
  4403: "application",
  4406: "protocol",
  4408: "timeout",
  4409: "protocol",
  4429: "protocol",
};

export class Subscriptions implements Subprotocol {
  static readonly #known = new WeakMap<UserSocket, Subscriptions>();
  readonly #socket: UserSocket;
  readonly #live = new Map<string, LiveSubscription>();
  #acknowledged = false;
  #lastId = 0;

  private constructor(socket: UserSocket) {
    this.#socket = socket;
    socket.speak(this);
  }

  static of(socket: UserSocket): Subscriptions {
    let known = Subscriptions.#known.get(socket);
    if (known === undefined) {
      known = new Subscriptions(socket);
      Subscriptions.#known.set(socket, known);
    }
    return known;
  }

  /** The call finishes when the server has acknowledged the connection. */
  init(call: WebsocketCall, payload: object | undefined, now: number): void {
    this.#socket.exchange(call, initMessage(payload), null, now);
  }

  /** The call finishes when the request was written to the network; the server does not confirm it. */
  subscribe(call: WebsocketCall, request: object, now: number): LiveSubscription | null {
    const channel = this.#socket.openChannel();
    if (channel === null) {
      call.fail("resources", `more than ${CHANNELS_MAX} subscriptions on one connection`, now);
      return null;
    }
    const live = { id: `${++this.#lastId}`, channel, done: false };
    this.#live.set(live.id, live);
    this.#socket.deliver(call, subscribeMessage(live.id, request), now);
    return live;
  }

  /** The call finishes with the next message, or without one when the subscription has ended. */
  next(call: WebsocketCall, live: LiveSubscription, now: number): void {
    if (live.channel.takeQueued(call, null, now)) return;
    if (live.done) call.succeed(null, now);
    else this.#socket.await(call, null, now, live.channel);
  }

  unsubscribe(call: WebsocketCall, live: LiveSubscription, now: number): void {
    if (live.done) {
      call.succeed(null, now);
      return;
    }
    this.#ended(live);
    for (const waiting of live.channel.end()) waiting.succeed(null, now);
    this.#socket.deliver(call, completeMessage(live.id), now);
  }

  dispatch(message: WebsocketMessage): Channel | null {
    let read: ServerMessage;
    try {
      read = readMessage(message.json());
    } catch (error) {
      this.#socket.fail({ kind: "protocol", text: `no ${SUBPROTOCOL}: ${errorText(error)}` });
      return null;
    }
    switch (read.type) {
      case "ping":
        this.#socket.say(PONG);
        return null;
      case "pong":
        return null;
      case "connection_ack":
        return this.#acknowledge();
      default:
        return this.#channelOf(read, message);
    }
  }

  #acknowledge(): Channel | null {
    if (!this.#acknowledged) {
      this.#acknowledged = true;
      return this.#socket.main;
    }
    this.#socket.fail({ kind: "protocol", text: "the connection was acknowledged twice" });
    return null;
  }

  #channelOf(read: { readonly type: string; readonly id: string }, message: WebsocketMessage) {
    const live = this.#live.get(read.id);
    if (live === undefined) return null;
    const { channel } = live;
    if (read.type === "next") return channel;
    this.#ended(live);
    // Notify all waiting calls of the end, the last of them through its socket.
    while (channel.waiting > 1) channel.offer(message, false);
    const listensOnly = channel.waiting === 0 && channel.listener !== null;
    return listensOnly && read.type === "complete" ? null : channel;
  }

  #ended(live: LiveSubscription): void {
    live.done = true;
    this.#live.delete(live.id);
    this.#socket.closeChannel(live.channel);
  }

  failureOfClose(code: number): ErrorKind | null {
    return CLOSE_KINDS[code] ?? null;
  }
}
