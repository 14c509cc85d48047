/**
 * One WebSocket connection of one virtual user, on the ws package.
 *
 *   connecting ──handshake──▶ open ──close, error, lost step──▶ closed
 *
 * Each message that comes is offered to the waiting calls in their order; the first one that it
 * matches ends. What nobody waits for is queued for `receive`, within bounds.
 *
 * A request without `match` takes the next message as its answer. When it times out, its answer may
 * still come and would be taken for the next one's: the connection has lost step and is closed.
 */

import type { ClientRequest, IncomingMessage } from "node:http";
import type net from "node:net";
import WebSocket from "ws";
import type { Duration } from "../../core/base/duration.ts";
import { errorText } from "../../core/base/error-text.ts";
import { clock } from "../call.ts";
import type { Failure } from "../errors.ts";
import { openSocket, secure } from "../net/open-socket.ts";
import { openTunnel } from "../net/tunnel.ts";
import type { CallSettings } from "../protocol.ts";
import { TRACEPARENT, type TraceContext } from "../trace-context.ts";
import { type CallBegan, type WaitedSocket, WebsocketCall } from "./call.ts";
import { failureOfClose, failureOfError, failureOfStatus } from "./failure.ts";
import { type Handshake, timeoutsFor } from "./handshake.ts";
import { CLOSE_TIMEOUT_MS, SEND_BUFFER_BYTES_MAX, WAITING_CALLS_MAX } from "./limits.ts";
import {
  encodeMessage,
  type Matcher,
  matcherOf,
  type OutgoingMessage,
  type WaitOptions,
  WebsocketMessage,
} from "./message.ts";
import type { MessageQueue } from "./message-queue.ts";
import type { WebsocketResponse } from "./response.ts";

interface Waiting {
  readonly call: WebsocketCall;
  readonly matches: Matcher | null;
  /** It waits for the answer to something that was sent. */
  readonly answer: boolean;
}

const NEVER: Matcher = () => false;
const NORMAL_CLOSURE = 1000;
const LEFT =
  'the connection was closed when its iteration ended: connect with keep: "user" to keep it';

/** How Node hears of a socket that takes its time. */
type SocketCallback = (error: Error | null, socket?: net.Socket) => void;

/** Hears the messages that no call waits for. */
export interface Listener {
  heard(message: WebsocketMessage): void;
  /** The connection ended, and not because its user wanted that. */
  lost(failure: Failure, now: number): void;
}

/** The virtual user it belongs to. */
export interface SocketOwner {
  readonly settings: CallSettings;
  /** Number of the virtual user. */
  readonly user: number;
  readonly closed: boolean;
  readonly trace: TraceContext | null;
  gone(socket: UserSocket): void;
}

export class UserSocket implements WaitedSocket {
  readonly handshake: Handshake;
  readonly #owner: SocketOwner;
  readonly #settings: CallSettings;
  /** Null where nobody can receive, as with prepared exchanges. */
  readonly #queue: MessageQueue | null;
  readonly #startedAt = clock();
  /** Of its handshake; "" for none. */
  readonly #traceparent: string;
  readonly #ws: WebSocket;
  #raw: net.Socket | null = null;
  #tcpConnectedAt = 0;
  #secureAt = 0;
  #open = false;
  #closed = false;
  /** Calls that go on when the connection is open. */
  readonly #opening = new Map<WebsocketCall, (now: number) => void>();
  readonly #waiting: Waiting[] = [];
  #closing: WebsocketCall | null = null;
  #listener: Listener | null = null;
  /** Its iteration is over, and it closes: how long it may take for that. */
  #leaving: NodeJS.Timeout | null = null;
  #readBefore = 0;
  #writtenBefore = 0;

  constructor(handshake: Handshake, owner: SocketOwner, queue: MessageQueue | null) {
    this.handshake = handshake;
    this.#owner = owner;
    this.#settings = owner.settings;
    this.#queue = queue;
    this.#traceparent = owner.trace?.next() ?? "";
    this.#ws = this.#connect();
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
    return this.#ws.protocol;
  }

  get dropped(): number {
    return this.#queue?.dropped ?? 0;
  }

  /** Like all below, it tells `began` of the call, for whoever wants to know what was sent of it. */
  request(
    message: OutgoingMessage,
    options: WaitOptions = {},
    began: CallBegan = nobody,
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
    began: CallBegan = nobody,
  ): Promise<WebsocketResponse> {
    const payload = encodeMessage(message);
    return this.#measured(options.timeout, began, (call, now) => this.deliver(call, payload, now));
  }

  /** Sends the payload as soon as the connection is open; the call ends when its bytes have left. */
  deliver(call: WebsocketCall, payload: string | Buffer, now: number): void {
    call.awaited = "not sent";
    this.whenOpen(call, now, () => {
      this.#waiting.push({ call, matches: NEVER, answer: false });
      this.#write(payload, call, true);
    });
  }

