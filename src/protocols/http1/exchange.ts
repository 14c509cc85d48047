/**
 * One request and its answer on the way: what is sent, what came so far, and who wants to know.
 * A bound call of a virtual user reuses its exchange, so the loop of a prepared step allocates
 * nothing; only when somebody can look at the answer is an `HttpResponse` made of it.
 */

import type { ErrorKind } from "../errors.ts";
import { BodyCollector } from "../http/body-collector.ts";
import { HttpResponse, type KeptAnswer } from "../http/response.ts";
import { type Sweepable, sweeper } from "../net/sweeper.ts";
import type { BoundCall, CallRecord, CallSink } from "../protocol.ts";
import type { Http1Connection } from "./connection.ts";
import { PiecedAnswer, TEXT_BYTES_MAX, TextAnswer } from "./kept.ts";
import type { ConnectionSource } from "./pool.ts";
import { followRedirect } from "./redirect.ts";
import type { WireRequest } from "./wire-request.ts";

export class Exchange implements BoundCall, CallRecord, Sweepable {
  /** What is being sent now; a redirect replaces it. */
  request: WireRequest;
  readonly source: ConnectionSource;
  /** Somebody can look at the answer: keep its head, and make a response of it. */
  readonly keep: boolean;
  connection: Http1Connection | null = null;

  errorKind: ErrorKind | null = null;
  error: string | null = null;
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

  /** Where a redirect points; only looked for when one may be followed. */
  location: string | null = null;
  readonly #sink: CallSink;
  readonly #bodyBytesMax: number;
  #first: WireRequest;
  #keepBody: boolean;
  #redirectsLeft = 0;
  #kept: KeptAnswer | null = null;
  #collector: BodyCollector | null = null;

  constructor(request: WireRequest, source: ConnectionSource, keep: boolean, sink: CallSink) {
    this.request = request;
    this.#first = request;
    this.source = source;
    this.keep = keep;
    this.#keepBody = request.source.readBody ?? keep;
    this.#sink = sink;
    this.#bodyBytesMax = source.settings.bodyBytesMax;
  }

  /** The next start sends this request: a client uses one exchange for many. */
  aim(request: WireRequest): void {
    this.#first = request;
    this.#keepBody = request.source.readBody ?? this.keep;
  }

  get wantsLocation(): boolean {
    return this.#redirectsLeft > 0;
  }

  start(now: number): void {
    this.request = this.#first;
    this.errorKind = null;
    this.error = null;
    this.startedAt = now;
    this.firstByteAt = 0;
    this.connectMs = -1;
    this.tlsMs = -1;
    this.bytesIn = 0;
    this.bytesOut = 0;
    this.#redirectsLeft = this.request.redirectsMax;
    this.#begin(now);
  }

  /** Sends `request` instead, as part of the same call: a redirect. */
  restart(request: WireRequest, now: number): void {
    this.request = request;
    this.#redirectsLeft--;
    this.#begin(now);
  }

  #begin(now: number): void {
    // A function that goes on after its virtual user has ended makes no more load.
    if (this.source.closed) return;
    this.status = 0;
    this.location = null;
    this.#kept = null;
    this.#collector = null;
    this.deadline = Math.min(
      now + this.request.firstByteTimeoutMs,
      this.startedAt + this.request.timeoutMs,
    );
    sweeper.add(this);
    this.source.acquire(this, now);
  }

  /** Only while no connection is open yet: fail earlier than the whole call would. */
  connecting(now: number): void {
    this.deadline = Math.min(this.deadline, now + this.request.connectTimeoutMs);
  }

  /** The request went out: from now on the time to the first byte counts. */
  sent(now: number): void {
    this.deadline = Math.min(
      now + this.request.firstByteTimeoutMs,
      this.startedAt + this.request.timeoutMs,
    );
  }

  firstByte(now: number): void {
    if (this.firstByteAt === 0) this.firstByteAt = now;
    this.deadline = this.startedAt + this.request.timeoutMs;
  }

  /** The whole answer lies in one piece of the read buffer: one copy serves head and body. */
  keepWhole(buffer: Buffer, from: number, headEnd: number, end: number): void {
    const keptEnd = this.#keepBody && end - headEnd <= this.#bodyBytesMax ? end : -1;
    if (end - from <= TEXT_BYTES_MAX) {
      const text = buffer.toString("latin1", from, keptEnd < 0 ? headEnd : end);
      this.#kept = new TextAnswer(text, headEnd - from, keptEnd >= 0);
      return;
    }
    const body = keptEnd < 0 ? null : Buffer.from(buffer.subarray(headEnd, end));
    this.#kept = new PiecedAnswer(buffer.toString("latin1", from, headEnd), body);
  }

  keepHead(buffer: Buffer, from: number, end: number): void {
    this.#collector = this.#keepBody ? new BodyCollector(this.#bodyBytesMax) : null;
    this.#kept = new PiecedAnswer(buffer.toString("latin1", from, end), this.#collector);
  }

  keepPiece(buffer: Buffer, from: number, end: number): void {
    this.#collector?.add(buffer, from, end);
  }

  /** The answer is complete; the connection is back in its pool. */
  complete(now: number): void {
    sweeper.remove(this);
    if (this.location !== null && followRedirect(this, now)) return;
    this.endedAt = now;
    if (!this.request.succeeded(this.status)) {
      this.errorKind = "status";
      this.error = `the server answered with status ${this.status}`;
    }
    this.#tell();
  }

  fail(kind: ErrorKind, error: string, now: number): void {
    sweeper.remove(this);
    this.errorKind = kind;
    this.error = error;
    this.endedAt = now;
    if (this.firstByteAt === 0) this.firstByteAt = now;
    this.#tell();
  }

  timedOut(now: number): void {
    const phase = this.connection === null || !this.connection.open ? "connect" : "answer";
    const waited = Math.round(now - this.startedAt);
    const what =
      phase === "connect"
        ? "no connection"
        : this.firstByteAt === 0
          ? "no answer"
          : "no complete answer";
    // The exchange leaves its connection first, so that closing it cannot be heard as a second end.
    this.source.abandon(this);
    this.fail("timeout", `${what} after ${waited} ms`, now);
  }

  /** Its connection is closed: nothing is waited for any more. */
  cancel(): void {
    sweeper.remove(this);
  }

  #tell(): void {
    if (this.source.closed) return;
    this.#sink.callFinished(this, this.keep ? this.#response() : undefined);
  }

  #response(): HttpResponse {
    return new HttpResponse(this, this.error, this.#kept);
  }
}
