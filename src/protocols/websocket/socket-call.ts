/** A call on an open connection, as a step performs it; and messages that no call waits for. */

import type { Duration } from "../../core/base/duration.ts";
import { errorText } from "../../core/base/error-text.ts";
import { type CallTimeouts, clock } from "../call.ts";
import { DescriptionAwaited, type NotAwaitable } from "../description.ts";
import type { ErrorKind, Failure } from "../errors.ts";
import type {
  BoundCall,
  CallRecord,
  CallResult,
  CallSink,
  CannedAnswer,
  PreparedCall,
  Session,
} from "../protocol.ts";
import { WebsocketCall } from "./call.ts";
import type { Listener } from "./channel.ts";
import { timeoutsFor } from "./handshake.ts";
import { LaterSink } from "./later-sink.ts";
import type { WebsocketMessage } from "./message.ts";
import { WebsocketResponse } from "./response.ts";
import type { UserSocket } from "./socket.ts";
import { websocketSessions } from "./user.ts";

/** A connection, and the user that owns it. */
export type Speaking = readonly [session: Session, socket: UserSocket];

/** Performs the call on the connection. */
export type Act<Made = void> = (socket: UserSocket, call: WebsocketCall, now: number) => Made;

/** `Made` is the value that performing it produces besides its response. */
interface Spoken<Result extends CallResult, Made = void> {
  readonly protocol: string;
  readonly title: string;
  readonly within: Duration | undefined;
  /** Sent content, for display. */
  readonly payload: string | Buffer;
  readonly act: Act<Made>;
  /** Builds the result of the step. */
  result(response: WebsocketResponse, made: Made): Result;
  /** Result for a canned answer. */
  answered(answer: CannedAnswer): Result;
}

export class SocketCall<Result extends CallResult, Made = void> implements PreparedCall<Result> {
  declare readonly resultType?: Result;
  readonly protocol: string;
  readonly title: string;
  readonly #spoken: Spoken<Result, Made>;
  /** Null when the connection comes from a canned answer. */
  readonly #speaking: Speaking | null;

  constructor(spoken: Spoken<Result, Made>, speaking: Speaking | null) {
    this.protocol = spoken.protocol;
    this.title = spoken.title;
    this.#spoken = spoken;
    this.#speaking = speaking;
  }

  async prepare(): Promise<void> {}

  bind(session: Session, _keep: boolean, sink: CallSink): BoundCall {
    if (this.#speaking === null)
      throw new Error(
        `${this.title}: its connection comes from a canned answer and cannot be used`,
      );
    const [owner, socket] = this.#speaking;
    if (owner.state(websocketSessions) !== session.state(websocketSessions))
      throw new Error(`${this.title}: the connection is another user's; keep it in state`);
    return new BoundSocketCall(socket, this.#spoken, session, sink);
  }

  answered(answer: CannedAnswer): Result {
    return this.#spoken.answered(answer);
  }

  /** A message is a body without a head. */
  shown(): { readonly request: string; readonly prepared: string } {
    return {
      request: `\r\n\r\n${this.#spoken.payload.toString()}`,
      prepared: "composed for each call",
    };
  }

  // biome-ignore lint/suspicious/noThenProperty: it throws the line to write instead.
  get then(): NotAwaitable {
    throw new DescriptionAwaited(this.title, "return ws.request(…) in a step");
  }
}

class BoundSocketCall<Result extends CallResult, Made> implements BoundCall {
  readonly #socket: UserSocket;
  readonly #act: Act<Made>;
  #made: Made | null = null;
  readonly #timeouts: CallTimeouts;
  readonly #sink: LaterSink;
  readonly #call: WebsocketCall;

  constructor(socket: UserSocket, spoken: Spoken<Result, Made>, session: Session, sink: CallSink) {
    this.#socket = socket;
    this.#act = spoken.act;
    this.#timeouts = timeoutsFor(spoken.within, session.settings);
    this.#sink = new LaterSink({
      callFinished: (_, response) => {
        const result = spoken.result(response as WebsocketResponse, this.#made as Made);
        sink.callFinished(result, result);
      },
    });
    this.#call = new WebsocketCall(session, true, this.#sink);
  }

  get sent(): number {
    return this.#call.measure.sent;
  }

  start(now: number): void {
    this.#sink.during(() => {
      this.#call.begin(now, this.#timeouts);
      this.#made = this.#act(this.#socket, this.#call, now);
    });
  }
}

/** Reads a timestamp from a message, in milliseconds since 1970, such as the time it was sent. */
export type TimestampOf<Message> = (message: Message) => number | Date;

interface ListenOptions {
  readonly name: string;
  /** Without it, messages have no latency. */
  readonly at: TimestampOf<WebsocketMessage> | undefined;
  /** Returns the failure that a message reports; null for others. */
  refusal?(message: WebsocketMessage): Failure | null;
}

/** Throws for an invalid step name. */
export function checkListenName(name: unknown): void {
  if (typeof name !== "string" || name === "") throw new TypeError("listen(name) needs a name");
}

/** Reports every message that no call waits for to the session. */
export class MeasuredMessages implements Listener {
  readonly #session: Session;
  readonly #socket: UserSocket;
  readonly #options: ListenOptions;

  constructor([session, socket]: Speaking, options: ListenOptions) {
    this.#session = session;
    this.#socket = socket;
    this.#options = options;
  }

  received(message: WebsocketMessage): void {
    const { arrivedAt } = message;
    const { at, name } = this.#options;
    let startedAt = Number.NaN;
    let failure = this.#options.refusal?.(message) ?? null;
    try {
      if (failure === null && at !== undefined) startedAt = timestampOf(at(message), arrivedAt);
    } catch (error) {
      failure = { kind: "exception", text: `listen("${name}"): ${errorText(error)}` };
    }
    this.#report(startedAt, arrivedAt, failure, message);
  }

  lost(failure: Failure, now: number): void {
    this.#report(now, now, failure, null);
  }

  #report(
    startedAt: number,
    endedAt: number,
    failure: Failure | null,
    message: WebsocketMessage | null,
  ): void {
    if (this.#session.closed) return;
    const record = recordOf(failure?.kind ?? null, startedAt, endedAt);
    this.#socket.account(record);
    const result = new WebsocketResponse(record, failure?.text ?? null, message, null);
    this.#session.unasked?.(this.#options.name, result);
  }
}

/** Converts to the clock of calls. Clocks of two machines differ, so the time is capped at the arrival. */
function timestampOf(named: number | Date, arrivedAt: number): number {
  const at = typeof named === "number" ? named : Number(named);
  if (!Number.isFinite(at))
    throw new TypeError(`the message has no valid timestamp: ${String(named)}`);
  return Math.min(arrivedAt, at - Date.now() + clock());
}

function recordOf(errorKind: ErrorKind | null, startedAt: number, endedAt: number) {
  const nothing = { status: 0, connectMs: -1, tlsMs: -1, bytesIn: 0, bytesOut: 0, sent: 0 };
  return { ...nothing, errorKind, startedAt, firstByteAt: endedAt, endedAt };
}

/** Record of a canned answer. */
export function answeredRecord(status: number): CallRecord {
  const now = clock();
  return { ...recordOf(null, now, now), status };
}
