/**
 * One request and its answer as a stream of an HTTP/2 connection. Like the exchange of HTTP/1.1 it is
 * bound to its virtual user and started again and again.
 */

import http2 from "node:http2";
import { type ErrorKind, errorText } from "../errors.ts";
import { BodyCollector } from "../http/body-collector.ts";
import { redirectOf } from "../http/redirect.ts";
import { clock } from "../net/clock.ts";
import { type Sweepable, sweeper } from "../net/sweeper.ts";
import type { BoundCall, CallRecord, CallSink } from "../protocol.ts";
import type { Http2Connection } from "./connection.ts";
import { type Failure, failureOf } from "./failure.ts";
import { UNSEEN_RETRIES_MAX } from "./limits.ts";
import { Http2Message } from "./message.ts";
import { Http2Response } from "./response.ts";
import type { Http2User } from "./user.ts";

export class Http2Exchange implements BoundCall, CallRecord, Sweepable {
  message: Http2Message;
  errorKind: ErrorKind | null = null;
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
  /** Content of the current stream, without framing. */
  payloadIn = 0;
  payloadOut = 0;

  readonly #first: Http2Message;
  readonly #user: Http2User;
  readonly #keep: boolean;
  readonly #keepBody: boolean;
  readonly #sink: CallSink;
  #error: string | null = null;
  #redirectsLeft = 0;
  #retriesLeft = 0;
  #connection: Http2Connection | null = null;
  #stream: http2.ClientHttp2Stream | null = null;
  /** Bytes the connection had read when the stream began: silence since then makes it suspect. */
  #readAtStart = 0;
  #headers: http2.IncomingHttpHeaders | null = null;
  #body: BodyCollector | null = null;

  constructor(message: Http2Message, user: Http2User, keep: boolean, sink: CallSink) {
    this.message = message;
    this.#first = message;
    this.#user = user;
    this.#keep = keep;
    this.#keepBody = keep && (message.source.readBody ?? true);
    this.#sink = sink;
  }

  start(now: number): void {
    this.message = this.#first;
    this.errorKind = null;
    this.#error = null;
    this.startedAt = now;
    this.firstByteAt = 0;
    this.connectMs = -1;
    this.tlsMs = -1;
    this.bytesIn = 0;
    this.bytesOut = 0;
    this.#redirectsLeft = this.message.redirectsMax;
    this.#retriesLeft = UNSEEN_RETRIES_MAX;
    this.#begin(now);
  }

