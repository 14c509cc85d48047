/**
 * \n One WebSocket connection of one virtual user, and the calls on it.
 *
 *   connecting ──handshake──▶ open ──close, error, lost step──▶ closed
 *
 * A request without `match` takes the next message as its response. When it times out, its response may still arrive
 * and would be mistaken for the next one's: the connection has lost step and is closed.
 */

import type { Duration } from "../../core/base/duration.ts";
import { clock } from "../call.ts";
import type { ErrorKind, Failure } from "../errors.ts";
import { clearTimeout, setTimeout } from "../net/timers.ts";
import type { CallSettings } from "../protocol.ts";
import type { TraceContext } from "../trace-context.ts";
import { type CallBegan, type WaitedSocket, WebsocketCall } from "./call.ts";
import { Channel, type Listener } from "./channel.ts";
import { type Handshake, timeoutsFor } from "./handshake.ts";
import {
  CHANNELS_MAX,
  CLOSE_TIMEOUT_MS,
  SEND_BUFFER_BYTES_MAX,
  WAITING_CALLS_MAX,
} from "./limits.ts";
import {
  encodeMessage,
  type Matcher,
  matcherOf,
  type OutgoingMessage,
  type WaitOptions,
  WebsocketMessage,
} from "./message.ts";
import { MessageQueue } from "./message-queue.ts";
import type { WebsocketResponse } from "./response.ts";
import { type MessageReader, type StreamEnd, WebsocketStream } from "./stream.ts";

const NEVER: Matcher = () => false;
const NORMAL_CLOSURE = 1000;
const LEFT =
  'the connection was closed when its iteration ended: connect with keep: "user" to keep it';

/** The virtual user that owns the connection. */
export interface SocketOwner {
  readonly settings: CallSettings;
  /** Number of the virtual user. */
  readonly user: number;
  readonly closed: boolean;
  readonly trace: TraceContext | null;
  connectionClosed(socket: UserSocket): void;
}

/** Protocol of a connection that carries several conversations. */
export interface Subprotocol {
  /** Returns the channel of a message; null when it is already handled. */
  dispatch(message: WebsocketMessage): Channel | null;
  /** Kind of failure for a close code of the subprotocol; null for the general codes. */
  failureOfClose(code: number): ErrorKind | null;
}

export class UserSocket implements WaitedSocket, MessageReader {
  readonly handshake: Handshake;
  readonly #owner: SocketOwner;
  readonly #settings: CallSettings;
  /** Trace header of its handshake; "" for none. */
  readonly #traceparent: string;
  readonly #stream: WebsocketStream;
  #open = false;
  #closed = false;
  /** Calls that continue when the connection is open. */
  readonly #opening = new Map<WebsocketCall, (now: number) => void>();
  /** Receives all messages, unless a subprotocol dispatches them. */
  readonly main: Channel;
  /** Channels of its conversations. */
  readonly #channels = new Set<Channel>();
  #subprotocol: Subprotocol | null = null;
  #closing: WebsocketCall | null = null;
  /** Deadline of the close after its iteration is over. */
  #leaving: NodeJS.Timeout | null = null;
  #readBefore = 0;
  #writtenBefore = 0;

  constructor(handshake: Handshake, owner: SocketOwner, queue: MessageQueue | null) {
    this.handshake = handshake;
    this.#owner = owner;
    this.#settings = owner.settings;
    this.main = new Channel(queue);
    const { bodyBytesMax, insecure } = owner.settings;
    this.#traceparent = owner.trace?.next() ?? "";
    const options = { bodyBytesMax, insecure, user: owner.user, traceparent: this.#traceparent };
    this.#stream = new WebsocketStream(handshake, options, this, clock());
  }

  get open(): boolean {
    return this.#open && !this.#closed && this.#leaving === null;
  }

  get leaving(): boolean {
    return this.#leaving !== null;
  }

  get closed(): boolean {
    return this.#closed;
  }

  get protocol(): string {
    return this.#stream.protocol;
  }

  get dropped(): number {
    return this.main.dropped;
  }

  /** Like all methods below, reports the call to `began`, for callers that track what was sent. */
  request(
    message: OutgoingMessage,
    options: WaitOptions = {},
    began: CallBegan = ignore,
  ): Promise<WebsocketResponse> {
    const payload = encodeMessage(message);
    const matches = matcherOf(options.match);
    return this.#measured(options.timeout, began, (call, now) =>
      this.exchange(call, payload, matches, now),
    );
  }

