/** One connection to a gRPC server: an HTTP/2 session that carries many concurrent calls. */

import { clock } from "../call.ts";
import type { Failure } from "../errors.ts";
import { resetFailure } from "../http2/failure.ts";
import { CANCEL } from "../http2/frames.ts";
import type { ConstantFields } from "../http2/hpack/encoder.ts";
import type { HeaderList } from "../http2/hpack/header-list.ts";
import { Http2Session, type SessionOwner } from "../http2/session.ts";
import type { Http2Stream, StreamListener } from "../http2/stream.ts";
import { WireShare } from "../http2/wire-share.ts";
import type {
  CarriedCall,
  Connection,
  ConnectionFailure,
  ConnectionHost,
} from "../target/connection.ts";
import { StreamSocket } from "../target/stream-socket.ts";
import { TRACEPARENT } from "../trace-context.ts";
import { UNSENT_BYTES_MAX } from "./limits.ts";
import { MessageReader } from "./message-reader.ts";
import { messageText, nameOfStatus } from "./status.ts";

export interface GrpcCommand {
  /** "/shop.Catalog/GetItem". */
  readonly path: string;
  readonly constant: ConstantFields;
  /** All messages, each with its length prefix. */
  readonly content: Buffer;
  /** The response is a single message rather than a stream. */
  readonly single: boolean;
}

type Call = CarriedCall<GrpcCommand>;

export class GrpcConnection implements Connection<GrpcCommand>, SessionOwner {
  readonly #host: ConnectionHost;
  readonly #socket: StreamSocket;
  #session: Http2Session | null = null;
  readonly #streams = new Map<Call, GrpcStream>();
  readonly #in = new WireShare();
  readonly #out = new WireShare();
  #readBytes = 0;
  #writtenBytes = 0;
  #opened = false;
  #leaving = false;
  #over = false;

  constructor(host: ConnectionHost, now: number) {
    this.#host = host;
    this.#socket = new StreamSocket(host, this, now, "h2");
  }

  streamOpen(): void {
    this.#session = new Http2Session(this);
  }

  streamBytes(buffer: Buffer, end: number): void {
    this.#readBytes += end;
    this.#session?.receive(buffer, 0, end);
  }

  streamEnded(failure: ConnectionFailure): void {
    const begun = [...this.#streams.values()].some((stream) => stream.begun);
    const when = begun ? "in mid-answer" : "without an answer";
    this.#lost(
      failure.kind === "reset" ? { ...failure, text: `${failure.text} ${when}` } : failure,
    );
  }

