/**
 * One call to a target in flight: every outcome becomes a result, never a thrown error. (PROTO-1) A bound call is
 * reused, so a loop of calls allocates little.
 */

import { type CallOwner, type CallTimeouts, MeasuredCall } from "../call.ts";
import { setImmediate } from "../net/timers.ts";
import { type Deferred, turn } from "../net/turn.ts";
import type { BoundCall, CallRecord, CallResult, CallSettings, CallSink } from "../protocol.ts";
import type { TraceContext } from "../trace-context.ts";
import type { ConnectionFailure } from "./connection.ts";
import type { ConnectionPool, PooledCall, PooledConnection } from "./pool.ts";

/** Outcome of a call, apart from its times. */
export interface Answer {
  /** Human-readable; null when it succeeded. */
  readonly error: string | null;
  /** The protocol's own name of the error; "" where it has none. */
  readonly errorCode: string;
  /** Value of the response, as returned by the connection. */
  readonly value: unknown;
  /** Part of `connectMs`; negative when an open connection was used. */
  readonly loginMs: number;
}

/** Command of a call, and how to decode its response. */
export interface Described<Command> {
  readonly command: Command;
  readonly title: string;
  timeouts(settings: CallSettings): CallTimeouts;
  result(record: CallRecord, answer: Answer): CallResult;
}

/** The virtual user that calls. */
export interface CallingUser<Command> {
  readonly closed: boolean;
  readonly pool: ConnectionPool<Command>;
  readonly trace: TraceContext | null;
}

export class Exchange<Command>
  implements BoundCall, CallOwner, PooledCall<Command>, Answer, Deferred
{
  readonly measure: MeasuredCall;
  readonly keep: boolean;
  readonly user: CallingUser<Command>;
  connection: PooledConnection<Command> | null = null;
  value: unknown = null;
  errorCode = "";
  loginMs = -1;
  #described: Described<Command>;
  readonly #sink: CallSink;
  #timeouts: CallTimeouts | null = null;
  #starting = false;
  /** The response has arrived, and waits for its phase of the turn. */
  #isAnswered = false;

  constructor(
    described: Described<Command>,
    user: CallingUser<Command>,
    keep: boolean,
    sink: CallSink,
  ) {
    this.#described = described;
    this.user = user;
    this.keep = keep;
    this.#sink = sink;
    this.measure = new MeasuredCall(this, { callFinished: (_, result) => this.#report(result) });
  }

  /** Sets the call that the next start performs. */
  aim(described: Described<Command>): void {
    if (described === this.#described) return;
    this.#described = described;
    this.#timeouts = null;
  }

  get command(): Command {
    return this.#described.command;
  }

  get closed(): boolean {
    return this.user.closed;
  }

  get title(): string {
    return this.#described.title;
  }

  get sent(): number {
    return this.measure.sent;
  }

  get error(): string | null {
    return this.measure.error;
  }

  start(now: number): void {
    // A call that continues after its virtual user has stopped generates no more load.
    if (this.user.closed) return;
    const { pool } = this.user;
    this.value = null;
    this.errorCode = "";
    this.loginMs = -1;
    this.#isAnswered = false;
    this.#timeouts ??= this.#described.timeouts(pool.settings);
    this.measure.begin(now, this.#timeouts);
    this.#starting = true;
    pool.acquire(this, now);
    this.#starting = false;
  }

  traceparent(): string {
    const { trace } = this.user;
    if (trace !== null) this.measure.traceparent = trace.next();
    return this.measure.traceparent;
  }

  wrote(bytes: number, requests: number, now: number): void {
    const { measure } = this;
    measure.bytesOut += bytes;
    measure.sent += requests;
    measure.awaitFirstByte(now);
  }

  read(bytes: number, now: number): void {
    this.measure.bytesIn += bytes;
    this.measure.firstByte(now);
  }

  status(status: number): void {
    this.measure.status = status;
  }

  answered(value: unknown, now: number): void {
    this.value = value;
    if (!turn.reading) {
      this.measure.succeed(now);
      return;
    }
    this.#isAnswered = true;
    this.measure.endedAt = now;
    turn.finishLater(this);
  }

  resume(): void {
    if (!this.#isAnswered) return;
    this.#isAnswered = false;
    this.measure.succeed(this.measure.endedAt);
  }

  refused(code: string, text: string, now: number): void {
    this.errorCode = code;
    this.measure.fail("application", withCode(code, text), now);
  }

  failed({ code = "", kind, text }: ConnectionFailure, now: number): void {
    // The connection failed after the response.
    if (this.#isAnswered) return;
    this.errorCode = code;
    this.measure.fail(kind, withCode(code, text), now);
  }

  abandon(): string {
    const { connection } = this;
    const connected = connection?.open === true;
    if (connection === null) this.user.pool.withdraw(this);
    else connection.abandon(this);
    if (!connected) return "no connection";
    return this.measure.firstByteAt === 0 ? "no answer" : "no complete answer";
  }

  finish(): CallResult | undefined {
    const { connection } = this;
    this.connection = null;
    connection?.left(this);
    return this.keep ? this.#described.result(this.measure, this) : undefined;
  }

  /**
   * Reports the result. Calls that finish while they are being started are reported in a separate turn: a loop of calls
   * that are answered at once would block the event loop otherwise.
   */
  #report(result: CallResult | undefined): void {
    if (this.#starting) setImmediate(() => this.#sink.callFinished(this.measure, result));
    else this.#sink.callFinished(this.measure, result);
  }
}

/** Samples in the report show the text only, so the code must be part of it. */
function withCode(code: string, text: string): string {
  return code === "" || text.includes(code) ? text : `${code}: ${text}`;
}
