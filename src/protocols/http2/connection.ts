/**
 * One HTTP/2 connection: a socket of our own, so that connecting and TLS are measured apart, handed
 * to node:http2 once it is open.
 *
 *   connecting ──▶ open ──GOAWAY, time-out──▶ retired ──last stream ends──▶ closed
 *
 * Over TLS the protocol is agreed on by ALPN; without TLS the server must know (h2c with prior
 * knowledge). Retired connections finish what they carry and take nothing new.
 *
 * Wire bytes are those of the socket. Whoever ends takes its own payload and an even share of the
 * rest that nobody took yet, so sums over calls are exact, and single values good guesses where
 * streams overlap.
 */

import http2 from "node:http2";
import type net from "node:net";
import tls from "node:tls";
import { clock, type MeasuredCall } from "../call.ts";
import type { Failure } from "../errors.ts";
import { openSocket, type SocketOptions, secure } from "../net/open-socket.ts";
import type { Origin } from "../net/origin.ts";
import { openTunnel } from "../net/tunnel.ts";
import { CLOSED, connectionFailure, goawayFailure, NO_HTTP2 } from "./failure.ts";
import { RECEIVE_WINDOW_BYTES, STREAMS_PER_CONNECTION_MAX } from "./limits.ts";
import { WireShare } from "./wire-share.ts";

/** A call as the connection that carries it, or that it waits for, sees it. */
export interface CarriedStream {
  readonly call: MeasuredCall;
  /** Content so far, without framing. */
  readonly payloadIn: number;
  readonly payloadOut: number;
  /** May send now. */
  opened(session: http2.ClientHttp2Session, now: number): void;
  /** The connection ended before it could send. */
  connectionFailed(failure: Failure, now: number): void;
}

export interface Http2ConnectionOwner {
  gone(connection: Http2Connection): void;
}

export class Http2Connection {
  readonly origin: Origin;
  /** Streams under way and calls that wait for the connection to open. */
  active = 0;
  /** A GOAWAY came: streams refused from now on were never looked at by the server. */
  goneAway = false;
  failure: Failure | null = null;
  readonly #owner: Http2ConnectionOwner;
  readonly #startedAt: number;
  /** To the proxy, as long as its tunnel is not open. */
  #socket: net.Socket;
  #session: http2.ClientHttp2Session | null = null;
  /** Calls that wait for the connection, or for the server's word on how many may be under way. */
  readonly #waiting = new Set<CarriedStream>();
  #settingsKnown = false;
  #retired = false;
  #closed = false;
  #tcpConnectedAt = 0;
  readonly #in = new WireShare();
  readonly #out = new WireShare();

  constructor(origin: Origin, owner: Http2ConnectionOwner, options: SocketOptions, now: number) {
    this.origin = origin;
    this.#owner = owner;
    this.#startedAt = now;
    const withAlpn = { ...options, alpn: "h2" };
    this.#socket = origin.proxy === null ? this.#connect(withAlpn) : this.#tunnel(withAlpn);
  }

  get open(): boolean {
    return this.#session !== null;
  }

  /** Also before the session has told so itself. */
  get ended(): boolean {
    return this.#closed || this.#session?.destroyed === true;
  }

  /** Takes new streams. */
  get usable(): boolean {
    return !this.#retired && !this.#closed;
  }

  /** How many streams may be under way at once. */
  get capacity(): number {
    const limit = this.#session?.remoteSettings?.maxConcurrentStreams;
    return Math.min(limit ?? STREAMS_PER_CONNECTION_MAX, STREAMS_PER_CONNECTION_MAX);
  }

  get bytesRead(): number {
    return this.#socket.bytesRead;
  }

