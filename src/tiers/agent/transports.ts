/**
 * A member's two transports behind one face: sealed datagrams and secured streams on one address.
 * Here packets become bytes and bytes become packets; rules are elsewhere.
 */

import { randomBytes } from "node:crypto";
import type { Address } from "../../core/base/ids.ts";
import type { SwimStreamPacket } from "../../core/cluster/swim/messages.ts";
import { DATAGRAM_BYTES_MAX } from "../../core/cluster/swim/messages.ts";
import { deflate } from "../../host/deflate.ts";
import { nodeAead } from "../../host/node-aead.ts";
import type { Clock } from "../../host/ports/clock.ts";
import { TcpPort } from "../../host/tcp.ts";
import { startTimer } from "../../host/timer.ts";
import { readTlsMaterial } from "../../host/tls.ts";
import { UdpPort } from "../../host/udp.ts";
import { ADMISSION_LIMITS, Admission } from "../../wire/admission.ts";
import { type Datagram, decodeDatagram, encodeDatagram } from "../../wire/datagram.ts";
import { PROBE, PROBE_ANSWER } from "../../wire/frame.ts";
import { DatagramGuard } from "../../wire/guard.ts";
import type { Hello } from "../../wire/hello.ts";
import { KeyRing } from "../../wire/key-ring.ts";
import {
  CONNECTIONS_FOR_MEMBERS,
  CONNECTIONS_MAX,
  CONNECTIONS_PER_HOST_MAX,
} from "../../wire/limits.ts";
import type { AgentConfig } from "./config.ts";
import { type ExchangeResult, Streams } from "./streams.ts";

interface TransportHandlers {
  readonly onDatagram: (source: Address, datagram: Datagram) => void;
  readonly onSendFailed: (to: Address) => void;
  readonly onRequest: (packet: SwimStreamPacket, answer: (reply: SwimStreamPacket) => void) => void;
  readonly onProblem: (host: string, problem: string) => void;
  /** An authentic datagram that is none of our messages. */
  readonly onUnreadable: (source: Address, problem: string) => void;
  /** True for a host where a member lives: places are kept for it. */
  readonly isMember: (host: string) => boolean;
}

interface TransportCounts {
  datagramsSent: number;
  datagramsReceived: number;
  bytesSent: number;
  bytesReceived: number;
  /** Authentic, and yet not one of our messages. */
  undecodable: number;
  oversized: number;
  /** Well-formed messages, on either transport, of a kind that a bare agent does not serve. */
  unsupported: number;
}

export class Transports {
  readonly #udp: UdpPort;
  readonly #tcp: TcpPort;
  readonly #guard: DatagramGuard;
  readonly #streams: Streams;
  readonly #clock: Clock;
  readonly #handlers: TransportHandlers;
  readonly #scope: string;
  #ring: KeyRing;
  readonly counts: TransportCounts = {
    datagramsSent: 0,
    datagramsReceived: 0,
    bytesSent: 0,
    bytesReceived: 0,
    undecodable: 0,
    oversized: 0,
    unsupported: 0,
  };

