/** Payloads over UDP, TCP and Unix sockets. UDP acknowledges nothing. */

import { createSocket, type Socket as UdpSocket } from "node:dgram";
import { connect, isIPv6, type Socket } from "node:net";
import { REQUEST_MS_MAX } from "../limits.ts";
import { ReporterError } from "../settings.ts";
import { RefusedError, type SendOutcome, type Transport } from "./delivery.ts";
import type { Payload } from "./payload-queue.ts";

/** Fits into one packet of every usual network. */
export const DATAGRAM_BYTES_MAX = 1_432;

interface SocketAddress {
  readonly protocol: "udp" | "tcp" | "unix";
  readonly host: string;
  readonly port: number;
  /** Path of a Unix socket. */
  readonly path: string;
}

/** Parses "udp://127.0.0.1:8125", "tcp://…", "unix:///run/x.sock"; without a scheme `fallback` applies. */
export function socketAddress(
  name: string,
  target: string,
  fallback: "udp" | "tcp",
  defaultPort: number,
): SocketAddress {
  const text = /^[a-z]+:\/\//.test(target) ? target : `${fallback}://${target}`;
  const [, protocol = ""] = /^([a-z]+):/.exec(text) ?? [];
  if (protocol === "unix")
    return { protocol, host: "", port: 0, path: text.slice("unix://".length) };
  const wrong = `report ${name}: its address must be host:port, udp://host:port or tcp://host:port`;
  if (protocol !== "udp" && protocol !== "tcp") throw new ReporterError(wrong);
  let url: URL;
  try {
    // URL splits host and port for known schemes only.
    url = new URL(text.replace(/^[a-z]+/, "http"));
  } catch {
    throw new ReporterError(wrong);
  }
  const host = url.hostname.replace(/^\[|\]$/g, "");
  return { protocol, host, port: url.port === "" ? defaultPort : Number(url.port), path: "" };
}

export function socketTransport(address: SocketAddress): Transport {
  return address.protocol === "udp" ? new UdpTransport(address) : new StreamTransport(address);
}

/** Connected, so that the system reports a closed port: on a later datagram, or as an error of the socket. */
class UdpTransport implements Transport {
  readonly unconfirmed = true;
  readonly #address: SocketAddress;
  readonly #socket: UdpSocket;
  #connected: Promise<void> | undefined;
  /** An earlier datagram was refused, and no send has reported it yet. */
  #refused = false;

  constructor(address: SocketAddress) {
    this.#address = address;
    this.#socket = createSocket(isIPv6(address.host) ? "udp6" : "udp4");
    // Errors of a send go to its callback.
    this.#socket.on("error", (error) => {
      this.#refused ||= isRefusal(error);
    });
    this.#socket.unref();
  }

  async send({ body }: Payload): Promise<SendOutcome> {
    this.#connected ??= this.#connect();
    await this.#connected;
    await new Promise<void>((resolve, reject) => {
      this.#socket.send(body, (error) => {
        if (error !== null && !isRefusal(error)) return reject(error);
        const refused = error !== null || this.#refused;
        this.#refused = false;
        if (refused) reject(new RefusedError("the port is closed (ECONNREFUSED)"));
        else resolve();
      });
    });
    return { kind: "ok" };
  }

  #connect(): Promise<void> {
    const { host, port } = this.#address;
    return new Promise((resolve, reject) => {
      this.#socket.connect(port, host, (error?: Error) => {
        if (error === undefined || error === null) return resolve();
        this.#connected = undefined;
        reject(error);
      });
    });
  }

  async close(): Promise<void> {
    this.#socket.close();
  }
}

function isRefusal(error: NodeJS.ErrnoException): boolean {
  return error.code === "ECONNREFUSED";
}

/** One connection, reopened when lost. */
class StreamTransport implements Transport {
  readonly #address: SocketAddress;
  #socket: Socket | undefined;

  constructor(address: SocketAddress) {
    this.#address = address;
  }

  async send({ body }: Payload, signal: AbortSignal): Promise<SendOutcome> {
    const socket = this.#socket ?? (await this.#connect(signal));
    this.#socket = socket;
    await new Promise<void>((resolve, reject) => {
      const lost = (): void => reject(new Error("the connection was lost"));
      socket.once("close", lost);
      socket.write(body, (error) => {
        socket.off("close", lost);
        if (error === null || error === undefined) resolve();
        else reject(error);
      });
    });
    return { kind: "ok" };
  }

  #connect(signal: AbortSignal): Promise<Socket> {
    const { host, path, port, protocol } = this.#address;
    return new Promise((resolve, reject) => {
      const socket = protocol === "unix" ? connect({ path }) : connect({ host, port });
      const stop = (): void => void socket.destroy(signal.reason as Error);
      signal.addEventListener("abort", stop, { once: true });
      socket.setTimeout(REQUEST_MS_MAX, () => socket.destroy(new Error("it did not answer")));
      socket.once("connect", () => {
        socket.setTimeout(0);
        resolve(socket);
      });
      socket.on("error", reject);
      socket.once("close", () => {
        signal.removeEventListener("abort", stop);
        if (this.#socket === socket) this.#socket = undefined;
      });
    });
  }

  /** Closes gracefully, so that everything written arrives. */
  async close(): Promise<void> {
    const socket = this.#socket;
    if (socket === undefined || socket.destroyed) return;
    await new Promise<void>((resolve) => {
      socket.once("close", () => resolve());
      socket.setTimeout(1_000, () => socket.destroy());
      socket.resume();
      socket.end();
    });
  }
}

/** Groups lines into payloads that fit into datagrams, or into batches of a stream. */
export function linePayloads(
  lines: readonly { readonly text: string; readonly points: number }[],
  bytesMax: number,
): Payload[] {
  const payloads: Payload[] = [];
  let texts: string[] = [];
  let [bytes, points] = [0, 0];
  const flush = (): void => {
    if (texts.length > 0) payloads.push({ body: Buffer.from(texts.join("")), points });
    texts = [];
    [bytes, points] = [0, 0];
  };
  for (const line of lines) {
    const length = Buffer.byteLength(line.text) + 1;
    if (bytes + length > bytesMax) flush();
    texts.push(`${line.text}\n`);
    bytes += length;
    points += line.points;
  }
  flush();
  return payloads;
}
