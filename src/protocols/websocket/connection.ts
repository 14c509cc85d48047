/** What a step that connected gives: the measured handshake, and the connection to speak on. */

import type { Duration } from "../../core/base/duration.ts";
import { errorText } from "../../core/base/error-text.ts";
import { clock } from "../call.ts";
import { DescriptionAwaited, type NotAwaitable } from "../description.ts";
import type { ErrorKind, Failure } from "../errors.ts";
import { contentAsked } from "../failed-content.ts";
import {
  type BoundCall,
  type CallRecord,
  CallResult,
  type CallSettings,
  type CallSink,
  type CannedAnswer,
  type PreparedCall,
  type Session,
} from "../protocol.ts";
import { WebsocketCall } from "./call.ts";
import type { Listener } from "./channel.ts";
import { timeoutsFor } from "./handshake.ts";
import { LaterSink } from "./later-sink.ts";
import { CLOSE_TIMEOUT_MS } from "./limits.ts";
import {
  encodeMessage,
  type Match,
  matcherOf,
  type OutgoingMessage,
  WebsocketMessage,
} from "./message.ts";
import { WebsocketResponse } from "./response.ts";
import type { UserSocket } from "./socket.ts";
import { websocketSessions } from "./user.ts";

export interface SocketWaitOptions {
  /** Which message is the answer; the next one by default. */
  readonly match?: Match;
  /** Later than that it counts as a time-out. */
  readonly within?: Duration;
}

/** The moment that a message names, in milliseconds since 1970: when it was sent, say. */
type NamedMoment = (message: WebsocketMessage) => number | Date;

type Speaking = readonly [session: Session, socket: UserSocket];

/** Performs its call on the connection. */
type Act = (socket: UserSocket, call: WebsocketCall, now: number) => void;

export class Connection extends CallResult {
  override readonly protocol: string = "websocket";
  /** Null when it failed, or when its answer was made up. */
  readonly #speaking: Speaking | null;

  constructor(record: CallRecord, error: string | null, speaking: Speaking | null) {
    super(record, error);
    this.#speaking = speaking;
  }

  get open(): boolean {
    return this.#speaking?.[1].open ?? false;
  }

  /** Describes a message and the answer to wait for. `Body` is what `json()` of the answer gives. */
  request<Body = unknown>(
    message: OutgoingMessage,
    { match, within }: SocketWaitOptions = {},
  ): SocketCall<Body> {
    const payload = encodeMessage(message);
    const matches = matcherOf(match);
    const act: Act = (socket, call, now) => socket.exchange(call, payload, matches, now);
    return this.#call("request", within, act, payload);
  }

  /** Describes a message; the call ends when its bytes have been handed to the network. */
  send(
    message: OutgoingMessage,
    { within }: Pick<SocketWaitOptions, "within"> = {},
  ): SocketCall<never> {
    const payload = encodeMessage(message);
    const act: Act = (socket, call, now) => socket.deliver(call, payload, now);
    return this.#call("send", within, act, payload);
  }

  /** Describes the wait for a message: one that came already and was not taken, or the next. */
  receive<Body = unknown>({ match, within }: SocketWaitOptions = {}): SocketCall<Body> {
    const matches = matcherOf(match);
    return this.#call("receive", within, (socket, call, now) => socket.await(call, matches, now));
  }

