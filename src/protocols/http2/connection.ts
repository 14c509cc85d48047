/**
 * \n One HTTP/2 connection: the socket, and the session on top of it once it is open. Connecting and TLS are measured
 * separately.
 *
 *   connecting ──▶ open ──GOAWAY, time-out──▶ retired ──last stream ends──▶ closed
 *
 * Over TLS the protocol is negotiated by ALPN; without TLS the server must support prior knowledge (h2c). Retired
 * connections finish their streams and accept no new ones.
 *
 * Wire bytes are those of the socket. A call that finishes is charged its own payload and an even share of the rest
 * that is not charged yet, so sums over calls are exact, and single values are good estimates where streams overlap.
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

/** A call as seen by the connection that carries it, or that it waits for. */
export interface CarriedStream {
  readonly call: MeasuredCall;
  /** Content received so far, without framing. */
  readonly payloadIn: number;
  readonly payloadOut: number;
  /** The call may send now. */
  opened(session: Http2Session, now: number): void;
  /** The connection closed before the call could send. */
  connectionFailed(failure: Failure, now: number): void;
}

export interface Http2ConnectionOwner {
  connectionClosed(connection: Http2Connection): void;
}

/** Shared by all connections of a core; each is done with it before the next one reads. */
const readBuffer = Buffer.allocUnsafe(READ_BUFFER_BYTES);

export class Http2Connection implements SessionOwner {
  readonly origin: Origin;
  /** Streams in flight and calls that wait for the connection to open. */
  active = 0;
  /** Streams in flight. */
  #open = 0;
  readonly #owner: Http2ConnectionOwner;
  readonly #startedAt: number;
  /** Socket to the proxy until its tunnel is open. */
  #socket: net.Socket;
  #session: Http2Session | null = null;
  /** Calls that wait for the connection, for the server's stream limit, or for a free stream. */
  readonly #waiting = new Set<CarriedStream>();
  #settingsKnown = false;
  #retired = false;
  #closed = false;
  #tcpConnectedAt = 0;
  /** Bytes on the wire, or within TLS. Querying the socket would cost more than counting. */
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

  /** Accepts new streams. */
  get usable(): boolean {
    return !this.#retired && !this.#closed;
  }

  /** Maximum number of concurrent streams. */
  get capacity(): number {
    return Math.min(
      this.#session?.streamsMax ?? STREAMS_PER_CONNECTION_MAX,
      STREAMS_PER_CONNECTION_MAX,
    );
  }

  get bytesRead(): number {
    return this.#read;
  }

  /** Adds a call to this connection; it is sent now or as soon as the connection is open. */
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

  /** Until the server's settings arrive, a second stream might exceed its limit. */
  #mayOpen(): boolean {
    return this.#open < (this.#settingsKnown ? this.capacity : 1);
  }

  /** The call has finished or was abandoned. */
  remove(stream: CarriedStream): void {
    if (!this.#waiting.delete(stream)) this.#open--;
    const { active } = this;
    stream.call.bytesIn += this.#in.take(this.#read, stream.payloadIn, active);
    stream.call.bytesOut += this.#out.take(this.#written, stream.payloadOut, active);
    this.active--;
    if (this.#retired && this.active === 0) this.close();
    else if (this.#waiting.size > 0) this.#openWaiting();
  }

  /** Accounts content bytes received for one of the streams. */
  received(bytes: number): void {
    this.#in.payload(bytes);
  }

  /** Accounts upload bytes that `payloadOut` did not include when the call was added. */
  sent(bytes: number): void {
    this.#out.payload(bytes);
  }

  /** Accepts no new streams; closes after the last one. */
  retire(): void {
    this.#retired = true;
    if (this.active === 0) this.close();
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#socket.destroy();
    this.#owner.connectionClosed(this);
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
        // Node supports `onread` only for sockets that it opened itself.
        this.#socket.on("data", (piece: Buffer) => this.#receive(piece, piece.length));
        // The socket is paused, and may contain bytes that the server sent first.
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

  /** Closes the connection and fails all calls on it or waiting for it. */
  #fail(failure: Failure): void {
    this.#retired = true;
    const waiting = [...this.#waiting];
    this.close();
    this.#session?.fail(failure);
    const now = clock();
    for (const stream of waiting) stream.connectionFailed(failure, now);
  }
}
