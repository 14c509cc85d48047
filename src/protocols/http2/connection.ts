/**
 * One HTTP/2 connection: the socket, and the session that speaks over it once it is open. Connecting and
 * TLS are measured apart.
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

import type net from "node:net";
import tls from "node:tls";
import { clock, type MeasuredCall } from "../call.ts";
import type { Failure } from "../errors.ts";
import { openSocket, type SocketOptions, secure } from "../net/open-socket.ts";
import type { Origin } from "../net/origin.ts";
import { openTunnel } from "../net/tunnel.ts";
import { turn } from "../net/turn.ts";
import { CLOSED, connectionFailure, NO_HTTP2 } from "./failure.ts";
import { READ_BUFFER_BYTES, STREAMS_PER_CONNECTION_MAX } from "./limits.ts";
import { Http2Session, type SessionOwner } from "./session.ts";
import { WireShare } from "./wire-share.ts";

/** A call as the connection that carries it, or that it waits for, sees it. */
export interface CarriedStream {
  readonly call: MeasuredCall;
  /** Content so far, without framing. */
  readonly payloadIn: number;
  readonly payloadOut: number;
  /** May send now. */
  opened(session: Http2Session, now: number): void;
  /** The connection ended before it could send. */
  connectionFailed(failure: Failure, now: number): void;
}

export interface Http2ConnectionOwner {
  gone(connection: Http2Connection): void;
}

/** All connections of a core read into one buffer, and are done with it before the next one reads. */
const readBuffer = Buffer.allocUnsafe(READ_BUFFER_BYTES);

export class Http2Connection implements SessionOwner {
  readonly origin: Origin;
  /** Streams under way and calls that wait for the connection to open. */
  active = 0;
  /** Streams under way. */
  #open = 0;
  readonly #owner: Http2ConnectionOwner;
  readonly #startedAt: number;
  /** To the proxy, as long as its tunnel is not open. */
  #socket: net.Socket;
  #session: Http2Session | null = null;
  /** Calls that wait for the connection, for the server's word on how many streams it allows, or for one of them. */
  readonly #waiting = new Set<CarriedStream>();
  #settingsKnown = false;
  #retired = false;
  #closed = false;
  #tcpConnectedAt = 0;
  /** Bytes of the wire, or within TLS. Asking the socket would cost more than counting. */
  #read = 0;
  #written = 0;
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

  /** Takes new streams. */
  get usable(): boolean {
    return !this.#retired && !this.#closed;
  }

  /** How many streams may be under way at once. */
  get capacity(): number {
    return Math.min(
      this.#session?.streamsMax ?? STREAMS_PER_CONNECTION_MAX,
      STREAMS_PER_CONNECTION_MAX,
    );
  }

  get bytesRead(): number {
    return this.#read;
  }

  /** Puts a call on this connection, now or as soon as it is open. */
  add(stream: CarriedStream, now: number): void {
    this.active++;
    this.#out.payload(stream.payloadOut);
    const session = this.#session;
    if (session !== null && this.#mayOpen()) {
      this.#open++;
      stream.opened(session, now);
      return;
    }
    this.#waiting.add(stream);
    if (!this.#settingsKnown) stream.call.connecting(now);
  }

  /** Until the server's settings are here, more than one stream might be refused for being too many. */
  #mayOpen(): boolean {
    return this.#open < (this.#settingsKnown ? this.capacity : 1);
  }

  /** The call has ended, or has given up. */
  remove(stream: CarriedStream): void {
    if (!this.#waiting.delete(stream)) this.#open--;
    const { active } = this;
    stream.call.bytesIn += this.#in.take(this.#read, stream.payloadIn, active);
    stream.call.bytesOut += this.#out.take(this.#written, stream.payloadOut, active);
    this.active--;
    if (this.#retired && this.active === 0) this.close();
    else if (this.#waiting.size > 0) this.#openWaiting();
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
    this.#socket.destroy();
    this.#owner.gone(this);
  }

  #connect(options: SocketOptions): net.Socket {
    const socket = openSocket(this.origin, {
      ...options,
      onread: {
        buffer: readBuffer,
        callback: (count: number): boolean => {
          this.#receive(readBuffer, count);
          return true;
        },
      },
    });
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
        // Node reads into our buffer only where the socket is its own.
        this.#socket.on("data", (piece: Buffer) => this.#receive(piece, piece.length));
        // It may hold what a server said at once, and is paused then.
        this.#socket.resume();
        if (!this.origin.secure) this.#secured();
      },
      tunnelFailed: (error) => this.#broke(error),
    });
  }

  #receive(bytes: Buffer, end: number): void {
    turn.answered();
    this.#read += end;
    this.#session?.receive(bytes, 0, end);
  }

  #listen(socket: net.Socket): net.Socket {
    if (socket instanceof tls.TLSSocket) {
      socket.on("secureConnect", () => {
        if (socket.alpnProtocol === "h2") this.#secured();
        else this.#fail({ kind: "protocol", text: NO_HTTP2 });
      });
    }
    socket.on("error", (error) => this.#broke(error));
    socket.on("close", () => this.#broke(null));
    socket.on("end", () => this.#broke(null));
    socket.on("drain", () => this.#session?.resume());
    return socket;
  }

  #secured(): void {
    if (this.#closed) return;
    const now = clock();
    this.#session = new Http2Session(this);
    const connectMs = this.#tcpConnectedAt - this.#startedAt;
    const tlsMs = this.origin.secure ? now - this.#tcpConnectedAt : -1;
    for (const stream of this.#waiting) {
      stream.call.connectMs = connectMs;
      stream.call.tlsMs = tlsMs;
    }
    this.#openWaiting();
  }

  #openWaiting(): void {
    const session = this.#session;
    if (session === null) return;
    for (const stream of [...this.#waiting]) {
      if (!this.#mayOpen() || this.#closed) return;
      if (!this.#waiting.delete(stream)) continue;
      this.#open++;
      stream.opened(session, clock());
    }
  }

  write(bytes: Buffer): boolean {
    if (this.#closed) return true;
    this.#written += bytes.length;
    return this.#socket.write(bytes);
  }

  settingsCame(): void {
    this.#settingsKnown = true;
    this.#openWaiting();
  }

  goingAway(): void {
    this.retire();
  }

  sessionFailed(failure: Failure): void {
    this.#fail(failure);
  }

  #broke(error: Error | null): void {
    if (this.#closed) return;
    const duringTls = this.origin.secure && this.#session === null && this.#tcpConnectedAt > 0;
    if (error !== null) this.#fail(connectionFailure(error, duringTls));
    else if (duringTls)
      this.#fail({ kind: "tls", text: "the server closed during the TLS handshake" });
    else this.#fail(CLOSED);
  }

  /** Ends the connection with everything that it carries or that waits for it. */
  #fail(failure: Failure): void {
    this.#retired = true;
    const waiting = [...this.#waiting];
    this.close();
    this.#session?.fail(failure);
    const now = clock();
    for (const stream of waiting) stream.connectionFailed(failure, now);
  }
}