  /** Puts a call on this connection, now or as soon as it is open. */
  add(stream: CarriedStream, now: number): void {
    this.active++;
    this.#out.payload(stream.payloadOut);
    const session = this.#session;
    // Until the server's settings are here, more than one stream might be refused for being too many.
    if (session !== null && (this.#settingsKnown || this.active === 1)) {
      stream.opened(session, now);
      return;
    }
    this.#waiting.add(stream);
    stream.call.connecting(now);
  }

  /** The call has ended, or has given up. */
  remove(stream: CarriedStream): void {
    this.#waiting.delete(stream);
    const { active } = this;
    stream.call.bytesIn += this.#in.take(this.#socket.bytesRead, stream.payloadIn, active);
    stream.call.bytesOut += this.#out.take(this.#socket.bytesWritten, stream.payloadOut, active);
    this.active--;
    if (this.#retired && this.active === 0) this.close();
  }

  /** So many bytes of content came for one of the streams. */
  received(bytes: number): void {
    this.#in.payload(bytes);
  }

  /** So many bytes of an upload went out that `payloadOut` did not name when the call was added. */
  sent(bytes: number): void {
    this.#out.payload(bytes);
  }

  /** Takes no new streams; closes when the last one has ended. */
  retire(): void {
    this.#retired = true;
    if (this.active === 0) this.close();
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#session?.destroy();
    this.#socket.destroy();
    this.#owner.gone(this);
  }

  #connect(options: SocketOptions): net.Socket {
    const socket = openSocket(this.origin, options);
    socket.on("connect", () => {
      this.#tcpConnectedAt = clock();
      if (!this.origin.secure) this.#secured();
    });
    return this.#listen(socket);
  }

  #tunnel(options: SocketOptions): net.Socket {
    return openTunnel(this.origin, {
      tunnelOpen: (tunnel) => {
        this.#tcpConnectedAt = clock();
        this.#socket = this.#listen(secure(tunnel, this.origin, options));
        if (!this.origin.secure) this.#secured();
      },
      tunnelFailed: (error) => this.#broke(error),
    });
  }

  #listen(socket: net.Socket): net.Socket {
    if (socket instanceof tls.TLSSocket) {
      socket.on("secureConnect", () => {
        if (socket.alpnProtocol === "h2") this.#secured();
        else this.#fail({ kind: "protocol", text: NO_HTTP2 });
      });
    }
    socket.on("error", this.#onSocketError);
    socket.on("close", this.#onSocketClose);
    return socket;
  }

  readonly #onSocketError = (error: Error): void => this.#broke(error);
  readonly #onSocketClose = (): void => this.#broke(null);

  #secured(): void {
    if (this.#closed) return;
    const now = clock();
    // From here on the session hears of the socket's end first and tells its streams.
    this.#socket.off("error", this.#onSocketError);
    this.#socket.off("close", this.#onSocketClose);
    const session = http2.connect(this.origin.secure ? "https://h2" : "http://h2", {
      createConnection: () => this.#socket,
      settings: { enablePush: false, initialWindowSize: RECEIVE_WINDOW_BYTES },
    });
    session.setLocalWindowSize(RECEIVE_WINDOW_BYTES);
    session.on("error", (error) => this.#broke(error));
    session.on("close", () => this.#broke(null));
    session.on("goaway", (code) => this.#onGoaway(code));
    this.#session = session;
    const connectMs = this.#tcpConnectedAt - this.#startedAt;
    const tlsMs = this.origin.secure ? now - this.#tcpConnectedAt : -1;
    for (const stream of this.#waiting) {
      stream.call.connectMs = connectMs;
      stream.call.tlsMs = tlsMs;
    }
    const [first] = this.#waiting;
    if (first !== undefined) this.#send(first, session, now);
    session.once("remoteSettings", () => {
      this.#settingsKnown = true;
      for (const stream of [...this.#waiting]) this.#send(stream, session, clock());
    });
  }

  #send(stream: CarriedStream, session: http2.ClientHttp2Session, now: number): void {
    this.#waiting.delete(stream);
    stream.opened(session, now);
  }

  /** Streams up to the last one that the server names go on; the others end as refused. */
  #onGoaway(code: number): void {
    this.goneAway = true;
    if (code !== http2.constants.NGHTTP2_NO_ERROR) this.failure ??= goawayFailure(code);
    this.retire();
  }

  #broke(error: Error | null): void {
    if (this.#closed) return;
    const duringTls = this.origin.secure && this.#session === null && this.#tcpConnectedAt > 0;
    if (error !== null) this.#fail(connectionFailure(error, duringTls));
    else if (duringTls)
      this.#fail({ kind: "tls", text: "the server closed during the TLS handshake" });
    else this.#fail(CLOSED);
  }

  /** Ends the connection. Streams hear of it from their session, waiting calls from here. */
  #fail(failure: Failure): void {
    this.failure ??= failure;
    this.#retired = true;
    const waiting = [...this.#waiting];
    this.close();
    const now = clock();
    for (const stream of waiting) stream.connectionFailed(this.failure, now);
  }
}
