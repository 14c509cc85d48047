/**
 * One WebSocket as a stream of messages, on the ws package: opened over a socket of ours, timed and
 * counted. It knows nothing of calls; whoever reads it does.
 */

import type net from "node:net";
import WebSocket from "ws";
import { clock } from "../call.ts";
import type { Failure } from "../errors.ts";
import { openSocket, secure } from "../net/open-socket.ts";
import { openTunnel } from "../net/tunnel.ts";
import { TRACEPARENT } from "../trace-context.ts";
import { failureOfClose, failureOfError, failureOfStatus } from "./failure.ts";
import type { Handshake } from "./handshake.ts";

/** How it ended. */
export interface StreamEnd extends Failure {
  /** Of an answer that refused the handshake; 0 otherwise. */
  readonly status: number;
  /** Closed by one side's word, with this code (RFC 6455 §7.4); 0 after errors. */
  readonly code: number;
}

export interface MessageReader {
  streamOpen(now: number): void;
  streamMessage(data: Buffer, isBinary: boolean, now: number): void;
  /** Told once, and not after `destroy`. */
  streamEnded(end: StreamEnd, now: number): void;
}

interface StreamOptions {
  readonly insecure: boolean;
  /** Number of the virtual user. */
  readonly user: number;
  /** Of one message. */
  readonly bodyBytesMax: number;
  /** Of the handshake; "" for none. */
  readonly traceparent?: string;
}

/** How Node hears of a socket that takes its time. */
type SocketCallback = (error: Error | null, socket?: net.Socket) => void;

export class WebsocketStream {
  readonly startedAt: number;
  readonly #handshake: Handshake;
  readonly #options: StreamOptions;
  readonly #reader: MessageReader;
  readonly #ws: WebSocket;
  #raw: net.Socket | null = null;
  #tcpConnectedAt = 0;
  #secureAt = 0;
  #over = false;

  constructor(handshake: Handshake, options: StreamOptions, reader: MessageReader, now: number) {
    this.startedAt = now;
    this.#handshake = handshake;
    this.#options = options;
    this.#reader = reader;
    this.#ws = this.#connect();
  }

  /** The subprotocol that the server chose; "" when none. */
  get protocol(): string {
    return this.#ws.protocol;
  }

  get connectMs(): number {
    return this.#tcpConnectedAt - this.startedAt;
  }

  /** Negative without TLS. */
  get tlsMs(): number {
    return Math.max(this.#secureAt - this.#tcpConnectedAt, -1);
  }

  get bytesRead(): number {
    return this.#raw?.bytesRead ?? 0;
  }

  get bytesWritten(): number {
    return this.#raw?.bytesWritten ?? 0;
  }

  /** Written, and not yet handed to the network. */
  get waitingBytes(): number {
    return this.#ws.bufferedAmount;
  }

  /** `sent` hears that the message was handed to the network; not after the end. */
  send(payload: string | Buffer, sent?: () => void): void {
    this.#ws.send(payload, (error) => {
      if (error) this.#end({ ...failureOfError(error, false), status: 0, code: 0 });
      else if (!this.#over) sent?.();
    });
  }

  /** In order; the end is told when the server has agreed. */
  close(code: number, reason = ""): void {
    this.#ws.close(code, reason);
  }

  destroy(): void {
    if (this.#over) return;
    this.#over = true;
    this.#ws.terminate();
  }

  #connect(): WebSocket {
    const { compress, headers, href, protocols } = this.#handshake;
    const { bodyBytesMax, traceparent = "" } = this.#options;
    const traced = traceparent === "" ? {} : { [TRACEPARENT]: traceparent };
    const ws = new WebSocket(href, [...protocols], {
      // What the author wrote comes last, and wins.
      headers: { ...traced, ...headers },
      perMessageDeflate: compress,
      maxPayload: bodyBytesMax,
      createConnection: ((_: unknown, done: SocketCallback) =>
        this.#connectRaw(done)) as unknown as typeof net.createConnection,
    });
    ws.on("open", () => {
      if (!this.#over) this.#reader.streamOpen(clock());
    });
    ws.on("message", (data: Buffer, isBinary) => {
      if (!this.#over) this.#reader.streamMessage(data, isBinary, clock());
    });
    ws.on("unexpected-response", (request, { statusCode: status = 0 }) => {
      this.#end({ ...failureOfStatus(status), status, code: 0 });
      request.destroy();
    });
    ws.on("error", (error) => {
      this.#end({ ...failureOfError(error, this.#inTls), status: 0, code: 0 });
    });
    ws.on("close", (code, reason) => {
      this.#end({ ...failureOfClose(code, reason.toString()), status: 0, code });
    });
    return ws;
  }

  /** A socket of our own: to the address looked up before, and with connecting and TLS timed apart. */
  #connectRaw(done: SocketCallback): net.Socket | undefined {
    const { origin } = this.#handshake;
    if (origin.proxy === null) {
      const raw = openSocket(origin, this.#options);
      raw.once("connect", () => {
        this.#tcpConnectedAt = clock();
      });
      return this.#timed(raw);
    }
    this.#raw = openTunnel(origin, {
      tunnelOpen: (tunnel) => {
        this.#tcpConnectedAt = clock();
        done(null, this.#timed(secure(tunnel, origin, this.#options)));
      },
      tunnelFailed: (error) => done(error),
    });
    return undefined;
  }

  #timed(raw: net.Socket): net.Socket {
    raw.once("secureConnect", () => {
      this.#secureAt = clock();
    });
    this.#raw = raw;
    return raw;
  }

  get #inTls(): boolean {
    return this.#handshake.origin.secure && this.#tcpConnectedAt > 0 && this.#secureAt === 0;
  }

  #end(end: StreamEnd): void {
    if (this.#over) return;
    this.destroy();
    this.#reader.streamEnded(end, clock());
  }
}