  send(
    message: OutgoingMessage,
    options: Pick<WaitOptions, "timeout"> = {},
    began: CallBegan = ignore,
  ): Promise<WebsocketResponse> {
    const payload = encodeMessage(message);
    return this.#measured(options.timeout, began, (call, now) => this.deliver(call, payload, now));
  }

  /** Sends the payload as soon as the connection is open; the call finishes when its bytes are written. */
  deliver(call: WebsocketCall, payload: string | Buffer, now: number): void {
    call.awaited = "not sent";
    this.whenOpen(call, now, () => {
      this.main.wait({ call, matches: NEVER, answer: false });
      this.#write(payload, call, true);
    });
  }

  receive(options: WaitOptions = {}, began: CallBegan = ignore): Promise<WebsocketResponse> {
    const matches = matcherOf(options.match);
    return this.#measured(options.timeout, began, (call, now) => this.await(call, matches, now));
  }

  /** Finishes the call with the first unread message that matches, or the next to arrive. */
  await(
    call: WebsocketCall,
    matches: Matcher | null,
    now: number,
    channel: Channel = this.main,
  ): void {
    // Messages that arrived before the connection closed can still be received.
    if (channel.takeQueued(call, matches, now)) return;
    this.whenOpen(call, now, () => {
      call.awaited = "no message";
      channel.wait({ call, matches, answer: false });
    });
  }

