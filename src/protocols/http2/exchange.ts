/**
 * One request and its answer as a stream of an HTTP/2 connection. Like the exchange of HTTP/1.1 it is
 * bound to its virtual user and started again and again.
 */

import http2, { type OutgoingHttpHeaders } from "node:http2";
import { errorText } from "../../core/base/error-text.ts";
import { type CallOwner, clock, MeasuredCall } from "../call.ts";
import type { Failure } from "../errors.ts";
import { BodyCollector } from "../http/body-collector.ts";
import { BodyPump } from "../http/body-pump.ts";
import { type BodySource, isSource } from "../http/body-source.ts";
import { type HttpExchange, HttpMessage, type HttpVersion } from "../http/message.ts";
import { redirectOf } from "../http/redirect.ts";
import type { CallSink } from "../protocol.ts";
import type { CarriedStream, Http2Connection } from "./connection.ts";
import { encoder } from "./encode.ts";
import { failureOf } from "./failure.ts";
import { UNSEEN_RETRIES_MAX } from "./limits.ts";
import { Http2Response } from "./response.ts";
import { type Http2User, http2Sessions } from "./user.ts";

type Message = HttpMessage<OutgoingHttpHeaders>;

export const HTTP2: HttpVersion<OutgoingHttpHeaders> = {
  protocol: "http2",
  encoder,
  exchange: (message, session, keep, sink) =>
    new Http2Exchange(message, session.state(http2Sessions), keep, sink),
  exchangeOf: (bound) => (bound instanceof Http2Exchange ? bound : null),
};

class Http2Exchange implements HttpExchange<OutgoingHttpHeaders>, CallOwner, CarriedStream {
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
  #stream: http2.ClientHttp2Stream | null = null;
  /** Bytes the connection had read when the stream began: silence since then makes it suspect. */
  #readAtStart = 0;
  #headers: http2.IncomingHttpHeaders | null = null;
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
    // A function that goes on after its virtual user has ended makes no more load.
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
    // An upload counts as it goes.
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