  private constructor(
    ports: { readonly udp: UdpPort; readonly tcp: TcpPort },
    config: AgentConfig,
    hello: Hello,
    clock: Clock,
    handlers: TransportHandlers,
  ) {
    this.#udp = ports.udp;
    this.#tcp = ports.tcp;
    this.#clock = clock;
    this.#handlers = handlers;
    this.#scope = scopeOf(config);
    this.#ring = this.#makeRing(config.readSecrets());
    this.#guard = new DatagramGuard({ ring: this.#ring, entropy: randomBytes });
    this.#streams = new Streams({
      port: ports.tcp,
      entropy: randomBytes,
      compressor: deflate,
      hello,
      ring: () => this.#ring,
      admission: new Admission(ADMISSION_LIMITS[config.role]),
      onProblem: handlers.onProblem,
      onRequest: (message, _peer, answer) => {
        if (message.name !== "membership") {
          this.counts.unsupported++;
          const text = `a bare agent does not take ${message.name}`;
          const value = { code: "UNSUPPORTED", text, retryAfterMs: null };
          answer({ name: "refusal", correlation: 0, value });
          return;
        }
        handlers.onRequest(message.value, (value) =>
          answer({ name: "membership", correlation: 0, value }),
        );
      },
    });
    ports.udp.onReceive((source, bytes) => this.#onPacket(source, bytes));
    ports.udp.onSendFailed(handlers.onSendFailed);
  }

  static async open(
    config: AgentConfig,
    hello: Hello,
    clock: Clock,
    handlers: TransportHandlers,
  ): Promise<Transports> {
    const { host, port } = config.bind;
    const tls = config.tls === null ? null : readTlsMaterial(config.tls);
    const places = {
      total: CONNECTIONS_MAX,
      perHost: CONNECTIONS_PER_HOST_MAX,
      forMembers: CONNECTIONS_FOR_MEMBERS,
    };
    const { isMember } = handlers;
    const tcp = await TcpPort.listen({ host, port, tls, places, isMember });
    try {
      const udp = await UdpPort.bind(host, port);
      return new Transports({ udp, tcp }, config, hello, clock, handlers);
    } catch (error) {
      await tcp.close();
      throw error;
    }
  }

  /** Packets that did not leave because too many waited for the kernel. */
  get datagramsDropped(): number {
    return this.#udp.dropped;
  }

  get ring(): KeyRing {
    return this.#ring;
  }

  get guardCounts(): DatagramGuard["counts"] {
    return this.#guard.counts;
  }

  get streamCounts(): Streams["counts"] {
    const { refused } = this.#tcp.counts;
    const counts = this.#streams.counts;
    return { ...counts, refused: counts.refused + refused };
  }

  /** Takes effect for the next packet and the next connection. Throws, changing nothing, on a bad ring. */
  setSecrets(secrets: readonly string[]): void {
    this.#ring = this.#makeRing(secrets);
    this.#guard.setRing(this.#ring);
  }

  send(to: Address, datagram: Datagram): void {
    const plain = encodeDatagram(datagram);
    for (const packet of this.#guard.seal(to, plain, this.#clock.now())) {
      this.#transmit(packet.to, packet.bytes);
    }
  }

  exchange(
    to: Address,
    value: SwimStreamPacket,
    timeoutMs: number,
    done: (result: ExchangeResult) => void,
  ): void {
    this.#streams.exchange(to, { name: "membership", value }, timeoutMs, done);
  }

  /** Does anybody answer there? Says nothing about who. (BOOT-3) */
  probe(to: Address, timeoutMs: number, done: (answered: boolean) => void): void {
    let settled = false;
    const settle = (answered: boolean): void => {
      if (settled) return;
      settled = true;
      deadline.cancel();
      done(answered);
    };
    const deadline = startTimer(timeoutMs, () => settle(false));
    this.#tcp.dial(to, timeoutMs, (stream) => {
      if (stream === null) {
        settle(false);
        return;
      }
      stream.onData((bytes) => {
        settle(
          bytes.length === PROBE_ANSWER.length && bytes.every((b, i) => b === PROBE_ANSWER[i]),
        );
        stream.destroy();
      });
      const cut = startTimer(timeoutMs, () => stream.destroy());
      stream.onClose(() => {
        cut.cancel();
        settle(false);
      });
      stream.write(PROBE);
    });
  }

  async close(): Promise<void> {
    await Promise.all([this.#udp.close(), this.#tcp.close()]);
  }

  #onPacket(source: Address, bytes: Uint8Array): void {
    this.counts.datagramsReceived++;
    this.counts.bytesReceived += bytes.length;
    const opened = this.#guard.open(source, bytes, this.#clock.now());
    for (const packet of opened.send) this.#transmit(packet.to, packet.bytes);
    if (opened.plain === null) return;
    const decoded = decodeDatagram(opened.plain);
    if (decoded.ok) this.#handlers.onDatagram(source, decoded.value);
    else {
      this.counts.undecodable++;
      this.#handlers.onUnreadable(source, decoded.problem);
    }
  }

  #transmit(to: Address, bytes: Uint8Array): void {
    // A machine keeps its packets below the limit; one that grew past it would be lost on some paths.
    if (bytes.length > DATAGRAM_BYTES_MAX) this.counts.oversized++;
    this.counts.datagramsSent++;
    this.counts.bytesSent += bytes.length;
    this.#udp.send(to, bytes);
  }

  #makeRing(secrets: readonly string[]): KeyRing {
    const made = KeyRing.create(nodeAead, secrets, this.#scope);
    if (!made.ok) throw new Error(made.problem);
    return made.ring;
  }
}

function scopeOf({ cluster, environment }: AgentConfig): string {
  return `${cluster}/${environment}`;
}
