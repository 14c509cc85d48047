/**
 * One request and its response as a stream of an HTTP/2 connection. Like the HTTP/1.1 exchange, it is bound to its
 * virtual user and started repeatedly.
 */

import { type CallOwner, clock, MeasuredCall } from "../call.ts";
import type { Failure } from "../errors.ts";
import { BodyCollector } from "../http/body-collector.ts";
import { BodyPump } from "../http/body-pump.ts";
import { type BodySource, isSource } from "../http/body-source.ts";
import { type HttpExchange, HttpMessage, type HttpVersion } from "../http/message.ts";
import { redirectOf } from "../http/redirect.ts";
import type { KeptAnswer } from "../http/response.ts";
import { type Deferred, turn } from "../net/turn.ts";
import type { CallSink } from "../protocol.ts";
import type { CarriedStream, Http2Connection } from "./connection.ts";
import { encoder, type Http2Head } from "./encode.ts";
import { resetFailure } from "./failure.ts";
import { CANCEL } from "./frames.ts";
import type { HeaderList } from "./hpack/header-list.ts";
import { UNSEEN_RETRIES_MAX } from "./limits.ts";
import { Http2Response } from "./response.ts";
import type { Http2Session } from "./session.ts";
import type { Http2Stream, StreamListener } from "./stream.ts";
import { StreamUpload } from "./stream-upload.ts";
import { type Http2User, http2Sessions } from "./user.ts";

type Message = HttpMessage<Http2Head>;

export const HTTP2: HttpVersion<Http2Head> = {
  protocol: "http2",
  encoder,
  exchange: (message, session, keep, sink) =>
    new Http2Exchange(message, session.state(http2Sessions), keep, sink),
  exchangeOf: (bound) => (bound instanceof Http2Exchange ? bound : null),
};

