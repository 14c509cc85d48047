/**
 * \n Measures one call of any protocol: its times and bytes, the deadline of each phase, and its outcome. The exchange
 * of a protocol owns one and reports progress to it:
 *
 *   begin ──▶ connecting ──▶ awaitFirstByte ──▶ firstByte ──▶ succeed or fail
 *                 ▲                                 │
 *                 └── again: redirect, new stream ──┘         any ──▶ time-out, or cancel
 *
 * The sink is notified exactly once per begin, unless the call is cancelled. A call is in flight from its begin to its
 * first outcome; later outcomes are ignored.
 */

import { errorText } from "../core/base/error-text.ts";
import type { ErrorKind } from "./errors.ts";
import { clock } from "./net/clock.ts";
import type { Origin } from "./net/origin.ts";
import { type Sweepable, sweeper } from "./net/sweeper.ts";
import type { CallRecord, CallResult, CallSettings, CallSink } from "./protocol.ts";

export { clock };

/** Timeouts of a call. No phase may take longer than the whole call. */
export interface CallTimeouts {
  /** The whole call. */
  readonly timeoutMs: number;
  /** From the request to the first byte of its answer. */
  readonly firstByteTimeoutMs: number;
  /** Until the connection is open, including the DNS lookup. */
  readonly connectTimeoutMs: number;
}

/** `ownMs` is the timeout of the call itself; null selects the workflow's setting. */
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

/** The exchange that a `MeasuredCall` measures. */
export interface CallOwner {
  /** The virtual user has been closed; nothing is reported any more. */
  readonly closed: boolean;
  /** Request as shown in reports: "GET https://shop.test/cart". */
  readonly title?: string;
  /**
   * Called on a timeout. Detaches from connections and queues, so that their later events do not affect this call.
   * Returns what was missing: "no answer".
   */
  abandon(): string;
  /** Called when the call is finished. Returns the result for the sink, or undefined when no caller can read it. */
  finish(): CallResult | undefined;
}

const NO_TIMEOUTS: CallTimeouts = { timeoutMs: 0, firstByteTimeoutMs: 0, connectTimeoutMs: 0 };

export class MeasuredCall implements CallRecord, Sweepable {
  errorKind: ErrorKind | null = null;
  /** Human-readable; null when the call succeeded. */
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
  /** Number of calls begun with this object. Callbacks started by an earlier call compare it and stop. */
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

  /**
   * Continues the same call with another request: a redirect, or a retry of a request that the server never received.
   */
  again(timeouts: CallTimeouts): void {
    this.status = 0;
    this.#timeouts = timeouts;
    this.deadline = this.startedAt + timeouts.timeoutMs;
  }

  /** Calls `then` once the host is resolved; fails the call when it cannot be resolved. */
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

  /** Applies the connect timeout while no connection is open. */
  connecting(since: number): void {
    this.deadline = Math.min(this.deadline, since + this.#timeouts.connectTimeoutMs);
  }

  /** The connection is open; from now on only the timeout of the whole call applies. */
  opened(connectMs: number, tlsMs: number): void {
    this.connectMs = connectMs;
    this.tlsMs = tlsMs;
    this.deadline = this.startedAt + this.#timeouts.timeoutMs;
  }

  /** The body is being sent; only the timeout of the whole call applies. */
  uploading(): void {
    this.deadline = this.startedAt + this.#timeouts.timeoutMs;
  }

  /** The request is sent; the first-byte timeout starts. */
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
    // With TLS 1.3 a server rejects a client certificate only after the request was sent, and never reads the request.
    if (kind === "tls" && this.firstByteAt === 0 && this.sent > 0) this.sent--;
    this.#end(now);
  }

  timedOut(now: number): void {
    const missing = this.#owner.abandon();
    this.fail("timeout", `${missing} after ${Math.round(now - this.startedAt)} ms`, now);
  }

  /** Ends the call without notifying the sink, because the virtual user is closed. */
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
