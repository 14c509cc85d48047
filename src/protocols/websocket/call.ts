/** One WebSocket call in flight: it waits for the handshake, for a message, or for bytes to be written. */

import { type CallOwner, type CallTimeouts, MeasuredCall } from "../call.ts";
import type { ErrorKind } from "../errors.ts";
import type { Origin } from "../net/origin.ts";
import { type Deferred, turn } from "../net/turn.ts";
import type { CallSink } from "../protocol.ts";
import type { WebsocketMessage } from "./message.ts";
import { WebsocketResponse, type WebsocketSocket } from "./response.ts";

/** The connection that a call waits on. */
export interface WaitedSocket extends WebsocketSocket {
  /** The call was abandoned. */
  abandon(call: WebsocketCall): void;
  /** Charges the call all bytes since the last call finished, so that sums over calls are exact. */
  account(measure: { bytesIn: number; bytesOut: number }): void;
}

/** Called when a call has begun. */
export type CallBegan = (call: WebsocketCall) => void;

export class WebsocketCall implements CallOwner, Deferred {
  readonly measure: MeasuredCall;
  /** Missing part to name on a timeout: "no connection", "no answer". */
  awaited = "no answer";
  readonly #user: { readonly closed: boolean };
  readonly #keep: boolean;
  #socket: WaitedSocket | null = null;
  #message: WebsocketMessage | null = null;
  /** Succeeded; reporting it waits for its phase of the turn. */
  #hasSucceeded = false;

  constructor(user: { readonly closed: boolean }, keep: boolean, sink: CallSink) {
    this.measure = new MeasuredCall(this, sink);
    this.#user = user;
    this.#keep = keep;
  }

  get closed(): boolean {
    return this.#user.closed;
  }

  begin(now: number, timeouts: CallTimeouts): void {
    this.#socket = null;
    this.#message = null;
    this.#hasSucceeded = false;
    this.measure.begin(now, timeouts);
  }

  /** Waits on this connection from now on. */
  waitOn(socket: WaitedSocket): void {
    this.#socket = socket;
  }

  /** Applies the connect timeout to a connection that has been opening since `since`. */
  connecting(since: number): void {
    this.awaited = "no connection";
    this.measure.connecting(since);
  }

  /** Calls `then` once the host is resolved. */
  lookUp(origin: Origin, now: number, then: (now: number) => void): void {
    this.awaited = "no connection";
    this.measure.lookUp(origin, now, then);
  }

  succeed(message: WebsocketMessage | null, now: number): void {
    this.#message = message;
    if (!turn.reading) {
      this.measure.succeed(now);
      return;
    }
    this.#hasSucceeded = true;
    this.measure.endedAt = now;
    turn.finishLater(this);
  }

  resume(): void {
    if (!this.#hasSucceeded) return;
    this.#hasSucceeded = false;
    this.measure.succeed(this.measure.endedAt);
  }

  fail(kind: ErrorKind, error: string, now: number): void {
    if (!this.#hasSucceeded) this.measure.fail(kind, error, now);
  }

  abandon(): string {
    this.#socket?.abandon(this);
    return this.awaited;
  }

  /** Ends the call without notifying the sink, because the virtual user is closed. */
  cancel(): void {
    this.measure.cancel();
    this.#socket = null;
  }

  finish(): WebsocketResponse | undefined {
    const socket = this.#socket;
    this.#socket = null;
    socket?.account(this.measure);
    if (!this.#keep) return undefined;
    const usable = socket?.open === true ? socket : null;
    return new WebsocketResponse(this.measure, this.measure.error, this.#message, usable);
  }
}
