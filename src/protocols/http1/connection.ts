/**
 * \n One TCP or TLS connection that carries one exchange at a time.
 *
 *   connecting ──open──▶ idle ──send──▶ head ──▶ body ──▶ idle …          any ──▶ closed
 *
 * All connections of a core share one read buffer: Node fills it, calls back, and the callback is done with it when it
 * returns (`onread`), which saves a third of the CPU time of `data` events. A head that is split over reads is
 * collected in a separate buffer, bounded by HEAD_BYTES_MAX.
 */

import type net from "node:net";
import { errorText } from "../../core/base/error-text.ts";
import { clock } from "../call.ts";
import { kindOfSocketError } from "../errors.ts";
import { BodyPump } from "../http/body-pump.ts";
import type { BodySource } from "../http/body-source.ts";
import { openSocket, type SocketOptions, secure } from "../net/open-socket.ts";
import type { Origin } from "../net/origin.ts";
import { openTunnel } from "../net/tunnel.ts";
import { type Deferred, turn } from "../net/turn.ts";
import type { CallSettings } from "../protocol.ts";
import { ChunkedReader } from "./chunked.ts";
import type { CarriedExchange, CarryingConnection } from "./contract.ts";
import type { Http1Bytes } from "./encode.ts";
import {
  BODY_CHUNKED,
  BODY_LENGTH,
  BODY_NONE,
  BODY_UNTIL_CLOSE,
  earlyProblem,
  findHeadEnd,
  HEAD_INCOMPLETE,
  Head,
  parseHead,
} from "./head.ts";
import { HeadCache } from "./head-cache.ts";
import { HEAD_BYTES_MAX, INTERIM_ANSWERS_MAX, READ_BUFFER_BYTES } from "./limits.ts";
import { RepeatedText } from "./repeated-text.ts";

const readBuffer = Buffer.allocUnsafeSlow(READ_BUFFER_BYTES);
const readWords = new Uint32Array(readBuffer.buffer, readBuffer.byteOffset, READ_BUFFER_BYTES / 4);

const IN_HEAD = 0;
const IN_BODY = 1;

/** Receives the events of a connection. */
export interface ConnectionOwner {
  readonly settings: CallSettings;
  /** Number of the virtual user that owns the connections. */
  readonly user: number;
  /** An open connection has become idle. */
  idle(connection: Http1Connection): void;
  /** A connection has closed. */
  connectionClosed(connection: Http1Connection): void;
}

export class Http1Connection implements CarryingConnection, Deferred {
  readonly origin: Origin;
  /** Connected and, for TLS, secured. */
  open = false;
  readonly #owner: ConnectionOwner;
  /** Socket to the proxy until its tunnel is open. */
  #socket: net.Socket;
  readonly #heads: HeadCache;
  readonly #texts: RepeatedText;
  readonly #ownHead = new Head();
  /** Head of the current response: this connection's own, or a cached one, which must not be changed. */
  #head = this.#ownHead;
  #exchange: CarriedExchange | null;
  #closed = false;
  #state = IN_HEAD;
  #interim = 0;
  #bodyLeft = 0;
  #chunked: ChunkedReader | null = null;
  /** Start of a head that was split over reads; null nearly always. */
  #partial: Buffer | null = null;
  #tcpConnectedAt = 0;
  /** Bytes of the request that wait to be written. */
  #unwritten: Http1Bytes | null = null;
  /** Sends a body that is not in memory; null once it is sent, which is nearly always. */
  #pump: BodyPump | null = null;

  constructor(origin: Origin, owner: ConnectionOwner, exchange: CarriedExchange, now: number) {
    this.origin = origin;
    this.#owner = owner;
    const { heads, texts } = repeatedBy(origin);
    this.#heads = heads;
    this.#texts = texts;
    this.#exchange = exchange;
    exchange.connection = this;
    exchange.call.connecting(now);
    // Without TLS, a proxy reads the request itself (absolute form); with TLS, it forwards the bytes.
    this.#socket = origin.proxy !== null && origin.secure ? this.#tunnel(now) : this.#connect(now);
  }