class Http2Exchange
  implements HttpExchange<Http2Head>, CallOwner, CarriedStream, StreamListener, Deferred
{
  readonly call: MeasuredCall;
  /** Content of the current stream, without framing. */
  payloadIn = 0;
  payloadOut = 0;

  readonly #user: Http2User;
  readonly #keep: boolean;
  #first: Message;
  #message: Message;
  #keepBody: boolean;
  #redirectsLeft = 0;
  #retriesLeft = 0;
  #connection: Http2Connection | null = null;
  #session: Http2Session | null = null;
  #stream: Http2Stream | null = null;
  /** Bytes that the connection had read when the stream began; silence since then makes it suspect. */
  #readAtStart = 0;
  #headers: HeaderList | null = null;
  #body: BodyCollector | null = null;
  /** Sends a body that is not in memory. */
  #pump: BodyPump | null = null;

  constructor(message: Message, user: Http2User, keep: boolean, sink: CallSink) {
    this.call = new MeasuredCall(this, sink);
    this.#first = message;
    this.#message = message;
    this.#user = user;
    this.#keep = keep;
    this.#keepBody = keep && (message.readBody ?? true);
  }

  aim(message: Message): void {
    this.#first = message;
    this.#keepBody = this.#keep && (message.readBody ?? true);
  }

  get closed(): boolean {
    return this.#user.closed;
  }

  get sent(): number {
    return this.call.sent;
  }

  get title(): string {
    return this.#first.title;
  }

  start(now: number): void {
    // A function that continues after its virtual user has stopped generates no more load.
    if (this.#user.closed) return;
    this.#redirectsLeft = this.#first.redirectsMax;
    this.#retriesLeft = UNSEEN_RETRIES_MAX;
    this.call.begin(now, this.#first.timeouts);
    this.#user.started(this);
    this.#send(this.#first, now);
  }

  #send(message: Message, now: number): void {
    this.#message = message;
    this.#headers = null;
    this.#body = null;
    this.payloadIn = 0;
    // An upload is counted as it is sent.
    this.payloadOut = message.upload === null ? (message.source.body?.length ?? 0) : 0;
    if (message.origin.address !== undefined) this.#connect(now);
    else this.call.lookUp(message.origin, now, (later) => this.#connect(later));
  }

  #connect(now: number): void {
    const { origin } = this.#message;
    this.#connection = this.#user.connectionFor(origin, now);
    if (this.#connection !== null) this.#connection.add(this, now);
    else this.call.lookUp(origin, now, (later) => this.#connect(later));
  }

  opened(session: Http2Session, now: number): void {
    if (!session.usable) {
      this.#notSent();
      return;
    }
    this.call.awaitFirstByte(now);
    this.#readAtStart = this.#connection?.bytesRead ?? 0;
    const { body } = this.#message.source;
    const head = this.#user.cookies.apply(this.#message, this.call);
    this.#session = session;
    this.call.sent++;
    const stream = session.request(head, isSource(body) ? "later" : body, this);
    this.#stream = stream;
    if (isSource(body)) this.#sendBody(body, session, stream);
  }

  #sendBody(body: BodySource, session: Http2Session, stream: Http2Stream): void {
    this.call.uploading();
    this.#pump = new BodyPump(body, new StreamUpload(session, stream), false, {
      bodyPiece: (bytes) => {
        this.payloadOut += bytes;
        this.#connection?.sent(bytes);
      },
      bodySent: (now) => {
        this.#pump = null;
        session.endContent(stream);
        if (this.call.firstByteAt === 0) this.call.awaitFirstByte(now);
      },
      bodyFailed: (problem, now) => {
        this.#leave();
        this.call.fail("exception", problem, now);
      },
    });
  }

  connectionFailed({ kind, text }: Failure, now: number): void {
    const isCutOff = kind === "reset" && this.#headers !== null;
    this.#leave();
    this.call.fail(kind, isCutOff ? `${text} in mid-answer` : text, now);
  }

  abandon(): string {
    const connection = this.#connection;
    const missing =
      this.#stream === null
        ? "no connection"
        : this.call.status === 0
          ? "no answer"
          : "no complete answer";
    const silent = connection !== null && connection.bytesRead === this.#readAtStart;
    // A peer that has sent nothing since may be dead: the next call gets another connection.
    if (silent || connection?.open === false) connection?.retire();
    this.#leave();
    return missing;
  }

  cancel(): void {
    this.call.cancel();
    this.#leave();
  }

  headersCame(headers: HeaderList): void {
    this.call.firstByte(clock());
    this.call.status = headers.status;
    this.#headers = headers;
    if (this.#keepBody) this.#body = new BodyCollector(this.#first.bodyBytesMax);
    if (headers.setCookies.length > 0)
      this.#user.cookies.arrived(this.#message, headers.setCookies);
  }

  contentCame(bytes: Buffer, from: number, end: number): void {
    this.payloadIn += end - from;
    this.#connection?.received(end - from);
    this.#body?.add(bytes, from, end);
  }

  streamEnded(): void {
    const now = clock();
    this.#stream = null;
    this.#leave();
    if (!turn.reading) {
      this.#complete(now);
      return;
    }
    this.call.endedAt = now;
    turn.finishLater(this);
  }

  resume(): void {
    // The virtual user may have stopped by now.
    if (this.call.underWay) this.#complete(this.call.endedAt);
  }

  #complete(now: number): void {
    const location = this.#redirectsLeft > 0 ? (this.#headers?.location ?? null) : null;
    const { status } = this.call;
    const target = redirectOf(this.#message.source, status, location);
    if (target !== null) {
      this.#redirectsLeft--;
      this.#again(HttpMessage.of(HTTP2, target, this.#user.settings), now);
      return;
    }
    const { redirectsMax } = this.#first;
    const failure = this.#message.failureOf(status, redirectsMax, this.#redirectsLeft);
    if (failure === null) this.call.succeed(now);
    else this.call.fail("status", failure, now);
  }

  streamReset(code: number, unseen: boolean): void {
    this.#stream = null;
    this.#leave();
    if (unseen && this.#retriesLeft > 0) {
      this.#retriesLeft--;
      this.#again(this.#message, clock());
      return;
    }
    const { kind, text } = resetFailure(code);
    this.call.fail(kind, text, clock());
  }

  streamFailed(failure: Failure): void {
    this.#stream = null;
    this.connectionFailed(failure, clock());
  }

  /** The connection accepts no new stream: it is closing, or has used up its stream ids. */
  #notSent(): void {
    this.#connection?.retire();
    this.#leave();
    if (this.#retriesLeft > 0) {
      this.#retriesLeft--;
      this.#again(this.#message, clock());
    } else this.call.fail("reset", "the connection accepted no further request", clock());
  }

  /** Continues the same call on another stream. */
  #again(message: Message, now: number): void {
    this.call.again(message.timeouts);
    this.#send(message, now);
  }

  /** Detaches from stream and connection, so that their later events cannot finish the call twice. */
  #leave(): void {
    const stream = this.#stream;
    const session = this.#session;
    const connection = this.#connection;
    const pump = this.#pump;
    this.#stream = null;
    this.#session = null;
    this.#connection = null;
    this.#pump = null;
    pump?.stop();
    if (stream !== null) session?.letGo(stream, CANCEL);
    if (connection === null) return;
    if (!this.#user.settings.keepAlive) connection.retire();
    connection.remove(this);
  }

  finish(): Http2Response | undefined {
    this.#user.ended(this);
    this.#first.upload?.release?.();
    if (!this.#keep) return undefined;
    const kept =
      this.#headers === null
        ? null
        : new KeptStream(this.#headers, this.#body, this.#first.bodyBytesMax, this.#user);
    return new Http2Response(this.call, this.call.error, kept);
  }
}

class KeptStream implements KeptAnswer {
  readonly body: Buffer | null;
  readonly tooLong: boolean;
  readonly bodyBytesMax: number;
  readonly owner: Http2User;
  readonly #headers: HeaderList;

  constructor(
    headers: HeaderList,
    body: BodyCollector | null,
    bodyBytesMax: number,
    owner: Http2User,
  ) {
    this.#headers = headers;
    this.body = body?.take() ?? null;
    this.tooLong = body !== null && this.body === null;
    this.bodyBytesMax = bodyBytesMax;
    this.owner = owner;
  }

  readHeaders(): HeaderList["lines"] {
    return this.#headers.lines;
  }
}