  send(call: Call, now: number): void {
    const session = this.#session;
    call.wrote(0, 1, now);
    if (session === null || !session.usable) {
      call.failed({ kind: "reset", text: "the server is closing the connection" }, now);
      return;
    }
    const { constant, content, path } = call.command;
    const stream = new GrpcStream(this, call, this.#host.settings.bodyBytesMax);
    this.#streams.set(call, stream);
    this.#out.payload(content.length);
    const own = constant.rest.some(([name]) => name === TRACEPARENT);
    const traceparent = own ? "" : (call.traceparent?.() ?? "");
    const head = { constant, path, cookies: "", traceparent, isHead: false };
    stream.stream = session.request(head, content, stream);
  }

  forget(call: Call): boolean {
    const stream = this.#streams.get(call);
    this.#streams.delete(call);
    if (stream?.stream != null) this.#session?.letGo(stream.stream, CANCEL);
    this.#closeIfDone();
    return true;
  }

  destroy(): void {
    this.#over = true;
    this.#streams.clear();
    this.#socket.destroy();
  }

  write(bytes: Buffer): boolean {
    if (this.#over) return true;
    this.#writtenBytes += bytes.length;
    if (this.#socket.waitingBytes < UNSENT_BYTES_MAX) {
      this.#socket.write(bytes);
      return true;
    }
    this.#socket.write(bytes, () => this.#session?.resume());
    return false;
  }

  /** The server's limit on concurrent calls is known only now. */
  settingsCame(): void {
    if (this.#opened) return;
    this.#opened = true;
    const now = clock();
    this.#host.opened(this.#socket.times(now), now);
  }

  goingAway(): void {
    this.#leaving = true;
    // Close only after the streams that the server has not processed were reported.
    process.nextTick(() => this.#closeIfDone());
  }

  sessionFailed(failure: Failure): void {
    this.#lost(failure);
  }

  /** Cancels the stream, so that the server stops sending. */
  cut(stream: Http2Stream): void {
    this.#session?.letGo(stream, CANCEL);
  }

  /** Accounts content that arrived for one of the calls. */
  received(bytes: number): void {
    this.#in.payload(bytes);
  }

  /** A call has finished. A connection whose peer does not speak gRPC carries no further calls. */
  ended(stream: GrpcStream, now: number): void {
    if (!this.#streams.has(stream.call)) return;
    this.#account(stream, now);
    this.#streams.delete(stream.call);
    if (stream.report(now) === "protocol") this.#leaving = true;
    this.#closeIfDone();
  }

  /** Charges a call its own bytes and its share of the bytes that belong to no single call. */
  #account({ call, received }: GrpcStream, now: number): void {
    const active = this.#streams.size;
    const { length } = call.command.content;
    call.wrote(this.#out.take(this.#writtenBytes, length, active), 0, now);
    call.read(this.#in.take(this.#readBytes, received, active), now);
  }

  #closeIfDone(): void {
    if (this.#leaving && this.#streams.size === 0)
      this.#lost({ kind: "reset", text: "the server closed the connection" });
  }

  #lost(failure: ConnectionFailure): void {
    if (this.#over) return;
    const now = clock();
    for (const stream of [...this.#streams.values()]) {
      if (stream.begun) this.#account(stream, now);
    }
    this.destroy();
    this.#host.lost(failure, now);
  }
}

/** One call in flight. */
class GrpcStream implements StreamListener {
  readonly call: Call;
  stream: Http2Stream | null = null;
  received = 0;
  readonly #connection: GrpcConnection;
  readonly #reader: MessageReader;
  #headers: HeaderList | null = null;
  #trailers: HeaderList | null = null;
  #failure: ConnectionFailure | null = null;

  constructor(connection: GrpcConnection, call: Call, bytesMax: number) {
    this.#connection = connection;
    this.call = call;
    this.#reader = new MessageReader(bytesMax, call.keep);
  }

  get begun(): boolean {
    return this.#headers !== null;
  }

  headersCame(headers: HeaderList): void {
    this.#headers = headers;
    this.call.read(0, clock());
  }

  contentCame(bytes: Buffer, from: number, end: number): void {
    this.received += end - from;
    this.#connection.received(end - from);
    if (this.#reader.read(bytes, from, end)) return;
    this.#fail({ kind: "protocol", text: `the server sends ${this.#reader.problem}` });
  }

  trailersCame(trailers: HeaderList): void {
    this.#trailers = trailers;
  }

  streamEnded(): void {
    this.#connection.ended(this, clock());
  }

  streamReset(code: number): void {
    this.#end(resetFailure(code));
  }

  streamFailed(failure: Failure): void {
    this.#end(failure);
  }

  /** Cancels the stream; without that, the server would keep sending. */
  #fail(failure: ConnectionFailure): void {
    this.#failure = failure;
    if (this.stream !== null) this.#connection.cut(this.stream);
    this.#connection.ended(this, clock());
  }

  #end(failure: ConnectionFailure): void {
    this.#failure = failure;
    this.#connection.ended(this, clock());
  }

  /** Reports the outcome. Returns the kind of failure, or null on success. */
  report(now: number): ConnectionFailure["kind"] | null {
    const { call } = this;
    const failure = this.#failure ?? this.#problem();
    if (failure !== null) {
      call.failed(failure, now);
      return failure.kind;
    }
    const ended = this.#trailers ?? this.#headers;
    const code = Number(fieldOf(ended, "grpc-status"));
    call.status(code);
    if (code === 0) call.answered(this.#reader.messages, now);
    else {
      const name = nameOfStatus(code);
      const message = messageText(fieldOf(ended, "grpc-message") ?? "");
      call.refused(name, message === "" ? name : `${name}: ${message}`, now);
    }
    return null;
  }

  /** Checks a response that completed in order; null when it is valid. */
  #problem(): ConnectionFailure | null {
    const { status = 0 } = this.#headers ?? {};
    if (status !== 200)
      return { kind: "status", text: `the server answered with status ${status}` };
    if (fieldOf(this.#headers, "content-type")?.startsWith("application/grpc") !== true)
      return { kind: "protocol", text: "the server does not answer with gRPC" };
    const code = fieldOf(this.#trailers ?? this.#headers, "grpc-status");
    if (code === null || !/^\d{1,3}$/.test(code))
      return { kind: "protocol", text: "the answer ends without a gRPC status" };
    const messages = this.#reader.messages.length;
    if (!this.#reader.between) return { kind: "protocol", text: "half a message in mid-answer" };
    if (code === "0" && this.call.command.single && messages !== 1)
      return { kind: "protocol", text: `${messages} messages instead of one` };
    return null;
  }
}

function fieldOf(headers: HeaderList | null, wanted: string): string | null {
  for (const [name, value] of headers?.lines ?? []) if (name === wanted) return value;
  return null;
}
