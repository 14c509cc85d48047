/**
 * A member's sockets: datagrams and secured streams on one address. What travels in datagrams is sealed
 * and read by the member's machine; here they are bytes.
 */

import { randomBytes } from "node:crypto";
import type { Address } from "../../core/base/ids.ts";
import type { SwimStreamPacket } from "../../core/cluster/swim/messages.ts";
import type { ExchangeResult, MemberReply } from "../../core/tiers/process/member-types.ts";
import { deflate } from "../../host/deflate.ts";
import { TcpPort } from "../../host/tcp.ts";
import { startTimer } from "../../host/timer.ts";
import { readTlsMaterial } from "../../host/tls.ts";
import { UdpPort } from "../../host/udp.ts";
import { ADMISSION_LIMITS, Admission } from "../../wire/admission.ts";
import { PROBE, PROBE_ANSWER } from "../../wire/frame.ts";
import type { Hello } from "../../wire/hello.ts";
import type { KeyRing } from "../../wire/key-ring.ts";
import {
  CONNECTIONS_FOR_MEMBERS,
  CONNECTIONS_MAX,
  CONNECTIONS_PER_HOST_MAX,
} from "../../wire/limits.ts";
import type { StreamEnvelope } from "../../wire/registry.ts";
import type { AgentConfig } from "./config.ts";
import { Streams } from "./streams.ts";

interface TransportHandlers {
  /** Asked for each new connection, so that a rotated key takes effect without a restart. */
  readonly ring: () => KeyRing;
  readonly onDatagram: (source: Address, bytes: Uint8Array) => void;
  readonly onSendFailed: (to: Address) => void;
  readonly onRequest: (message: StreamEnvelope, answer: (reply: MemberReply) => void) => void;
  readonly onProblem: (host: string, problem: string) => void;
  /** True for a host where a member lives: places are kept for it. */
  readonly isMember: (host: string) => boolean;
}

export class Transports {
  readonly #udp: UdpPort;
  readonly #tcp: TcpPort;
  readonly #streams: Streams;

  private constructor(
    ports: { readonly udp: UdpPort; readonly tcp: TcpPort },
    { role }: AgentConfig,
    hello: Hello,
    handlers: TransportHandlers,
  ) {
    this.#udp = ports.udp;
    this.#tcp = ports.tcp;
    const { ring, onRequest, onProblem, onDatagram, onSendFailed } = handlers;
    this.#streams = new Streams({
      ...{ port: ports.tcp, entropy: randomBytes, compressor: deflate, hello, ring, onProblem },
      admission: new Admission(ADMISSION_LIMITS[role]),
      onRequest: (message, _peer, answer) => onRequest(message, answer),
    });
    ports.udp.onReceive(onDatagram);
    ports.udp.onSendFailed(onSendFailed);
  }

  static async open(
    config: AgentConfig,
    hello: Hello,
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
      return new Transports({ udp, tcp }, config, hello, handlers);
    } catch (error) {
      await tcp.close();
      throw error;
    }
  }

  /** Packets that did not leave because too many waited for the kernel. */
  get datagramsDropped(): number {
    return this.#udp.dropped;
  }

  get streamCounts(): Streams["counts"] {
    const { refused } = this.#tcp.counts;
    const counts = this.#streams.counts;
    return { ...counts, refused: counts.refused + refused };
  }

  send(to: Address, bytes: Uint8Array): void {
    this.#udp.send(to, bytes);
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
}
