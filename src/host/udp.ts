/** Datagrams over UDP. Addresses are numeric here; discovery resolves names. */

import { createSocket, type Socket } from "node:dgram";
import { isIP, isIPv6 } from "node:net";
import type { Address } from "../core/base/ids.ts";
import { formatAddress, parseAddress } from "../wire/address.ts";
import type { DatagramPort } from "./ports/datagram.ts";

/** Requested of the kernel, which may give less: bursts of a thousand members fit. */
const RECEIVE_BUFFER_BYTES = 4 * 1_048_576;
/** Bytes queued for the kernel; beyond, packets are dropped as any network would. */
const SEND_QUEUE_BYTES_MAX = 4 * 1_048_576;
const TARGETS_MAX = 8_192;

interface Target {
  readonly host: string;
  readonly port: number;
}

export class UdpPort implements DatagramPort {
  readonly #socket: Socket;
  readonly #targets = new Map<Address, Target>();
  /** Packets dropped because the queue was full. */
  dropped = 0;
  #onReceive: (source: Address, bytes: Uint8Array) => void = () => {};
  #onSendFailed: (to: Address) => void = () => {};

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("message", (bytes, { address, port }) => {
      this.#onReceive(formatAddress(address, port), bytes);
    });
    // After binding, errors of the socket are those of single sends, reported there.
    socket.on("error", () => {});
  }

  static bind(host: string, port: number): Promise<UdpPort> {
    const socket = createSocket({
      type: isIPv6(host) ? "udp6" : "udp4",
      recvBufferSize: RECEIVE_BUFFER_BYTES,
      // Only numeric hosts arrive here; a lookup for each packet would cost a turn of the loop.
      lookup: (name, _options, done) => done(null, name, isIPv6(name) ? 6 : 4),
    });
    return new Promise((resolve, reject) => {
      socket.once("error", reject);
      socket.bind({ address: host, port, exclusive: true }, () => {
        socket.removeListener("error", reject);
        resolve(new UdpPort(socket));
      });
    });
  }

  get port(): number {
    return this.#socket.address().port;
  }

  send(to: Address, bytes: Uint8Array): void {
    const target = this.#targetOf(to);
    if (target === null) {
      this.#onSendFailed(to);
      return;
    }
    if (this.#socket.getSendQueueSize() > SEND_QUEUE_BYTES_MAX) {
      this.dropped++;
      return;
    }
    this.#socket.send(bytes, target.port, target.host, (error) => {
      if (error !== null) this.#onSendFailed(to);
    });
  }

  onReceive(handler: (source: Address, bytes: Uint8Array) => void): void {
    this.#onReceive = handler;
  }

  onSendFailed(handler: (to: Address) => void): void {
    this.#onSendFailed = handler;
  }

  close(): Promise<void> {
    return new Promise((resolve) => this.#socket.close(() => resolve()));
  }

  #targetOf(to: Address): Target | null {
    const held = this.#targets.get(to);
    if (held !== undefined) return held;
    const parsed = parseAddress(to);
    if (!parsed.ok || isIP(parsed.host) === 0) return null;
    if (this.#targets.size >= TARGETS_MAX) this.#targets.clear();
    this.#targets.set(to, parsed);
    return parsed;
  }
}
