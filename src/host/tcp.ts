/** Byte streams over TCP, or over mutual TLS 1.3 when certificates are given. */

import {
  createServer as createPlainServer,
  connect as dialPlain,
  isIP,
  type Server,
  type Socket,
} from "node:net";
import { createServer as createTlsServer, connect as dialTls, TLSSocket } from "node:tls";
import type { Address } from "../core/base/ids.ts";
import { parseAddress } from "../wire/address.ts";
import type { ByteStream, ByteStreamPort, DialProblem } from "./ports/byte-stream.ts";
import type { TlsMaterial } from "./tls.ts";
import { alternativeUris } from "./tls.ts";

/** How long a TLS handshake may take before the connection is dropped. */
const HANDSHAKE_MS_MAX = 5_000;
const BACKLOG = 511;

export interface TcpOptions {
  readonly host: string;
  readonly port: number;
  readonly tls: TlsMaterial | null;
  /** Connections beyond this many are closed at once by the kernel's side of Node. */
  readonly connectionsMax: number;
  /** Of one host, TLS handshakes under way included: one stranger must not take all places. */
  readonly connectionsPerHostMax: number;
  /** How long a TLS handshake may take. */
  readonly handshakeMsMax?: number;
}

export class TcpPort implements ByteStreamPort {
  readonly #server: Server;
  readonly #options: TcpOptions;
  readonly #open = new Set<Socket>();
  readonly #perHost = new Map<string, number>();
  #onAccept: (stream: ByteStream) => void = (stream) => stream.destroy();

  private constructor(options: TcpOptions) {
    this.#options = options;
    const { tls } = options;
    this.#server =
      tls === null
        ? createPlainServer()
        : createTlsServer(
            {
              ...tls,
              minVersion: "TLSv1.3",
              requestCert: true,
              rejectUnauthorized: true,
              handshakeTimeout: options.handshakeMsMax ?? HANDSHAKE_MS_MAX,
            },
            (socket) => this.#accept(socket),
          );
    this.#server.maxConnections = options.connectionsMax;
    // Before the handshake, which a stranger need not ever finish.
    this.#server.on("connection", (socket) => {
      if (this.#admit(socket) && tls === null) this.#accept(socket);
    });
    // A failed TLS handshake is the peer's affair, but Node leaves the connection open.
    this.#server.on("tlsClientError", (_error, socket) => socket.destroy());
  }

  static listen(options: TcpOptions): Promise<TcpPort> {
    const port = new TcpPort(options);
    return new Promise((resolve, reject) => {
      port.#server.once("error", reject);
      port.#server.listen({ host: options.host, port: options.port, backlog: BACKLOG }, () => {
        port.#server.removeListener("error", reject);
        resolve(port);
      });
    });
  }

  dial(
    to: Address,
    timeoutMs: number,
    done: (stream: ByteStream | null, problem: DialProblem | null) => void,
  ): void {
    const target = parseAddress(to);
    // Peers name addresses, and a name in one would make us ask the resolver on a stranger's behalf.
    if (!target.ok || isIP(target.host) === 0) {
      done(null, "failed");
      return;
    }
    const { tls, host: localAddress } = this.#options;
    // Leaving from the bound address keeps source checks and per-host limits honest.
    const common = { host: target.host, port: target.port, localAddress, timeout: timeoutMs };
    const socket: Socket =
      tls === null
        ? dialPlain(common)
        : dialTls({ ...common, ...tls, minVersion: "TLSv1.3", rejectUnauthorized: true });
    let settled = false;
    const settle = (stream: ByteStream | null, problem: DialProblem | null): void => {
      if (settled) return;
      settled = true;
      socket.setTimeout(0);
      if (stream === null) socket.destroy();
      done(stream, problem);
    };
    socket.once(tls === null ? "connect" : "secureConnect", () =>
      settle(new SocketStream(socket), null),
    );
    socket.once("timeout", () => settle(null, "failed"));
    socket.on("error", (error: NodeJS.ErrnoException) =>
      settle(null, error.code === "ECONNREFUSED" ? "refused" : "failed"),
    );
    this.#track(socket);
  }

  onAccept(handler: (stream: ByteStream) => void): void {
    this.#onAccept = handler;
  }

  close(): Promise<void> {
    for (const socket of this.#open) socket.destroy();
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }

  #admit(socket: Socket): boolean {
    const host = socket.remoteAddress ?? "";
    const open = (this.#perHost.get(host) ?? 0) + 1;
    if (open > this.#options.connectionsPerHostMax) {
      socket.destroy();
      return false;
    }
    this.#perHost.set(host, open);
    this.#track(socket);
    socket.once("close", () => {
      const left = (this.#perHost.get(host) ?? 1) - 1;
      if (left === 0) this.#perHost.delete(host);
      else this.#perHost.set(host, left);
    });
    return true;
  }

  #accept(socket: Socket): void {
    socket.on("error", () => {});
    this.#track(socket);
    this.#onAccept(new SocketStream(socket));
  }

  #track(socket: Socket): void {
    this.#open.add(socket);
    socket.once("close", () => this.#open.delete(socket));
  }
}

class SocketStream implements ByteStream {
  readonly #socket: Socket;
  readonly host: string;
  readonly peerUris: readonly string[] | null;

  constructor(socket: Socket) {
    socket.setNoDelay(true);
    this.#socket = socket;
    this.host = socket.remoteAddress ?? "";
    this.peerUris = socket instanceof TLSSocket ? alternativeUris(socket) : null;
  }

  get backlogBytes(): number {
    return this.#socket.writableLength;
  }

  write(bytes: Uint8Array): void {
    if (this.#socket.writable) this.#socket.write(bytes);
  }

  end(): void {
    this.#socket.end();
  }

  destroy(): void {
    this.#socket.destroy();
  }

  onData(handler: (bytes: Uint8Array) => void): void {
    this.#socket.on("data", handler);
  }

  onClose(handler: () => void): void {
    this.#socket.once("close", handler);
  }
}
