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
import { type Place, Places, type PlacesLimits } from "../wire/places.ts";
import type { ByteStream, ByteStreamPort, DialProblem } from "./ports/byte-stream.ts";
import type { TlsMaterial } from "./tls.ts";
import { alternativeUris } from "./tls.ts";

/** Time for a TLS handshake before the connection is dropped. */
const HANDSHAKE_MS_MAX = 5_000;
const BACKLOG = 511;

interface TcpOptions {
  /** Null for a process that only dials. */
  readonly host: string | null;
  readonly port: number;
  readonly tls: TlsMaterial | null;
  /** Limits on open connections: in all, per host, and reserved for members. */
  readonly places: PlacesLimits;
  /** True for the host of a member. */
  readonly isMember: (host: string) => boolean;
  /** Time for a TLS handshake. */
  readonly handshakeMsMax?: number;
}

export class TcpPort implements ByteStreamPort {
  readonly #server: Server;
  readonly #places: Places;
  /** By the other end, which TLS and the socket below it share. */
  readonly #held = new Map<string, Place>();
  readonly #options: TcpOptions;
  readonly #open = new Set<Socket>();
  #onAccept: (stream: ByteStream) => void = (stream) => stream.destroy();

  private constructor(options: TcpOptions) {
    this.#options = options;
    const { tls, places, isMember } = options;
    this.#places = new Places(places, isMember);
    const secure = tls === null ? null : this.#tlsServer(tls);
    // A slot is taken before the first byte: an endless handshake occupies one like everything else.
    this.#server = createPlainServer((socket) => {
      const place = this.#places.take(socket.remoteAddress ?? "", () => socket.destroy());
      if (place === null) {
        socket.destroy();
        return;
      }
      const end = endOf(socket);
      this.#held.set(end, place);
      socket.once("close", () => {
        place.release();
        this.#held.delete(end);
      });
      this.#track(socket);
      if (secure === null) this.#accept(socket);
      else secure.emit("connection", socket);
    });
  }

  #tlsServer(tls: TlsMaterial): Server {
    const server = createTlsServer(
      {
        ...tls,
        minVersion: "TLSv1.3",
        requestCert: true,
        rejectUnauthorized: true,
        handshakeTimeout: this.#options.handshakeMsMax ?? HANDSHAKE_MS_MAX,
      },
      (socket) => this.#accept(socket),
    );
    // A failed or late handshake leaves the socket to us.
    server.on("tlsClientError", (_error, socket) => socket.destroy());
    return server;
  }

  /** Connections open now, greeted or not, and the number closed for lack of a slot. */
  get counts(): { readonly open: number; readonly refused: number } {
    return { open: this.#places.open, refused: this.#places.refused };
  }

  static listen(options: TcpOptions): Promise<TcpPort> {
    const port = new TcpPort(options);
    return new Promise((resolve, reject) => {
      port.#server.once("error", reject);
      port.#server.listen(
        { host: options.host ?? "", port: options.port, backlog: BACKLOG },
        () => {
          port.#server.removeListener("error", reject);
          resolve(port);
        },
      );
    });
  }

  /** For a process that dials and does not listen. */
  static dialer(tls: TlsMaterial | null): TcpPort {
    const places = { total: 1, perHost: 1, forMembers: 0 };
    return new TcpPort({ host: null, port: 0, tls, places, isMember: () => false });
  }

  dial(
    to: Address,
    timeoutMs: number,
    done: (stream: ByteStream | null, problem: DialProblem | null) => void,
  ): void {
    const target = parseAddress(to);
    // Peers name addresses, and a host name in one would make us query the resolver on a peer's behalf.
    if (!target.ok || isIP(target.host) === 0) {
      done(null, "failed");
      return;
    }
    const { tls, host } = this.#options;
    // Leaving from the bound address keeps source checks and per-host limits honest.
    const local = host === null ? {} : { localAddress: host };
    const common = { host: target.host, port: target.port, timeout: timeoutMs, ...local };
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
    for (const socket of this.#open) {
      socket.uncork();
      socket.destroy();
    }
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }

  #accept(socket: Socket): void {
    socket.on("error", () => {});
    const place = this.#held.get(endOf(socket));
    this.#onAccept(new SocketStream(socket, () => place?.prove()));
  }

  #track(socket: Socket): void {
    this.#open.add(socket);
    socket.once("close", () => this.#open.delete(socket));
  }
}

function endOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

class SocketStream implements ByteStream {
  readonly #socket: Socket;
  readonly host: string;
  readonly peerUris: readonly string[] | null;

  readonly prove: () => void;
  /** Writes until the end of this turn are sent together. */
  #isCorked = false;

  /** `prove` is called when the peer has proven that it has the key. */
  constructor(socket: Socket, prove: () => void = () => undefined) {
    this.prove = prove;
    socket.setNoDelay(true);
    this.#socket = socket;
    this.host = socket.remoteAddress ?? "";
    this.peerUris = socket instanceof TLSSocket ? alternativeUris(socket) : null;
  }

  get backlogBytes(): number {
    return this.#socket.writableLength;
  }

  write(bytes: Uint8Array, onTaken?: () => void): void {
    if (!this.#socket.writable) return;
    this.#cork();
    if (onTaken === undefined) this.#socket.write(bytes);
    else this.#socket.write(bytes, (error) => (error ? undefined : onTaken()));
  }

  /** One system call for all messages of a turn: for a small one that is most of its cost. */
  #cork(): void {
    if (this.#isCorked) return;
    this.#isCorked = true;
    this.#socket.cork();
    process.nextTick(() => this.#uncork());
  }

  #uncork(): void {
    if (!this.#isCorked) return;
    this.#isCorked = false;
    this.#socket.uncork();
  }

  end(): void {
    this.#uncork();
    this.#socket.end();
  }

  /** Earlier writes are sent first: they may carry the reason. */
  destroy(): void {
    this.#uncork();
    this.#socket.destroy();
  }

  onData(handler: (bytes: Uint8Array) => void): void {
    this.#socket.on("data", handler);
  }

  onClose(handler: (isReset: boolean) => void): void {
    this.#socket.once("close", () => handler(!this.#socket.readableEnded));
  }
}
