/** One measured call on the way: it waits for the handshake, for a message, or for bytes to leave. */

import type { ErrorKind } from "../errors.ts";
import { type Sweepable, sweeper } from "../net/sweeper.ts";
import type { CallRecord, CallSink } from "../protocol.ts";
import type { WebsocketMessage } from "./message.ts";
import { WebsocketResponse } from "./response.ts";
import type { WebsocketSocket } from "./socket.ts";

export class WebsocketCall implements CallRecord, Sweepable {
  errorKind: ErrorKind | null = null;
  status = 0;
  startedAt = 0;
  firstByteAt = 0;
  endedAt = 0;
  connectMs = -1;
  tlsMs = -1;
  bytesIn = 0;
  bytesOut = 0;
  sweepSlot = -1;
  deadline = 0;
  /** What a time-out would mean: "no connection", "no answer". */
  awaited = "no answer";
  readonly #sink: CallSink;
  readonly #keep: boolean;
  #timeoutMs = 0;
  #socket: WebsocketSocket | null = null;

  constructor(sink: CallSink, keep: boolean) {
    this.#sink = sink;
    this.#keep = keep;
  }

  begin(now: number, timeoutMs: number): void {
    this.errorKind = null;
    this.status = 0;
    this.startedAt = now;
    this.firstByteAt = 0;
    this.connectMs = -1;
    this.tlsMs = -1;
    this.bytesIn = 0;
    this.bytesOut = 0;
    this.#timeoutMs = timeoutMs;
    this.deadline = now + timeoutMs;
    sweeper.add(this);
  }

  /** Only while the connection is not open yet: fail earlier than the whole call would. */
  connecting(deadline: number): void {
    this.awaited = "no connection";
    this.deadline = Math.min(this.deadline, deadline);
  }

  opened(connectMs: number, tlsMs: number): void {
    this.connectMs = connectMs;
    this.tlsMs = Math.max(tlsMs, -1);
    this.deadline = this.startedAt + this.#timeoutMs;
  }

  /** From now on it waits on this connection. */
  waitOn(socket: WebsocketSocket): void {
    this.#socket = socket;
  }

  succeed(message: WebsocketMessage | null, now: number): void {
    this.#end(null, null, message, now);
  }

  fail(kind: ErrorKind, error: string, now: number): void {
    this.#end(kind, error, null, now);
  }

  timedOut(now: number): void {
    const waited = Math.round(now - this.startedAt);
    this.#socket?.abandon(this);
    this.fail("timeout", `${this.awaited} after ${waited} ms`, now);
  }

  /** Ends it without a word: the virtual user is gone. */
  cancel(): void {
    sweeper.remove(this);
    this.#socket = null;
  }

  #end(
    kind: ErrorKind | null,
    error: string | null,
    message: WebsocketMessage | null,
    now: number,
  ): void {
    sweeper.remove(this);
    const socket = this.#socket;
    this.#socket = null;
    socket?.account(this);
    this.errorKind = kind;
    this.endedAt = now;
    if (this.firstByteAt === 0) this.firstByteAt = now;
    const usable = socket?.open === true ? socket : null;
    const result = this.#keep ? new WebsocketResponse(this, error, message, usable) : undefined;
    this.#sink.callFinished(this, result);
  }
}