  close(code = NORMAL_CLOSURE, reason = "", began: CallBegan = ignore): Promise<WebsocketResponse> {
    return this.#measured(CLOSE_TIMEOUT_MS, began, (call, now) =>
      this.finish(call, code, reason, now),
    );
  }

  /** Closes in order; the call finishes when the server has confirmed it. */
  finish(call: WebsocketCall, code: number, reason: string, now: number): void {
    this.whenOpen(call, now, () => {
      call.awaited = "no close";
      this.#closing = call;
      this.main.wait({ call, matches: NEVER, answer: false });
      this.#stream.close(code, reason);
    });
  }

  /** Passes messages that no call waits for to this listener, including unread ones. */
  listen(listener: Listener): void {
    this.main.listen(listener);
  }

  /** From now on the connection carries conversations, dispatched by this subprotocol. */
  speak(subprotocol: Subprotocol): void {
    this.#subprotocol = subprotocol;
  }

  /** Opens a channel for one more conversation; null when there are too many. */
  openChannel(): Channel | null {
    if (this.#channels.size >= CHANNELS_MAX) return null;
    const channel = new Channel(new MessageQueue());
    this.#channels.add(channel);
    return channel;
  }

  /** Closes the channel and drops its messages. */
  closeChannel(channel: Channel): void {
    this.#channels.delete(channel);
  }

  /** Sends a reply required by the subprotocol, outside of all calls. */
  say(payload: string): void {
    if (this.#stream.waitingBytes > SEND_BUFFER_BYTES_MAX)
      this.fail({ kind: "resources", text: "the send buffer of this connection is full" });
    else this.#stream.send(payload);
  }

  /** Closes in order at the end of its iteration, without a call that waits for it. */
  leave(): void {
    if (this.#closed || this.#leaving !== null) return;
    if (!this.#open) {
      this.terminate();
      return;
    }
    this.#leaving = setTimeout(() => this.terminate(), CLOSE_TIMEOUT_MS).unref();
    this.#stream.close(NORMAL_CLOSURE);
  }

  /** Sends the payload as soon as the connection is open; the call finishes with the matching message. */
  exchange(
    call: WebsocketCall,
    payload: string | Buffer,
    matches: Matcher | null,
    now: number,
  ): void {
    this.whenOpen(call, now, (openNow) => {
      call.awaited = "no answer";
      call.measure.awaitFirstByte(openNow);
      this.main.wait({ call, matches, answer: true });
      this.#write(payload, call, false);
    });
  }

  whenOpen(call: WebsocketCall, now: number, then: (now: number) => void): void {
    call.waitOn(this);
    if (this.#leaving !== null) call.fail("reset", LEFT, now);
    else if (this.#closed) call.fail("reset", "the connection is closed", now);
    else if (this.#opening.size + this.#waitingCalls >= WAITING_CALLS_MAX)
      call.fail("resources", `more than ${WAITING_CALLS_MAX} calls wait on one connection`, now);
    else if (this.#open) then(now);
    else {
      call.connecting(this.#stream.startedAt);
      call.measure.traceparent = this.#traceparent;
      this.#opening.set(call, then);
    }
  }

  abandon(call: WebsocketCall): void {
    const wasOpening = this.#opening.delete(call);
    const waiting = this.#forget(call);
    const lostStep = waiting?.answer === true && waiting.matches === null;
    if (lostStep || this.#closing === call) {
      this.fail({ kind: "reset", text: "closed, because a response arrived too late" });
    } else if (wasOpening && !this.#open && this.#opening.size === 0) this.terminate();
  }

  /** Closes at once; calls in flight are not reported. */
  terminate(): void {
    for (const call of this.#endCalls()) call.cancel();
    this.#end();
  }

  account(measure: { bytesIn: number; bytesOut: number }): void {
    const { bytesRead, bytesWritten } = this.#stream;
    measure.bytesIn = bytesRead - this.#readBefore;
    measure.bytesOut = bytesWritten - this.#writtenBefore;
    this.#readBefore = bytesRead;
    this.#writtenBefore = bytesWritten;
  }

  streamOpen(now: number): void {
    this.#open = true;
    const opening = [...this.#opening];
    this.#opening.clear();
    // The handshake is one request, even if several calls waited for it.
    const [first] = opening;
    if (first !== undefined) first[0].measure.sent++;
    const { connectMs, tlsMs } = this.#stream;
    for (const [call, then] of opening) {
      call.measure.opened(connectMs, tlsMs);
      then(now);
    }
  }

  streamMessage(data: Buffer, isBinary: boolean, now: number): void {
    const message = new WebsocketMessage(data, isBinary, now);
    const subprotocol = this.#subprotocol;
    const channel = subprotocol === null ? this.main : subprotocol.dispatch(message);
    channel?.offer(message, this.#leaving !== null);
  }

  streamEnded(end: StreamEnd, now: number): void {
    for (const { measure } of this.#opening.keys()) measure.status = end.status;
    const closing = end.code !== 0 ? this.#closing : null;
    if (closing !== null && this.#forget(closing) !== null) {
      this.#end();
      closing.succeed(null, now);
    }
    this.fail({ ...end, kind: this.#subprotocol?.failureOfClose(end.code) ?? end.kind });
  }

  #write(payload: string | Buffer, call: WebsocketCall, endsCall: boolean): void {
    if (this.#stream.waitingBytes > SEND_BUFFER_BYTES_MAX) {
      if (this.#forget(call) !== null)
        call.fail("resources", "the send buffer of this connection is full", clock());
      return;
    }
    call.measure.sent++;
    if (!endsCall) this.#stream.send(payload);
    else
      this.#stream.send(payload, () => {
        if (this.#forget(call) !== null) call.succeed(null, clock());
      });
  }

  get #waitingCalls(): number {
    let count = this.main.waiting;
    for (const channel of this.#channels) count += channel.waiting;
    return count;
  }

  #forget(call: WebsocketCall): ReturnType<Channel["forget"]> {
    let waiting = this.main.forget(call);
    for (const channel of this.#channels) waiting ??= channel.forget(call);
    return waiting;
  }

  #endCalls(): readonly WebsocketCall[] {
    const opening = [...this.#opening.keys()];
    this.#opening.clear();
    return [...opening, ...this.main.end(), ...[...this.#channels].flatMap((one) => one.end())];
  }

  /** Closes the connection and fails all calls on it. */
  fail(failure: Failure): void {
    const calls = this.#endCalls();
    const listening = this.#closed || this.#leaving !== null ? [] : [this.main, ...this.#channels];
    this.#end();
    const now = clock();
    for (const call of calls) call.fail(failure.kind, failure.text, now);
    for (const { listener } of listening) listener?.lost(failure, now);
  }

  #end(): void {
    if (this.#closed) return;
    this.#closed = true;
    if (this.#leaving !== null) clearTimeout(this.#leaving);
    this.#stream.destroy();
    this.#owner.connectionClosed(this);
  }

  #measured(
    timeout: Duration | undefined,
    began: CallBegan,
    start: (call: WebsocketCall, now: number) => void,
  ): Promise<WebsocketResponse> {
    const timeouts = timeoutsFor(timeout, this.#settings);
    return new Promise((resolve) => {
      const now = clock();
      const call = new WebsocketCall(this.#owner, true, {
        callFinished: (_record, result) => resolve(result as WebsocketResponse),
      });
      call.begin(now, timeouts);
      began(call);
      start(call, now);
    });
  }
}

function ignore(): void {}
