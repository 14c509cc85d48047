/**
 * One measured call, whatever its protocol: its times and bytes, how long each part of it may take,
 * and how it ended. A protocol's exchange holds one and tells it what happens:
 *
 *   begin ──▶ connecting ──▶ awaitFirstByte ──▶ firstByte ──▶ succeed or fail
 *                 ▲                                 │
 *                 └── again: redirect, new stream ──┘         any ──▶ time-out, or cancel
 *
 * The sink hears exactly one end for each begin, unless the call is cancelled: a call is under way
 * from its begin to its end, and every end that comes later is ignored.
 */

import { errorText } from "../core/base/error-text.ts";
import type { ErrorKind } from "./errors.ts";
import { clock } from "./net/clock.ts";
import type { Origin } from "./net/origin.ts";
import { type Sweepable, sweeper } from "./net/sweeper.ts";
import type { CallRecord, CallResult, CallSettings, CallSink } from "./protocol.ts";

export { clock };

/** How long a call may take; none of the parts is longer than the whole. */
export interface CallTimeouts {
  /** The whole call. */
  readonly timeoutMs: number;
  /** From the request to the first byte of its answer. */
  readonly firstByteTimeoutMs: number;
  /** Until the connection is open, looking up the host included. */
  readonly connectTimeoutMs: number;
}

/** `ownMs` is what the call itself asks for; null leaves it to the workflow's settings. */
export function timeoutsOf(ownMs: number | null, settings: CallSettings): CallTimeouts {
  if (ownMs !== null) return timeoutsWithin(ownMs, settings);
  let timeouts = ofSettings.get(settings);
  if (timeouts === undefined) {
    timeouts = timeoutsWithin(settings.timeoutMs, settings);
    ofSettings.set(settings, timeouts);
  }
  return timeouts;
}

const ofSettings = new WeakMap<CallSettings, CallTimeouts>();

function timeoutsWithin(timeoutMs: number, settings: CallSettings): CallTimeouts {
  return {
    timeoutMs,
    firstByteTimeoutMs: Math.min(timeoutMs, settings.firstByteTimeoutMs),
    connectTimeoutMs: Math.min(timeoutMs, settings.connectTimeoutMs),
  };
}

/** The exchange that a call is the measure of. */
export interface CallOwner {
  /** The virtual user has ended: nothing is told any more. */
  readonly closed: boolean;
  /** What is called: "GET https://shop.test/cart". */
  readonly title?: string;
  /**
   * Time is up. Lets go of connections and queues, so that nothing they do later belongs to this
   * call, and says what was missing: "no answer".
   */
  abandon(): string;
  /** The call has ended: gives what the sink gets besides the record, undefined when nobody can look at it. */
  finish(): CallResult | undefined;
}

const NO_TIMEOUTS: CallTimeouts = { timeoutMs: 0, firstByteTimeoutMs: 0, connectTimeoutMs: 0 };

export class MeasuredCall implements CallRecord, Sweepable {
  errorKind: ErrorKind | null = null;
  /** For people; null when the call succeeded. */
  error: string | null = null;
  status = 0;
  startedAt = 0;
  firstByteAt = 0;
  endedAt = 0;
  connectMs = -1;
  tlsMs = -1;
  bytesIn = 0;
  bytesOut = 0;
  sent = 0;
  traceparent = "";
  swept = false;
  underWay = false;
  deadline = 0;
  readonly #owner: CallOwner;
  readonly #sink: CallSink;
  #timeouts = NO_TIMEOUTS;
  /** Calls begun with this object: what was started for an earlier one must not go on with this. */
  #begun = 0;

  constructor(owner: CallOwner, sink: CallSink) {
    this.#owner = owner;
    this.#sink = sink;
  }

  get title(): string {
    return this.#owner.title ?? "";
  }

  begin(now: number, timeouts: CallTimeouts): void {
    this.errorKind = null;
    this.error = null;
    this.status = 0;
    this.startedAt = now;
    this.firstByteAt = 0;
    this.connectMs = -1;
    this.tlsMs = -1;
    this.bytesIn = 0;
    this.bytesOut = 0;
    this.sent = 0;
    this.traceparent = "";
    this.deadline = now + timeouts.timeoutMs;
    this.#timeouts = timeouts;
    this.#begun++;
    this.underWay = true;
    sweeper.add(this);
  }

  /** The same call goes on with another request: a redirect, or one that the server never saw. */
  again(timeouts: CallTimeouts): void {
    this.status = 0;
    this.#timeouts = timeouts;
    this.deadline = this.startedAt + timeouts.timeoutMs;
  }

  /** Goes on when the host has been looked up; a host that nobody knows ends the call. */
  lookUp(origin: Pick<Origin, "prepare">, now: number, then: (now: number) => void): void {
    this.connecting(now);
    const begun = this.#begun;
    const still = (): boolean => this.underWay && this.#begun === begun && !this.#owner.closed;
    origin.prepare().then(
      () => {
        if (still()) then(clock());
      },
      (error: unknown) => {
        if (still()) this.fail("dns", errorText(error), clock());
      },
    );
  }

  /** Only while no connection is open yet: fail earlier than the whole call would. */
  connecting(since: number): void {
    this.deadline = Math.min(this.deadline, since + this.#timeouts.connectTimeoutMs);
  }

  /** The connection is open: how long the whole call may take is all that counts. */
  opened(connectMs: number, tlsMs: number): void {
    this.connectMs = connectMs;
    this.tlsMs = tlsMs;
    this.deadline = this.startedAt + this.#timeouts.timeoutMs;
  }

  /** The body is being sent: only the whole call is bounded, however long the upload takes. */
  uploading(): void {
    this.deadline = this.startedAt + this.#timeouts.timeoutMs;
  }

  /** The request went out: from now on the time to the first byte counts. */
  awaitFirstByte(now: number): void {
    const { firstByteTimeoutMs, timeoutMs } = this.#timeouts;
    this.deadline = Math.min(now + firstByteTimeoutMs, this.startedAt + timeoutMs);
  }

  firstByte(now: number): void {
    if (this.firstByteAt === 0) this.firstByteAt = now;
    this.deadline = this.startedAt + this.#timeouts.timeoutMs;
  }

  succeed(now: number): void {
    if (this.underWay) this.#end(now);
  }

  fail(kind: ErrorKind, error: string, now: number): void {
    if (!this.underWay) return;
    this.errorKind = kind;
    this.error = error;
    // TLS 1.3: a server that refuses a client's certificate says so when the request is out, and never reads it.
    if (kind === "tls" && this.firstByteAt === 0 && this.sent > 0) this.sent--;
    this.#end(now);
  }

  timedOut(now: number): void {
    const missing = this.#owner.abandon();
    this.fail("timeout", `${missing} after ${Math.round(now - this.startedAt)} ms`, now);
  }

  /** Ends it untold: the virtual user is gone. */
  cancel(): void {
    this.underWay = false;
  }

  #end(now: number): void {
    this.underWay = false;
    this.endedAt = now;
    if (this.firstByteAt === 0) this.firstByteAt = now;
    if (!this.#owner.closed) this.#sink.callFinished(this, this.#owner.finish());
  }
}
