/**
 * \n One WebSocket as a stream of messages, based on the ws package: opened over our own socket, timed and counted. It
 * is independent of calls, which its reader manages.
 *
 *   read ──▶ messages in one frame ───────────▶ the reader         (`frames.ts`)
 *       └──▶ all else ──▶ the socket's data ──▶ ws ──▶ the reader
 *
 * The ws package performs the handshake and enforces the protocol. Once the connection is open, messages that are
 * complete in one frame bypass its streams and need no buffer per read. Messages that are compressed, fragmented, split
 * by the end of a read, or malformed are left to the package, as are pings and the close.
 */

import type net from "node:net";
import WebSocket from "ws";
import { clock } from "../call.ts";
import type { Failure } from "../errors.ts";
import { openSocket, secure } from "../net/open-socket.ts";
import { openTunnel } from "../net/tunnel.ts";
import { turn } from "../net/turn.ts";
import { TurnWrites } from "../net/turn-writes.ts";
import { TRACEPARENT } from "../trace-context.ts";
import { failureOfClose, failureOfError, failureOfStatus } from "./failure.ts";
import { FrameBorders, messageFrame, readMessages } from "./frames.ts";
import type { Handshake } from "./handshake.ts";

const READ_BUFFER_BYTES = 64 * 1024;
/** Shared by all connections of a core: each read is processed, or copied, before the next. */
const readBuffer = Buffer.allocUnsafeSlow(READ_BUFFER_BYTES);

/** How the stream ended. */
export interface StreamEnd extends Failure {
  /** Status of a response that refused the handshake; 0 otherwise. */
  readonly status: number;
  /** Close code of either side (RFC 6455 §7.4); 0 after errors. */
  readonly code: number;
}

export interface MessageReader {
  streamOpen(now: number): void;
  streamMessage(data: Buffer, isBinary: boolean, now: number): void;
  /** Called once, and not after `destroy`. */
  streamEnded(end: StreamEnd, now: number): void;
}

interface StreamOptions {
  readonly insecure: boolean;
  /** Number of the virtual user. */
  readonly user: number;
  /** Largest message. */
  readonly bodyBytesMax: number;
  /** Trace header of the handshake; "" for none. */
  readonly traceparent?: string;
}

/** Node's callback for a socket that is not available at once. */
type SocketCallback = (error: Error | null, socket?: net.Socket) => void;

export class WebsocketStream {
  readonly startedAt: number;
  readonly #handshake: Handshake;
  readonly #options: StreamOptions;
  readonly #reader: MessageReader;
  readonly #ws: WebSocket;
  #raw: net.Socket | null = null;
  #writes: TurnWrites | null = null;
  readonly #borders = new FrameBorders();
  /** Open, without compression. */
  #plain = false;
  #tcpConnectedAt = 0;
  #secureAt = 0;
  over = false;
  /** Shared callback of all messages whose sending is not reported. */
  readonly #sent = (error?: Error | null): void => {
    if (error) this.#end({ ...failureOfError(error, false), status: 0, code: 0 });
  };

  constructor(handshake: Handshake, options: StreamOptions, reader: MessageReader, now: number) {
    this.startedAt = now;
    this.#handshake = handshake;
    this.#options = options;
    this.#reader = reader;
    this.#ws = this.#connect();
  }

  /** Subprotocol chosen by the server; "" for none. */
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
    return (this.#raw?.bytesWritten ?? 0) + (this.#writes?.pendingBytes ?? 0);
  }

  /** Written, and not yet handed to the network. */
  get waitingBytes(): number {
    return this.#ws.bufferedAmount + (this.#writes?.pendingBytes ?? 0);
  }

  /** `sent` is called when the message was handed to the network, unless the stream has ended. */
  send(payload: string | Buffer, sent?: () => void): void {
    const callback =
      sent === undefined
        ? this.#sent
        : (error?: Error | null) => {
            if (error) this.#sent(error);
            else if (!this.over) sent();
          };
    const frame = this.#isPlain ? messageFrame(payload) : null;
    if (frame !== null) {
      if (sent === undefined) this.#writes?.write(frame);
      else this.#writes?.write(frame, callback);
      return;
    }
    this.#writes?.flush();
    this.#ws.send(payload, callback);
  }

  /** While it closes, messages are left to the package, which drops them. */
  get #isPlain(): boolean {
    return this.#plain && this.#ws.readyState === WebSocket.OPEN;
  }

  /** Closes in order; the end is reported when the server has confirmed it. */
  close(code: number, reason = ""): void {
    this.#writes?.flush();
    this.#ws.close(code, reason);
  }

  destroy(): void {
    if (this.over) return;
    this.over = true;
    this.#ws.terminate();
  }

  #connect(): WebSocket {
    const { compress, headers, href, protocols } = this.#handshake;
    const { bodyBytesMax, traceparent = "" } = this.#options;
    const traced = traceparent === "" ? {} : { [TRACEPARENT]: traceparent };
    const ws = new WebSocket(href, [...protocols], {
      // User headers come last and take precedence.
      headers: { ...traced, ...headers },
      perMessageDeflate: compress,
      maxPayload: bodyBytesMax,
      createConnection: ((_: unknown, done: SocketCallback) =>
        this.#connectRaw(done)) as unknown as typeof net.createConnection,
    });
    ws.on("open", () => {
      this.#opened();
      if (!this.over) this.#reader.streamOpen(clock());
    });
    ws.on("message", (data: Buffer, isBinary) => this.message(data, isBinary));
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

  #opened(): void {
    const raw = this.#raw;
    if (raw === null) return;
    this.#writes = new TurnWrites(raw);
    this.#plain = this.#ws.extensions === "";
    raw.on("data", (bytes: Buffer) => this.#borders.read(bytes));
  }

  message(data: Buffer, isBinary: boolean): void {
    if (!this.over) this.#reader.streamMessage(data, isBinary, clock());
  }

  #read(count: number): void {
    turn.answered();
    const { bodyBytesMax } = this.#options;
    const at =
      this.#isPlain && this.#borders.between
        ? readMessages(readBuffer, count, bodyBytesMax, this)
        : 0;
    // Listeners of the socket: Node's HTTP client during the handshake, then ws and the borders.
    if (at < count && !this.over)
      this.#raw?.emit("data", Buffer.from(readBuffer.subarray(at, count)));
  }

  /** Opens our own socket to the resolved address, with separate times for connecting and TLS. */
  #connectRaw(done: SocketCallback): net.Socket | undefined {
    const { origin } = this.#handshake;
    if (origin.proxy === null) {
      const callback = (count: number): boolean => {
        this.#read(count);
        return true;
      };
      const raw = openSocket(origin, {
        ...this.#options,
        onread: { buffer: readBuffer, callback },
      });
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
    if (this.over) return;
    this.destroy();
    this.#reader.streamEnded(end, clock());
  }
}
