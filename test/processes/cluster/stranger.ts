/**
 * A peer that speaks the wire by hand: with the cluster's secret, with a wrong one, or with garbage. Tests use it to
 * show on real agents what the guards reject.
 */

import { randomBytes } from "node:crypto";
import { createSocket, type Socket } from "node:dgram";
import { connect, type Socket as TcpSocket } from "node:net";
import { type Address, address, incarnation, nodeId } from "../../../src/core/base/ids.ts";
import type { Update } from "../../../src/core/membership/swim/messages.ts";
import { nodeAead } from "../../../src/host/node-aead.ts";
import { type Datagram, decodeDatagram, encodeDatagram } from "../../../src/wire/datagram.ts";
import { FrameReader, frame } from "../../../src/wire/frame.ts";
import { DatagramGuard } from "../../../src/wire/guard.ts";
import { KeyRing } from "../../../src/wire/key-ring.ts";
import { StreamGuard } from "../../../src/wire/stream-guard.ts";
import { CAPABILITIES, PROTOCOL } from "../../../src/wire/version.ts";

const PORT = 7946;

export function ringOf(secret: string, scope = "hyperscale/default"): KeyRing {
  const made = KeyRing.create(nodeAead, [secret], scope);
  if (!made.ok) throw new Error(made.problem);
  return made.ring;
}

/** A sender of datagrams with its own session; `restart` draws a new one, as a process would. */
export class Stranger {
  readonly #socket: Socket;
  readonly #host: string;
  readonly #ring: KeyRing;
  #guard: DatagramGuard;
  #sequence = 0;
  /** Every packet that left, oldest first. */
  readonly sent: Uint8Array[] = [];
  acks = 0;

  private constructor(socket: Socket, host: string, ring: KeyRing) {
    this.#socket = socket;
    this.#host = host;
    this.#ring = ring;
    this.#guard = this.#newGuard();
    socket.on("message", (bytes, { address: from, port }) => {
      const source = address(`${from}:${port}`);
      const opened = this.#guard.open(source, bytes, performance.now());
      for (const packet of opened.send) this.#transmit(packet.to, packet.bytes);
      const decoded = opened.plain === null ? null : decodeDatagram(opened.plain);
      if (decoded?.ok !== true || decoded.value.protocol !== "swim") return;
      if (decoded.value.packet.message.kind === "ack") this.acks++;
    });
  }

  static async open(host: string, ring: KeyRing): Promise<Stranger> {
    const socket = createSocket("udp4");
    await new Promise<void>((resolve) => socket.bind(PORT, host, resolve));
    return new Stranger(socket, host, ring);
  }

  ping(host: string, target: string, updates: readonly Update[] = []): void {
    this.send(host, {
      protocol: "swim",
      packet: {
        from: nodeId("stranger"),
        fromAddress: address(`${this.#host}:${PORT}`),
        incarnation: incarnation(1),
        message: { kind: "ping", sequence: ++this.#sequence, target: nodeId(target) },
        coordinate: null,
        state: null,
        updates,
      },
    });
  }

  send(host: string, datagram: Datagram): void {
    const to = address(`${host}:${PORT}`);
    for (const packet of this.#guard.seal(to, encodeDatagram(datagram), performance.now())) {
      this.#transmit(packet.to, packet.bytes);
    }
  }

  /** The very bytes again. */
  replay(host: string, bytes: Uint8Array): void {
    this.#socket.send(bytes, PORT, host);
  }

  restart(): void {
    this.#guard = this.#newGuard();
  }

  close(): void {
    this.#socket.close();
  }

  #newGuard(): DatagramGuard {
    return new DatagramGuard({ ring: this.#ring, entropy: randomBytes });
  }

  #transmit(to: Address, bytes: Uint8Array): void {
    this.sent.push(bytes);
    this.#socket.send(bytes, PORT, to.split(":")[0] ?? "");
  }
}

/** Sends these bytes on a fresh connection; resolves when the other side closes, with what it said. */
export function shout(host: string, bytes: Uint8Array): Promise<Buffer> {
  return new Promise((resolve) => {
    const socket = connect(PORT, host);
    const heard: Buffer[] = [];
    socket.on("data", (chunk: Buffer) => heard.push(chunk));
    socket.on("error", () => {});
    socket.on("close", () => resolve(Buffer.concat(heard)));
    socket.write(bytes);
  });
}

/** Greets with the secret, then sends one sealed chunk of any content; resolves when the peer closes. */
export function smuggle(host: string, ring: KeyRing, chunk: Uint8Array): Promise<void> {
  const guard = new StreamGuard({
    ring,
    entropy: randomBytes,
    side: "client",
    claims: null,
    hello: {
      cluster: "hyperscale",
      environment: "default",
      versionMajor: PROTOCOL.major,
      versionMinor: PROTOCOL.minor,
      capabilities: CAPABILITIES,
      nodeVersion: "",
      node: "smuggler",
      address: "",
      role: "worker",
      datacenter: "dc1",
    },
  });
  return new Promise((resolve, reject) => {
    const socket: TcpSocket = connect(PORT, host);
    const frames = new FrameReader();
    let greeted = false;
    socket.on("data", (bytes: Buffer) => {
      for (const event of frames.push(bytes)) {
        if (event.kind !== "frame" || guard.push(event.payload).kind !== "ready") continue;
        greeted = true;
        socket.write(frame(guard.seal(chunk)));
      }
    });
    socket.on("error", () => {});
    socket.on("close", () => (greeted ? resolve() : reject(new Error("never got to greet"))));
    socket.write(frame(guard.greet()));
  });
}
