/**
 * One request and its response in flight. A bound call of a virtual user reuses its exchange, so the loop of a prepared
 * step allocates nothing; an `HttpResponse` is created only when a caller can read it.
 */

import { type CallOwner, MeasuredCall } from "../call.ts";
import { BodyCollector } from "../http/body-collector.ts";
import type { DecodedOwner } from "../http/decoded-bodies.ts";
import { type HttpExchange, HttpMessage, type HttpVersion } from "../http/message.ts";
import { redirectOf } from "../http/redirect.ts";
import { HttpResponse, type KeptAnswer } from "../http/response.ts";
import type { CallSink } from "../protocol.ts";
import type { CarriedExchange, CarryingConnection, ConnectionSource } from "./contract.ts";
import { encoder, type Http1Bytes } from "./encode.ts";
import { type Keeping, PiecedAnswer, TEXT_BYTES_MAX, TextAnswer } from "./kept.ts";
import { http1Sessions } from "./pool.ts";
import type { RepeatedText } from "./repeated-text.ts";

export const HTTP1: HttpVersion<Http1Bytes> = {
  protocol: "http",
  encoder,
  exchange: (message, session, keep, sink) =>
    new Exchange(message, session.state(http1Sessions), keep, sink),
  exchangeOf: (bound) => (bound instanceof Exchange ? bound : null),
};

class Exchange implements HttpExchange<Http1Bytes>, CallOwner, CarriedExchange, Keeping {
  readonly call: MeasuredCall;
  message: HttpMessage<Http1Bytes>;
  readonly source: ConnectionSource;
  readonly keep: boolean;
  connection: CarryingConnection | null = null;
  location: string | null = null;
  #first: HttpMessage<Http1Bytes>;
  keepsBody: boolean;
  #redirectsLeft = 0;
  #kept: KeptAnswer | null = null;
  #collector: BodyCollector | null = null;

  constructor(
    message: HttpMessage<Http1Bytes>,
    source: ConnectionSource,
    keep: boolean,
    sink: CallSink,
  ) {
    this.call = new MeasuredCall(this, sink);
    this.message = message;
    this.#first = message;
    this.source = source;
    this.keep = keep;
    this.keepsBody = message.readBody ?? keep;
  }

  aim(message: HttpMessage<Http1Bytes>): void {
    this.#first = message;
    this.keepsBody = message.readBody ?? this.keep;
  }

  get bodyBytesMax(): number {
    return this.#first.bodyBytesMax;
  }

  get owner(): DecodedOwner {
    return this.source;
  }

  get wantsLocation(): boolean {
    return this.#redirectsLeft > 0;
  }

  get closed(): boolean {
    return this.source.closed;
  }

  get sent(): number {
    return this.call.sent;
  }

  get title(): string {
    return this.#first.title;
  }

  start(now: number): void {
    // A function that continues after its virtual user has stopped generates no more load.
    if (this.source.closed) return;
    const message = this.#first;
    this.message = message;
    this.#redirectsLeft = message.redirectsMax;
    this.call.begin(now, message.timeouts);
    this.#send(now);
  }

  #send(now: number): void {
    this.location = null;
    this.#kept = null;
    this.#collector = null;
    const { origin } = this.message;
    if (origin.address !== undefined) this.source.acquire(this, now);
    else this.call.lookUp(origin, now, (later) => this.source.acquire(this, later));
  }

  keepWhole(texts: RepeatedText, buffer: Buffer, from: number, headEnd: number, end: number): void {
    const keptEnd = this.keepsBody ? end : headEnd;
    const fits = keptEnd - headEnd <= this.#first.bodyBytesMax;
    if (fits && end - from <= TEXT_BYTES_MAX) {
      this.#kept = new TextAnswer(texts.of(buffer, from, keptEnd), headEnd - from, this);
      return;
    }
    const body = this.keepsBody && fits ? Buffer.from(buffer.subarray(headEnd, end)) : null;
    this.#kept = new PiecedAnswer(buffer.toString("latin1", from, headEnd), body, this);
  }

  keepHead(buffer: Buffer, from: number, end: number): void {
    this.#collector = this.keepsBody ? new BodyCollector(this.#first.bodyBytesMax) : null;
    this.#kept = new PiecedAnswer(buffer.toString("latin1", from, end), this.#collector, this);
  }

  keepPiece(buffer: Buffer, from: number, end: number): void {
    this.#collector?.add(buffer, from, end);
  }

  /** The response was already complete when it was read. */
  resume(): void {
    this.complete(this.call.endedAt);
  }

  complete(now: number): void {
    const { call, message } = this;
    if (this.location !== null && this.#follow(this.location, now)) return;
    const { redirectsMax } = this.#first;
    const failure = message.failureOf(call.status, redirectsMax, this.#redirectsLeft);
    if (failure === null) call.succeed(now);
    else call.fail("status", failure, now);
  }

  /** Returns true when the call continues with the redirect's target. */
  #follow(location: string, now: number): boolean {
    const target = redirectOf(this.message.source, this.call.status, location);
    if (target === null) return false;
    this.#redirectsLeft--;
    this.message = HttpMessage.of(HTTP1, target, this.source.settings);
    this.call.again(this.message.timeouts);
    this.#send(now);
    return true;
  }

  abandon(): string {
    const connected = this.connection?.open === true;
    this.source.abandon(this);
    if (!connected) return "no connection";
    return this.call.firstByteAt === 0 ? "no answer" : "no complete answer";
  }

  finish(): HttpResponse | undefined {
    this.#first.upload?.release?.();
    return this.keep ? new HttpResponse(this.call, this.call.error, this.#kept) : undefined;
  }
}