  /** Describes the end in order: the call ends when the server has agreed. */
  close(code = 1000, reason = ""): SocketCall<never> {
    return this.#call("close", CLOSE_TIMEOUT_MS, (socket, call, now) =>
      socket.finish(call, code, reason, now),
    );
  }

  #call<Body>(
    verb: string,
    within: Duration | undefined,
    act: Act,
    payload: string | Buffer = "",
  ): SocketCall<Body> {
    contentAsked(this);
    return new SocketCall<Body>(verb, within, act, this.#speaking, payload);
  }

  /**
   * Counts the messages that no call waits for under this name, each as long as it took since the
   * moment that it names; without `at` they have no latency. A lost connection is a failure of it.
   */
  listen(name: string, at?: NamedMoment): void {
    contentAsked(this);
    if (typeof name !== "string" || name === "") throw new TypeError("listen(name) needs a name");
    if (this.#speaking === null) return;
    const [session, socket] = this.#speaking;
    socket.listen(new MeasuredMessages(session, socket, name, at));
  }
}

/** One call on a connection that is there. */
class SocketCall<Body> implements PreparedCall<WebsocketResponse<Body>> {
  declare readonly resultType?: WebsocketResponse<Body>;
  readonly protocol = "websocket";
  readonly title: string;
  readonly #within: Duration | undefined;
  readonly #act: Act;
  readonly #speaking: Speaking | null;
  readonly #payload: string | Buffer;

  constructor(
    verb: string,
    within: Duration | undefined,
    act: Act,
    speaking: Speaking | null,
    payload: string | Buffer,
  ) {
    this.#payload = payload;
    this.title = `ws ${verb}`;
    this.#within = within;
    this.#act = act;
    this.#speaking = speaking;
  }

  async prepare(): Promise<void> {}

  bind(session: Session, _keep: boolean, sink: CallSink): BoundCall {
    if (this.#speaking === null)
      throw new Error(`${this.title}: its connection was made up and has nobody to speak to`);
    const [owner, socket] = this.#speaking;
    if (owner.state(websocketSessions) !== session.state(websocketSessions))
      throw new Error(`${this.title}: the connection is another user's; keep it in state`);
    return new BoundSocketCall(socket, this.#act, this.#timeouts(session.settings), [
      session,
      sink,
    ]);
  }

  #timeouts(settings: CallSettings): ReturnType<typeof timeoutsFor> {
    return timeoutsFor(this.#within, settings);
  }

  answered({ body, json, status = 0 }: CannedAnswer): WebsocketResponse<Body> {
    const record = answeredRecord(status);
    const text = body ?? (json === undefined ? null : JSON.stringify(json));
    const message =
      text === null ? null : new WebsocketMessage(Buffer.from(text), false, record.endedAt);
    return new WebsocketResponse<Body>(record, null, message, null);
  }

  /** A message is a body without a head. */
  shown(): { readonly request: string; readonly prepared: string } {
    return { request: `\r\n\r\n${this.#payload.toString()}`, prepared: "composed anew" };
  }

  // biome-ignore lint/suspicious/noThenProperty: it throws the line to write instead.
  get then(): NotAwaitable {
    throw new DescriptionAwaited(this.title, "return ws.request(…) in a step");
  }
}

class BoundSocketCall implements BoundCall {
  readonly #socket: UserSocket;
  readonly #act: Act;
  readonly #timeouts: ReturnType<typeof timeoutsFor>;
  readonly #sink: LaterSink;
  readonly #call: WebsocketCall;

  constructor(
    socket: UserSocket,
    act: Act,
    timeouts: ReturnType<typeof timeoutsFor>,
    [session, sink]: readonly [Session, CallSink],
  ) {
    this.#socket = socket;
    this.#act = act;
    this.#timeouts = timeouts;
    this.#sink = new LaterSink(sink);
    this.#call = new WebsocketCall(session, true, this.#sink);
  }

  get sent(): number {
    return this.#call.measure.sent;
  }

  start(now: number): void {
    this.#sink.during(() => {
      this.#call.begin(now, this.#timeouts);
      this.#act(this.#socket, this.#call, now);
    });
  }
}

/** Tells the session of every message that no call waits for. */
class MeasuredMessages implements Listener {
  readonly #session: Session;
  readonly #socket: UserSocket;
  readonly #name: string;
  readonly #at: NamedMoment | undefined;

  constructor(session: Session, socket: UserSocket, name: string, at: NamedMoment | undefined) {
    this.#session = session;
    this.#socket = socket;
    this.#name = name;
    this.#at = at;
  }

  heard(message: WebsocketMessage): void {
    const { arrivedAt } = message;
    let startedAt = Number.NaN;
    let failure: Failure | null = null;
    try {
      if (this.#at !== undefined) startedAt = momentOf(this.#at(message), arrivedAt);
    } catch (error) {
      failure = { kind: "exception", text: `listen("${this.#name}"): ${errorText(error)}` };
    }
    this.#tell(startedAt, arrivedAt, failure, message);
  }

  lost(failure: Failure, now: number): void {
    this.#tell(now, now, failure, null);
  }

  #tell(
    startedAt: number,
    endedAt: number,
    failure: Failure | null,
    message: WebsocketMessage | null,
  ): void {
    if (this.#session.closed) return;
    const record = recordOf(failure?.kind ?? null, startedAt, endedAt);
    this.#socket.account(record);
    const result = new WebsocketResponse(record, failure?.text ?? null, message, null);
    this.#session.unasked?.(this.#name, result);
  }
}

/** By the clock of calls. Clocks of two machines differ: no message comes before it was sent. */
function momentOf(named: number | Date, arrivedAt: number): number {
  const at = typeof named === "number" ? named : Number(named);
  if (!Number.isFinite(at))
    throw new TypeError(`the message names no moment, but ${String(named)}`);
  return Math.min(arrivedAt, at - Date.now() + clock());
}

function recordOf(errorKind: ErrorKind | null, startedAt: number, endedAt: number) {
  const nothing = { status: 0, connectMs: -1, tlsMs: -1, bytesIn: 0, bytesOut: 0, sent: 0 };
  return { ...nothing, errorKind, startedAt, firstByteAt: endedAt, endedAt };
}

/** Of an answer that somebody made up. */
export function answeredRecord(status: number): CallRecord {
  const now = clock();
  return { ...recordOf(null, now, now), status };
}