  receive(options: WaitOptions = {}, began: CallBegan = nobody): Promise<WebsocketResponse> {
    const matches = matcherOf(options.match);
    return this.#measured(options.timeout, began, (call, now) => this.await(call, matches, now));
  }

  /** The call ends with a message that came already and was not taken, or the next that matches. */
  await(call: WebsocketCall, matches: Matcher | null, now: number): void {
    // What came before the connection closed can still be received.
    if (this.#takeQueued(call, matches, now)) return;
    this.whenOpen(call, now, () => {
      call.awaited = "no message";
      this.#waiting.push({ call, matches, answer: false });
    });
  }

  /** True when the call has ended. */
  #takeQueued(call: WebsocketCall, matches: Matcher | null, now: number): boolean {
    try {
      const queued = this.#queue?.take(matches) ?? null;
      if (queued === null) return false;
      call.succeed(queued, now);
    } catch (error) {
      call.fail("exception", `match threw: ${errorText(error)}`, now);
    }
    return true;
  }

  close(code = NORMAL_CLOSURE, reason = "", began: CallBegan = nobody): Promise<WebsocketResponse> {
    return this.#measured(CLOSE_TIMEOUT_MS, began, (call, now) =>
      this.finish(call, code, reason, now),
    );
  }

  /** Closes in order; the call ends when the server has agreed. */
  finish(call: WebsocketCall, code: number, reason: string, now: number): void {
    this.whenOpen(call, now, () => {
      call.awaited = "no close";
      this.#closing = call;
      this.#waiting.push({ call, matches: NEVER, answer: false });
      this.#ws.close(code, reason);
    });
  }

  /** From now on, and for what came already, messages that no call waits for are this one's. */
  listen(listener: Listener): void {
    if (this.#listener !== null) throw new Error("this connection is listened to already");
    this.#listener = listener;
    for (let message = this.#queue?.take(null); message; message = this.#queue?.take(null))
      listener.heard(message);
  }

  /** Its iteration is over: closes in order, which nobody waits for. */
  leave(): void {
    if (this.#closed || this.#leaving !== null) return;
    if (!this.#open) {
      this.terminate();
      return;
    }
    this.#leaving = setTimeout(() => this.terminate(), CLOSE_TIMEOUT_MS).unref();
    this.#ws.close(NORMAL_CLOSURE);
  }

  /** Sends the payload as soon as the connection is open; the call ends with the matching message. */
  exchange(
    call: WebsocketCall,
    payload: string | Buffer,
    matches: Matcher | null,
    now: number,
  ): void {
    this.whenOpen(call, now, (openNow) => {
      call.awaited = "no answer";
      call.measure.awaitFirstByte(openNow);
      this.#waiting.push({ call, matches, answer: true });
      this.#write(payload, call, false);
    });
  }

  whenOpen(call: WebsocketCall, now: number, then: (now: number) => void): void {
    call.waitOn(this);
    if (this.#leaving !== null) call.fail("reset", LEFT, now);
    else if (this.#closed) call.fail("reset", "the connection is closed", now);
    else if (this.#opening.size + this.#waiting.length >= WAITING_CALLS_MAX)
      call.fail("resources", `more than ${WAITING_CALLS_MAX} calls wait on one connection`, now);
    else if (this.#open) then(now);
    else {
      call.connecting(this.#startedAt);
      call.measure.traceparent = this.#traceparent;
      this.#opening.set(call, then);
    }
  }

  abandon(call: WebsocketCall): void {
    const wasOpening = this.#opening.delete(call);
    const waiting = this.#forget(call);
    const lostStep = waiting?.answer === true && waiting.matches === null;
    if (lostStep || this.#closing === call) {
      this.#fail({ kind: "reset", text: "closed, because an answer came too late" });
    } else if (wasOpening && !this.#open && this.#opening.size === 0) this.terminate();
  }

  /** Closes at once; what is under way ends without a word. */
  terminate(): void {
    for (const call of [...this.#opening.keys(), ...this.#waiting.map(({ call }) => call)]) {
      call.cancel();
    }
    this.#opening.clear();
    this.#waiting.length = 0;
    this.#end();
  }

  account(measure: { bytesIn: number; bytesOut: number }): void {
    const raw = this.#raw;
    if (raw === null) return;
    measure.bytesIn = raw.bytesRead - this.#readBefore;
    measure.bytesOut = raw.bytesWritten - this.#writtenBefore;
    this.#readBefore = raw.bytesRead;
    this.#writtenBefore = raw.bytesWritten;
  }

  #connect(): WebSocket {
    const { compress, headers, href, protocols } = this.handshake;
    const traced = this.#traceparent === "" ? {} : { [TRACEPARENT]: this.#traceparent };
    const ws = new WebSocket(href, [...protocols], {
      // What the author wrote comes last, and wins.
      headers: { ...traced, ...headers },
      perMessageDeflate: compress,
      maxPayload: this.#settings.bodyBytesMax,
      createConnection: ((_: unknown, done: SocketCallback) =>
        this.#connectRaw(done)) as unknown as typeof net.createConnection,
    });
    ws.on("open", () => this.#onOpen());
    ws.on("message", (data: Buffer, isBinary) => this.#onMessage(data, isBinary));
    ws.on("unexpected-response", (request, response) => this.#onRefusal(request, response));
    ws.on("error", (error) => this.#fail(failureOfError(error, this.#inTls)));
    ws.on("close", (code, reason) => this.#onClose(code, reason.toString()));
    return ws;
  }

  /** A socket of our own: to the address looked up before, and with connecting and TLS timed apart. */
  #connectRaw(done: SocketCallback): net.Socket | undefined {
    const { origin } = this.handshake;
    const options = { insecure: this.#settings.insecure, user: this.#owner.user };
    if (origin.proxy === null) {
      const raw = openSocket(origin, options);
      raw.once("connect", () => {
        this.#tcpConnectedAt = clock();
      });
      return this.#timed(raw);
    }
    this.#raw = openTunnel(origin, {
      tunnelOpen: (tunnel) => {
        this.#tcpConnectedAt = clock();
        done(null, this.#timed(secure(tunnel, origin, options)));
      },
      tunnelFailed: (error) => done(error),
    });
    return undefined;
  }

  #timed(raw: net.Socket): net.Socket {
    raw.once("secureConnect", () => {
      this.#secureAt = clock();
    });
    this.#raw = raw;
    return raw;
  }

  get #inTls(): boolean {
    return this.handshake.origin.secure && this.#tcpConnectedAt > 0 && this.#secureAt === 0;
  }

  #onOpen(): void {
    if (this.#closed) return;
    const now = clock();
    this.#open = true;
    const opening = [...this.#opening];
    this.#opening.clear();
    // The handshake is one request, whoever else waited for it.
    const [first] = opening;
    if (first !== undefined) first[0].measure.sent++;
    for (const [call, then] of opening) {
      const tlsMs = Math.max(this.#secureAt - this.#tcpConnectedAt, -1);
      call.measure.opened(this.#tcpConnectedAt - this.#startedAt, tlsMs);
      then(now);
    }
  }

  #onMessage(data: Buffer, isBinary: boolean): void {
    const now = clock();
    const message = new WebsocketMessage(data, isBinary, now);
    for (const { call, matches } of [...this.#waiting]) {
      try {
        if (matches !== null && !matches(message)) continue;
      } catch (error) {
        if (this.#forget(call) !== null)
          call.fail("exception", `match threw: ${errorText(error)}`, now);
        continue;
      }
      if (this.#forget(call) === null) continue;
      call.succeed(message, now);
      return;
    }
    if (this.#listener === null) this.#queue?.add(message);
    else if (this.#leaving === null) this.#listener.heard(message);
  }

  #onRefusal(request: ClientRequest, response: IncomingMessage): void {
    const status = response.statusCode ?? 0;
    for (const { measure } of this.#opening.keys()) measure.status = status;
    this.#fail(failureOfStatus(status));
    request.destroy();
  }

  #onClose(code: number, reason: string): void {
    const closing = this.#closing;
    if (closing !== null && this.#forget(closing) !== null) {
      this.#end();
      closing.succeed(null, clock());
    }
    this.#fail(failureOfClose(code, reason));
  }

  #write(payload: string | Buffer, call: WebsocketCall, endsCall: boolean): void {
    if (this.#ws.bufferedAmount > SEND_BUFFER_BYTES_MAX) {
      if (this.#forget(call) !== null)
        call.fail("resources", "too much waits to be sent on this connection", clock());
      return;
    }
    call.measure.sent++;
    this.#ws.send(payload, (error) => {
      // An error that ended the connection has been told already.
      if (error) this.#fail(failureOfError(error, false));
      else if (endsCall && this.#forget(call) !== null) call.succeed(null, clock());
    });
  }

  #forget(call: WebsocketCall): Waiting | null {
    const at = this.#waiting.findIndex((waiting) => waiting.call === call);
    return at < 0 ? null : (this.#waiting.splice(at, 1)[0] ?? null);
  }

  /** Ends the connection and all that waits on it. */
  #fail(failure: Failure): void {
    const calls = [...this.#opening.keys(), ...this.#waiting.map(({ call }) => call)];
    this.#opening.clear();
    this.#waiting.length = 0;
    const listener = this.#closed || this.#leaving !== null ? null : this.#listener;
    this.#end();
    const now = clock();
    for (const call of calls) call.fail(failure.kind, failure.text, now);
    listener?.lost(failure, now);
  }

  #end(): void {
    if (this.#closed) return;
    this.#closed = true;
    if (this.#leaving !== null) clearTimeout(this.#leaving);
    this.#ws.terminate();
    this.#owner.gone(this);
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

function nobody(): void {}
