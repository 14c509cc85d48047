/**
 * A TCP or TLS connection for protocols with their own parser: opens it, times it, and passes on what arrives. All of a
 * core share one read buffer: Node fills it and calls back, and the reader must have consumed or copied it when the
 * callback returns.
 */

import type net from "node:net";
import { errorText } from "../../core/base/error-text.ts";
import { clock } from "../call.ts";
import { kindOfSocketError } from "../errors.ts";
import { openSocket, upgrade } from "../net/open-socket.ts";
import { turn } from "../net/turn.ts";
import { TurnWrites } from "../net/turn-writes.ts";
import type { CarriedCall, ConnectionFailure, ConnectionHost, OpenTimes } from "./connection.ts";

const READ_BUFFER_BYTES = 64 * 1024;
const readBuffer = Buffer.allocUnsafeSlow(READ_BUFFER_BYTES);

interface StreamReader {
  /** Connected and, for TLS, secured. */
  streamOpen(now: number): void;
  /** Received bytes: `buffer` from 0 up to `end`, valid only now. */
  streamBytes(buffer: Buffer, end: number, now: number): void;
  /** The stream failed or the server closed it. Called once, and not after `destroy`. */
  streamEnded(failure: ConnectionFailure, now: number): void;
}

type Delivered = Pick<CarriedCall<unknown>, "answered">;

export class StreamSocket {
  readonly #host: ConnectionHost;
  #socket: net.Socket;
  #writes: TurnWrites;
  readonly #reader: StreamReader;
  #secure: boolean;
  readonly #startedAt: number;
  #connectedAt = 0;
  /** When TLS began: at once, unless it was requested later. */
  #tlsFrom = 0;
  #openAt = 0;
  #over = false;
  /** Calls that finish when their bytes were handed to the network, in this order. */
  readonly #delivered: Delivered[] = [];
  /** One for all: a function per call would cost as much as the rest of this class. */
  readonly #handedOver = (error?: Error | null): void => {
    if (!this.#over && !error) this.#delivered.shift()?.answered(null, clock());
  };

  /** `alpn` is the protocol to negotiate over TLS. */
  constructor(host: ConnectionHost, reader: StreamReader, now: number, alpn?: string) {
    const { origin, settings, user } = host;
    this.#host = host;
    this.#reader = reader;
    this.#secure = origin.secure;
    this.#startedAt = now;
    const callback = (count: number): boolean => {
      turn.answered();
      reader.streamBytes(readBuffer, count, clock());
      return !this.#over;
    };
    const socket = openSocket(origin, {
      insecure: settings.insecure,
      user,
      ...(alpn === undefined ? {} : { alpn }),
      onread: { buffer: readBuffer, callback },
    });
    this.#socket = socket;
    this.#writes = new TurnWrites(socket);
    socket.on("connect", () => {
      this.#connectedAt = clock();
      this.#tlsFrom = this.#connectedAt;
      if (!this.#secure) this.#opened(this.#connectedAt);
    });
    if (this.#secure) socket.on("secureConnect", () => this.#opened(clock()));
    this.#watchEnd(socket);
  }

  #watchEnd(socket: net.Socket): void {
    socket.on("error", (error) => this.#broke(error));
    socket.on("end", () => this.#ended(true));
    socket.on("close", () => this.#ended(false));
  }

  /**
   * Upgrades to TLS after a plain-text exchange; `streamOpen` is called again. Such a socket cannot share the read
   * buffer: Node allocates one for each read.
   */
  secure(): void {
    const { origin, settings, user } = this.#host;
    this.#secure = true;
    this.#openAt = 0;
    this.#tlsFrom = clock();
    this.#writes.flush();
    const socket = upgrade(this.#socket, origin, { insecure: settings.insecure, user });
    this.#socket = socket;
    this.#writes = new TurnWrites(socket);
    socket.on("secureConnect", () => this.#opened(clock()));
    socket.on("data", (bytes: Buffer) => {
      if (!this.#over) this.#reader.streamBytes(bytes, bytes.length, clock());
    });
    this.#watchEnd(socket);
  }

  /** Times of opening until now; the part after TLS was the login. */
  times(now: number): OpenTimes {
    return {
      connectMs: this.#connectedAt - this.#startedAt,
      tlsMs: this.#secure ? this.#openAt - this.#tlsFrom : -1,
      loginMs: now > this.#openAt ? now - this.#openAt + this.#tlsFrom - this.#connectedAt : -1,
    };
  }

  /** Written, and not yet handed to the network. */
  get waitingBytes(): number {
    return this.#socket.writableLength + this.#writes.pendingBytes;
  }

  /** `written` is called when the bytes were handed to the network, unless the stream has ended. */
  write(bytes: Uint8Array, written?: () => void): void {
    if (written === undefined) this.#writes.write(bytes);
    else
      this.#writes.write(bytes, (error) => {
        if (!this.#over && !error) written();
      });
  }

  /** The call finishes when its bytes were handed to the network. */
  deliver(bytes: Uint8Array, call: Delivered): void {
    this.#delivered.push(call);
    this.#writes.write(bytes, this.#handedOver);
  }

  destroy(): void {
    this.#over = true;
    this.#socket.destroy();
  }

  #opened(now: number): void {
    this.#openAt = now;
    if (!this.#over) this.#reader.streamOpen(now);
  }

  #broke(error: Error): void {
    const duringTls = this.#secure && this.#openAt === 0 && this.#connectedAt > 0;
    this.#end({ kind: kindOfSocketError(error, duringTls), text: errorText(error) });
  }

  #ended(orderly: boolean): void {
    if (this.#secure && this.#openAt === 0)
      this.#end({ kind: "tls", text: "the server closed the connection during the TLS handshake" });
    else this.#end({ kind: "reset", text: "the server closed the connection", orderly });
  }

  #end(failure: ConnectionFailure): void {
    if (this.#over) return;
    this.destroy();
    this.#reader.streamEnded(failure, clock());
  }
}