  opened(session: http2.ClientHttp2Session, now: number): void {
    this.call.awaitFirstByte(now);
    this.#readAtStart = this.#connection?.bytesRead ?? 0;
    const body = this.#message.source.body;
    let stream: http2.ClientHttp2Stream;
    try {
      stream = session.request(this.#user.cookies.apply(this.#message), {
        endStream: body === null,
      });
    } catch (error) {
      this.#notSent(error);
      return;
    }
    this.#stream = stream;
    this.call.sent++;
    let failed: unknown = null;
    stream.on("response", (headers) => this.#onResponse(stream, headers));
    stream.on("end", () => {
      // A reset also ends the body; then the close that follows tells.
      if (stream.rstCode === http2.constants.NGHTTP2_NO_ERROR) this.#onEnd(stream);
    });
    stream.on("error", (error) => {
      failed = error;
    });
    stream.on("close", () => this.#onClose(stream, failed));
    stream.on("data", (piece: Buffer) => this.#onData(stream, piece));
    if (isSource(body)) this.#sendBody(body, stream);
    else if (body !== null) stream.end(body);
  }

  #sendBody(body: BodySource, stream: http2.ClientHttp2Stream): void {
    this.call.uploading();
    this.#pump = new BodyPump(body, stream, false, {
      bodyPiece: (bytes) => {
        this.payloadOut += bytes;
        this.#connection?.sent(bytes);
      },
      bodySent: (now) => {
        this.#pump = null;
        stream.end();
        if (this.call.firstByteAt === 0) this.call.awaitFirstByte(now);
      },
      bodyFailed: (problem, now) => {
        this.#leave(http2.constants.NGHTTP2_CANCEL);
        this.call.fail("exception", problem, now);
      },
    });
  }

  connectionFailed(failure: Failure, now: number): void {
    this.#leave();
    this.call.fail(failure.kind, failure.text, now);
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
    // Whoever has not sent a byte since may be gone for good: the next call gets another connection.
    if (silent || connection?.open === false) connection?.retire();
    this.#leave(http2.constants.NGHTTP2_CANCEL);
    return missing;
  }

  cancel(): void {
    this.call.cancel();
    this.#leave(http2.constants.NGHTTP2_CANCEL);
  }

  #onResponse(stream: http2.ClientHttp2Stream, headers: http2.IncomingHttpHeaders): void {
    if (stream !== this.#stream) return;
    this.call.firstByte(clock());
    this.call.status = Number(headers[http2.constants.HTTP2_HEADER_STATUS] ?? 0);
    this.#headers = headers;
    if (this.#keepBody) this.#body = new BodyCollector(this.#first.bodyBytesMax);
    const cookies = headers["set-cookie"];
    if (cookies !== undefined) this.#user.cookies.arrived(this.#message, cookies);
  }

  #onData(stream: http2.ClientHttp2Stream, piece: Buffer): void {
    if (stream !== this.#stream) return;
    this.payloadIn += piece.length;
    this.#connection?.received(piece.length);
    this.#body?.add(piece, 0, piece.length);
  }

  #onEnd(stream: http2.ClientHttp2Stream): void {
    if (stream !== this.#stream || this.#headers === null) return;
    const now = clock();
    const location = this.#redirectsLeft > 0 ? (this.#headers["location"] ?? null) : null;
    this.#leave();
    const { status } = this.call;
    const target = redirectOf(this.#message.source, status, location);
    if (target !== null) {
      this.#redirectsLeft--;
      this.#again(new HttpMessage(HTTP2, target, this.#user.settings), now);
      return;
    }
    if (this.#message.succeeded(status)) this.call.succeed(now);
    else this.call.fail("status", `the server answered with status ${status}`, now);
  }

  /** The stream closed before the answer was complete. */
  #onClose(stream: http2.ClientHttp2Stream, error: unknown): void {
    const connection = this.#connection;
    if (stream !== this.#stream || connection === null) return;
    const code = stream.rstCode ?? http2.constants.NGHTTP2_NO_ERROR;
    const failure = connection.failure ?? failureOf(code, error, connection.ended);
    this.#leave();
    const refused = code === http2.constants.NGHTTP2_REFUSED_STREAM;
    if (refused && connection.goneAway && this.#retriesLeft > 0) {
      this.#retriesLeft--;
      this.#again(this.#message, clock());
      return;
    }
    this.call.fail(failure.kind, failure.text, clock());
  }

  /** The session took no new stream: it is closing, or has used up its stream numbers. */
  #notSent(error: unknown): void {
    this.#connection?.retire();
    this.#leave();
    if (this.#retriesLeft > 0) {
      this.#retriesLeft--;
      this.#again(this.#message, clock());
    } else this.call.fail("reset", errorText(error), clock());
  }

  /** The same call goes on with another stream. */
  #again(message: Message, now: number): void {
    this.call.again(message.timeouts);
    this.#send(message, now);
  }

  /** Lets go of stream and connection, so that nothing they do later can be heard as a second end. */
  #leave(cancelCode?: number): void {
    const stream = this.#stream;
    const connection = this.#connection;
    const pump = this.#pump;
    this.#stream = null;
    this.#connection = null;
    this.#pump = null;
    pump?.stop();
    // An answer that came before the body was sent: the rest is not wanted.
    const code = cancelCode ?? (pump === null ? undefined : http2.constants.NGHTTP2_CANCEL);
    if (code !== undefined) stream?.close(code);
    if (connection === null) return;
    if (!this.#user.settings.keepAlive) connection.retire();
    connection.remove(this);
  }

  finish(): Http2Response | undefined {
    this.#user.ended(this);
    if (!this.#keep) return undefined;
    const headers = this.#headers;
    const body = this.#body?.take() ?? null;
    const kept =
      headers === null
        ? null
        : {
            readHeaders: () => linesOf(headers),
            body,
            tooLong: this.#body !== null && body === null,
            bodyBytesMax: this.#first.bodyBytesMax,
            decoded: this.#user.decoded,
          };
    return new Http2Response(this.call, this.call.error, kept);
  }
}

function linesOf(headers: http2.IncomingHttpHeaders): (readonly [string, string])[] {
  const lines: (readonly [string, string])[] = [];
  for (const [name, value] of Object.entries(headers)) {
    if (name.startsWith(":") || value === undefined) continue;
    for (const item of Array.isArray(value) ? value : [value]) lines.push([name, item]);
  }
  return lines;
}