  #begin(now: number): void {
    this.status = 0;
    this.#headers = null;
    this.#body = null;
    this.payloadIn = 0;
    this.payloadOut = this.message.source.body?.length ?? 0;
    this.#setDeadline(now);
    sweeper.add(this);
    this.#user.started(this);
    this.#connection = this.#user.connectionFor(this.message.origin, now);
    this.#connection.add(this, now);
  }

  #setDeadline(now: number): void {
    this.deadline = Math.min(
      now + this.message.firstByteTimeoutMs,
      this.startedAt + this.message.timeoutMs,
    );
  }

  /** Only while no connection is open yet: fail earlier than the whole call would. */
  connecting(now: number): void {
    this.deadline = Math.min(this.deadline, now + this.message.connectTimeoutMs);
  }

  opened(session: http2.ClientHttp2Session, now: number): void {
    this.#setDeadline(now);
    this.#readAtStart = this.#connection?.bytesRead ?? 0;
    const body = this.message.source.body;
    let stream: http2.ClientHttp2Stream;
    try {
      stream = session.request(this.#user.headersFor(this.message), { endStream: body === null });
    } catch (error) {
      this.#notSent(error);
      return;
    }
    this.#stream = stream;
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
    if (body !== null) stream.end(body);
  }

  connectionFailed(failure: Failure, now: number): void {
    this.#leave();
    this.#fail(failure.kind, failure.text, now);
  }

  timedOut(now: number): void {
    const connection = this.#connection;
    const waited = Math.round(now - this.startedAt);
    const silent = connection !== null && connection.bytesRead === this.#readAtStart;
    const what =
      this.#stream === null
        ? "no connection"
        : this.status === 0
          ? "no answer"
          : "no complete answer";
    // Whoever has not sent a byte since may be gone for good: the next call gets another connection.
    if (silent || connection?.open === false) connection?.retire();
    this.#leave(http2.constants.NGHTTP2_CANCEL);
    this.#fail("timeout", `${what} after ${waited} ms`, now);
  }

  /** Ends it without a word: the virtual user is gone. */
  cancel(): void {
    sweeper.remove(this);
    this.#leave(http2.constants.NGHTTP2_CANCEL);
  }

  /** For a call that could not even begin, such as one to a host that nobody knows. */
  failBeforeStart(kind: ErrorKind, text: string, startedAt: number): void {
    this.startedAt = startedAt;
    this.#fail(kind, text, clock());
  }

  #onResponse(stream: http2.ClientHttp2Stream, headers: http2.IncomingHttpHeaders): void {
    if (stream !== this.#stream) return;
    if (this.firstByteAt === 0) this.firstByteAt = clock();
    this.deadline = this.startedAt + this.message.timeoutMs;
    this.status = Number(headers[http2.constants.HTTP2_HEADER_STATUS] ?? 0);
    this.#headers = headers;
    if (this.#keepBody) this.#body = new BodyCollector(this.#user.settings.bodyBytesMax);
    const cookies = headers["set-cookie"];
    if (cookies !== undefined) this.#user.cookiesArrived(this.message, cookies);
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
    const target = redirectOf(this.message.source, this.status, location);
    if (target !== null) {
      this.#redirectsLeft--;
      this.#continueWith(new Http2Message(target, this.#user.settings));
      return;
    }
    sweeper.remove(this);
    this.endedAt = now;
    if (!this.message.succeeded(this.status)) {
      this.errorKind = "status";
      this.#error = `the server answered with status ${this.status}`;
    }
    this.#tell();
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
      this.#continueWith(this.message);
      return;
    }
    this.#fail(failure.kind, failure.text, clock());
  }

  /** The session took no new stream: it is closing, or has used up its stream numbers. */
  #notSent(error: unknown): void {
    this.#connection?.retire();
    this.#leave();
    if (this.#retriesLeft > 0) {
      this.#retriesLeft--;
      this.#continueWith(this.message);
    } else this.#fail("reset", errorText(error), clock());
  }

  /** The same call goes on with another stream. */
  #continueWith(message: Http2Message): void {
    sweeper.remove(this);
    this.message = message;
    if (message.origin.address !== undefined) {
      this.#begin(clock());
      return;
    }
    message.origin.prepare(this.#user).then(
      () => {
        if (!this.#user.closed) this.#begin(clock());
      },
      (problem: unknown) => {
        if (!this.#user.closed) this.#fail("dns", errorText(problem), clock());
      },
    );
  }

  /** Lets go of stream and connection, so that nothing they do later can be heard as a second end. */
  #leave(cancelCode?: number): void {
    const stream = this.#stream;
    const connection = this.#connection;
    this.#stream = null;
    this.#connection = null;
    if (cancelCode !== undefined) stream?.close(cancelCode);
    this.#user.ended(this);
    if (connection === null) return;
    if (!this.#user.settings.keepAlive) connection.retire();
    connection.remove(this);
  }

  #fail(kind: ErrorKind, text: string, now: number): void {
    sweeper.remove(this);
    this.errorKind = kind;
    this.#error = text;
    this.endedAt = now;
    if (this.firstByteAt === 0) this.firstByteAt = now;
    this.#tell();
  }

  #tell(): void {
    this.#sink.callFinished(this, this.#keep ? this.#response() : undefined);
  }

  #response(): Http2Response {
    const headers = this.#headers;
    const body = this.#keepBody && this.#body !== null ? this.#body.take() : null;
    const kept = headers === null ? null : { readHeaders: () => linesOf(headers), body };
    return new Http2Response(this, this.#error, kept);
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
