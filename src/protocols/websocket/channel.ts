/**
 * The messages of a connection, or of one of several conversations on it. Each message is offered to the waiting calls
 * in order; the first call that it matches finishes. Other messages go to the listener, else to a bounded queue for the
 * next receiver.
 */

import { errorText } from "../../core/base/error-text.ts";
import type { Failure } from "../errors.ts";
import type { WebsocketCall } from "./call.ts";
import type { Matcher, WebsocketMessage } from "./message.ts";
import type { MessageQueue } from "./message-queue.ts";

/** Receives the messages that no call waits for. */
export interface Listener {
  received(message: WebsocketMessage): void;
  /** The connection closed, and not on request of its user. */
  lost(failure: Failure, now: number): void;
}

interface Waiting {
  readonly call: WebsocketCall;
  /** Null accepts any message. */
  readonly matches: Matcher | null;
  /** Waits for the response to a message that was sent. */
  readonly answer: boolean;
}

export class Channel {
  /** Null where nothing can be received, as with prepared exchanges. */
  readonly #queue: MessageQueue | null;
  readonly #waiting: Waiting[] = [];
  #listener: Listener | null = null;

  constructor(queue: MessageQueue | null) {
    this.#queue = queue;
  }

  /** Number of waiting calls. */
  get waiting(): number {
    return this.#waiting.length;
  }

  get dropped(): number {
    return this.#queue?.dropped ?? 0;
  }

  wait(waiting: Waiting): void {
    this.#waiting.push(waiting);
  }

  /** Delivers a message. While its connection is closing, the listener is skipped. */
  offer(message: WebsocketMessage, leaving: boolean): void {
    if (this.#waiting[0]?.matches === null) {
      this.#waiting.shift()?.call.succeed(message, message.arrivedAt);
      return;
    }
    for (const { call, matches } of [...this.#waiting]) {
      try {
        if (matches !== null && !matches(message)) continue;
      } catch (error) {
        if (this.forget(call) !== null)
          call.fail("exception", `match threw: ${errorText(error)}`, message.arrivedAt);
        continue;
      }
      if (this.forget(call) === null) continue;
      call.succeed(message, message.arrivedAt);
      return;
    }
    if (this.#listener === null) this.#queue?.add(message);
    else if (!leaving) this.#listener.received(message);
  }

  /** Finishes the call with an unread message; returns false when there is none. */
  takeQueued(call: WebsocketCall, matches: Matcher | null, now: number): boolean {
    try {
      const queued = this.#queue?.take(matches) ?? null;
      if (queued === null) return false;
      call.succeed(queued, now);
    } catch (error) {
      call.fail("exception", `match threw: ${errorText(error)}`, now);
    }
    return true;
  }

  /** Passes messages that no call waits for to this listener, including unread ones. */
  listen(listener: Listener): void {
    if (this.#listener !== null) throw new Error("this connection already has a listener");
    this.#listener = listener;
    for (let message = this.#queue?.take(null); message; message = this.#queue?.take(null))
      listener.received(message);
  }

  get listener(): Listener | null {
    return this.#listener;
  }

  /** Returns null when the call does not wait here. */
  forget(call: WebsocketCall): Waiting | null {
    const at = this.#waiting.findIndex((waiting) => waiting.call === call);
    return at < 0 ? null : (this.#waiting.splice(at, 1)[0] ?? null);
  }

  /** Ends the channel and returns the calls that waited. */
  end(): readonly WebsocketCall[] {
    return this.#waiting.splice(0).map(({ call }) => call);
  }
}