  #connect(startedAt: number): net.Socket {
    const socket = openSocket(this.origin, {
      ...this.#socketOptions(),
      onread: {
        buffer: readBuffer,
        callback: (count: number): boolean => {
          this.#onBytes(count);
          return true;
        },
      },
    });
    socket.on("connect", () => {
      const now = clock();
      this.#connected(startedAt, now);
      if (!this.origin.secure) this.#opened(now);
    });
    return this.#listen(socket);
  }

  #tunnel(startedAt: number): net.Socket {
    return openTunnel(this.origin, {
      tunnelOpen: (tunnel) => {
        this.#connected(startedAt, clock());
        const socket = this.#listen(secure(tunnel, this.origin, this.#socketOptions()));
        this.#socket = socket;
        // Node supports `onread` only for sockets that it opened itself.
        socket.on("data", (piece: Buffer) => {
          for (let at = 0; at < piece.length && !this.#closed; at += READ_BUFFER_BYTES) {
            this.#onBytes(piece.copy(readBuffer, 0, at, at + READ_BUFFER_BYTES));
          }
        });
      },
      tunnelFailed: (error) => this.#broke(error),
    });
  }

  #socketOptions(): SocketOptions {
    const { settings, user } = this.#owner;
    return { insecure: settings.insecure, user, alpn: "http/1.1" };
  }

  #connected(startedAt: number, now: number): void {
    this.#tcpConnectedAt = now;
    if (this.#exchange !== null) this.#exchange.call.connectMs = now - startedAt;
  }

  #listen(socket: net.Socket): net.Socket {
    if (this.origin.secure) {
      socket.on("secureConnect", () => {
        const now = clock();
        if (this.#exchange !== null) this.#exchange.call.tlsMs = now - this.#tcpConnectedAt;
        this.#opened(now);
      });
    }
    socket.on("error", (error) => this.#broke(error));
    socket.on("end", () => this.#ended());
    socket.on("close", () => this.#ended());
    return socket;
  }

  #opened(now: number): void {
    this.open = true;
    const exchange = this.#exchange;
    if (exchange !== null) this.#write(exchange, now);
    else this.#owner.idle(this);
  }

  /** Puts an exchange on this open, idle connection. */
  send(exchange: CarriedExchange, now: number): void {
    this.#exchange = exchange;
    exchange.connection = this;
    this.#write(exchange, now);
  }

  #write(exchange: CarriedExchange, now: number): void {
    const bytes = exchange.source.bytesFor(exchange);
    const { upload } = exchange.message;
    exchange.call.awaitFirstByte(now);
    this.#state = IN_HEAD;
    this.#interim = 0;
    if (turn.holdsWrites && upload === null) {
      this.#unwritten = bytes;
      turn.writeLater(this);
      return;
    }
    this.#writeNow(exchange, bytes);
    if (upload !== null) this.#sendBody(upload, exchange);
  }

  resume(): void {
    const bytes = this.#unwritten;
    this.#unwritten = null;
    // Write nothing if it was closed before its turn.
    if (bytes !== null && this.#exchange !== null) this.#writeNow(this.#exchange, bytes);
  }

  #writeNow({ call }: CarriedExchange, bytes: Http1Bytes): void {
    call.bytesOut += bytes.length;
    call.sent++;
    if (typeof bytes === "string") this.#socket.write(bytes, "latin1");
    else this.#socket.write(bytes);
  }

  #sendBody(upload: BodySource, exchange: CarriedExchange): void {
    const { call } = exchange;
    call.uploading();
    this.#pump = new BodyPump(upload, this.#socket, upload.length === null, {
      bodyPiece: (bytes) => {
        call.bytesOut += bytes;
      },
      bodySent: (now) => {
        this.#pump = null;
        if (call.firstByteAt === 0) call.awaitFirstByte(now);
      },
      bodyFailed: (problem, now) => {
        this.#exchange = null;
        exchange.connection = null;
        this.drop();
        call.fail("exception", problem, now);
      },
    });
  }

  get exchange(): CarriedExchange | null {
    return this.#exchange;
  }

  close(): void {
    this.#exchange = null;
    this.#unwritten = null;
    this.#closed = true;
    this.#pump?.stop();
    this.#pump = null;
    this.#socket.destroy();
  }

  #onBytes(count: number): void {
    const exchange = this.#exchange;
    if (exchange === null) {
      // Close the connection on unsolicited bytes; it cannot be trusted any more.
      this.drop();
      return;
    }
    const now = clock();
    if (this.#unwritten !== null) {
      this.#fail(exchange, "an answer came before its request was sent", now);
      return;
    }
    turn.answered();
    exchange.call.bytesIn += count;
    if (this.#state === IN_HEAD) this.#readHead(exchange, count, now);
    else this.#readBody(exchange, readBuffer, 0, count, now);
  }

  #readHead(exchange: CarriedExchange, count: number, now: number): void {
    exchange.call.firstByte(now);
    let buffer = readBuffer;
    let end = count;
    const partial = this.#partial;
    if (partial !== null) {
      buffer = Buffer.concat([partial, readBuffer.subarray(0, count)]);
      end = buffer.length;
      // Parse again only when it is complete: a head that arrives byte by byte must not cost quadratic time.
      if (findHeadEnd(buffer, 0, Math.max(0, partial.length - 3), end) < 0) {
        this.#keepPartial(exchange, buffer, partial.length, now);
        return;
      }
      this.#partial = null;
    }
    const { isHead } = exchange.message;
    const known =
      buffer === readBuffer ? this.#heads.find(readBuffer, readWords, end, isHead) : null;
    if (known !== null) {
      this.#head = known;
      this.#gotHead(exchange, buffer, 0, this.#heads.length, end, now);
      return;
    }
    const head = this.#ownHead;
    this.#head = head;
    let start = 0;
    for (;;) {
      const headEnd = parseHead(head, buffer, start, end, isHead);
      if (headEnd === HEAD_INCOMPLETE) {
        this.#keepPartial(exchange, buffer.subarray(start, end), 0, now);
        return;
      }
      if (headEnd < 0) {
        this.#fail(exchange, head.problem ?? "the head is malformed", now);
        return;
      }
      if (head.status >= 200) {
        if (buffer === readBuffer && start === 0) this.#heads.keep(buffer, headEnd, head, isHead);
        this.#gotHead(exchange, buffer, start, headEnd, end, now);
        return;
      }
      if (++this.#interim > INTERIM_ANSWERS_MAX) {
        this.#fail(exchange, `more than ${INTERIM_ANSWERS_MAX} interim answers`, now);
        return;
      }
      start = headEnd;
    }
  }

  /** Keeps the head for the next read, unless it is not HTTP at all. */
  #keepPartial(exchange: CarriedExchange, bytes: Buffer, scannedTo: number, now: number): void {
    const problem =
      bytes.length > HEAD_BYTES_MAX
        ? "the headers are longer than 64 KiB"
        : earlyProblem(bytes, 0, scannedTo, bytes.length);
    if (problem === null) this.#partial = Buffer.from(bytes);
    else this.#fail(exchange, problem, now);
  }

  #gotHead(
    exchange: CarriedExchange,
    buffer: Buffer,
    from: number,
    headEnd: number,
    end: number,
    now: number,
  ): void {
    const head = this.#head;
    exchange.call.status = head.status;
    if (head.hasSetCookie) {
      exchange.source.cookiesArrived(exchange.message, buffer.toString("latin1", from, headEnd));
    }
    if (head.hasLocation && exchange.wantsLocation) {
      exchange.location = headerOf(buffer.toString("latin1", from, headEnd), "location");
    }
    if (head.bodyKind === BODY_NONE) {
      if (exchange.keep) exchange.keepWhole(this.#texts, buffer, from, headEnd, headEnd);
      this.#finish(exchange, headEnd === end, now);
      return;
    }
    if (head.bodyKind === BODY_LENGTH && end - headEnd >= head.bodyLength) {
      const bodyEnd = headEnd + head.bodyLength;
      if (exchange.keep) exchange.keepWhole(this.#texts, buffer, from, headEnd, bodyEnd);
      this.#finish(exchange, bodyEnd === end, now);
      return;
    }
    if (exchange.keep) exchange.keepHead(buffer, from, headEnd);
    this.#state = IN_BODY;
    this.#bodyLeft = head.bodyLength;
    if (head.bodyKind === BODY_CHUNKED) {
      this.#chunked ??= new ChunkedReader();
      this.#chunked.reset();
    }
    if (headEnd < end) this.#readBody(exchange, buffer, headEnd, end, now);
  }

  #readBody(
    exchange: CarriedExchange,
    buffer: Buffer,
    from: number,
    end: number,
    now: number,
  ): void {
    const kind = this.#head.bodyKind;
    if (kind === BODY_CHUNKED && this.#chunked !== null) {
      const chunked = this.#chunked;
      const outcome = chunked.feed(buffer, from, end, (dataFrom, dataEnd) => {
        if (exchange.keep) exchange.keepPiece(buffer, dataFrom, dataEnd);
      });
      if (outcome === "broken")
        this.#fail(exchange, chunked.problem ?? "the chunks are malformed", now);
      else if (outcome === "done") this.#finish(exchange, from + chunked.taken === end, now);
      return;
    }
    const take = kind === BODY_LENGTH ? Math.min(this.#bodyLeft, end - from) : end - from;
    if (exchange.keep) exchange.keepPiece(buffer, from, from + take);
    if (kind !== BODY_LENGTH) return;
    this.#bodyLeft -= take;
    if (this.#bodyLeft === 0) this.#finish(exchange, from + take === end, now);
  }

  /** The response is complete. `clean` is false when unexpected bytes follow it. */
  #finish(exchange: CarriedExchange, clean: boolean, now: number): void {
    this.#exchange = null;
    exchange.connection = null;
    // Close if the response arrived before the body was sent: the rest of it would be read as a request.
    const sent = this.#pump === null;
    if (clean && sent && this.#head.keepAlive && this.#owner.settings.keepAlive)
      this.#owner.idle(this);
    else this.drop();
    if (!turn.reading) exchange.complete(now);
    else {
      exchange.call.endedAt = now;
      turn.finishLater(exchange);
    }
  }

  #fail(exchange: CarriedExchange, problem: string, now: number): void {
    this.#exchange = null;
    exchange.connection = null;
    this.drop();
    exchange.call.fail("protocol", problem, now);
  }

  drop(): void {
    if (this.#closed) return;
    this.close();
    this.#owner.connectionClosed(this);
  }

  #broke(error: Error): void {
    const exchange = this.#exchange;
    const duringTls = this.origin.secure && !this.open && this.#tcpConnectedAt > 0;
    if (exchange !== null) exchange.connection = null;
    this.drop();
    exchange?.call.fail(kindOfSocketError(error, duringTls), errorText(error), clock());
  }

  #ended(): void {
    const exchange = this.#exchange;
    if (exchange === null) {
      this.drop();
      return;
    }
    // The partial head may show the cause: malformed bytes are a protocol error, not a reset.
    const partial = this.#partial;
    if (partial !== null && parseHead(this.#head, partial, 0, partial.length, false) < 0) {
      this.#fail(exchange, this.#head.problem ?? "the head is malformed", clock());
      return;
    }
    const complete = this.#state === IN_BODY && this.#head.bodyKind === BODY_UNTIL_CLOSE;
    const started = exchange.call.firstByteAt > 0;
    const duringTls = this.origin.secure && !this.open;
    exchange.connection = null;
    this.drop();
    if (complete) exchange.complete(clock());
    else if (duringTls)
      exchange.call.fail(
        "tls",
        "the server closed the connection during the TLS handshake",
        clock(),
      );
    else
      exchange.call.fail(
        "reset",
        `the server closed the connection ${started ? "in mid-answer" : "without an answer"}`,
        clock(),
      );
  }
}

/** Caches of what an origin sends repeatedly. */
interface Repeated {
  readonly heads: HeadCache;
  readonly texts: RepeatedText;
}

const repeated = new Map<Origin, Repeated>();

function repeatedBy(origin: Origin): Repeated {
  let found = repeated.get(origin);
  if (found === undefined) {
    found = { heads: new HeadCache(), texts: new RepeatedText(readBuffer, readWords) };
    repeated.set(origin, found);
  }
  return found;
}

/** Returns the value of the first header of that name in a raw head. */
function headerOf(head: string, name: string): string | null {
  const match = new RegExp(`\\r\\n${name}:[ \\t]*([^\\r]*)`, "i").exec(head);
  return match?.[1]?.trim() ?? null;
}
