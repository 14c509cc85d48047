/**
 * All peers of a ledger node over secured streams: the same secrets, greeting and checks as every other
 * connection of a cluster, then one more: both sides must know the same ledger. A connection is refused
 * with a reason that both sides log.
 */

import { randomBytes } from "node:crypto";
import { ByteWriter } from "../core/base/bytes.ts";
import type { NodeId } from "../core/base/ids.ts";
import { decodeBatch, encodeBatches } from "../core/ledger/node/codec.ts";
import type { NodeMessage } from "../core/ledger/node/messages.ts";
import type { Background } from "../host/background.ts";
import { Connection } from "../host/connection.ts";
import { deflate } from "../host/deflate.ts";
import { nodeAead } from "../host/node-aead.ts";
import type { ByteStream } from "../host/ports/byte-stream.ts";
import type { Log } from "../host/ports/log.ts";
import { warnOfExposure } from "../host/secret-exposure.ts";
import { TcpPort } from "../host/tcp.ts";
import { readTlsMaterial } from "../host/tls.ts";
import { formatAddress, hostOf } from "../wire/address.ts";
import type { Hello } from "../wire/hello.ts";
import { KeyRing } from "../wire/key-ring.ts";
import { decodeStreamMessage, encodeStreamMessage, type StreamEnvelope } from "../wire/registry.ts";
import { CAPABILITIES, PROTOCOL } from "../wire/version.ts";
import { describeLedger, type LedgerConfig, type PeerConfig } from "./config.ts";
import { PeerLink, type PeerLinkView } from "./peer-link.ts";

/** One frame's worth of messages; more go into the next. */
const BATCH_BYTES = 524_288;
const DIAL_MS_MAX = 2_000;
/** A peer keeps one connection to us, and a second while it replaces it; strangers have the rest. */
const PLACES = { total: 256, perHost: 128, forMembers: 128 };
/** The same refusal of the same peer is logged again after this. */
const REPEAT_LOG_MS = 30_000;

interface PeersHandlers {
  /** `identity`: of the sender's data directory. */
  readonly onMessages: (from: NodeId, identity: string, messages: readonly NodeMessage[]) => void;
  /** Why a peer with this data directory is not heard; null when it is. */
  readonly identityProblem: (peer: NodeId, identity: string) => string | null;
  readonly onLink: (peer: NodeId, up: boolean) => void;
  readonly log: Log;
  readonly background: Background;
  readonly version: string;
}

/** Who speaks on a connection that came in. */
interface Caller {
  readonly name: NodeId;
  readonly identity: string;
}

export interface PeerView extends PeerLinkView {
  readonly name: string;
  readonly region: string;
  readonly address: string;
  /** Their connection to us is open. */
  readonly heard: boolean;
  readonly receivedBatches: number;
}

export class Peers {
  readonly #config: LedgerConfig;
  readonly #handlers: PeersHandlers;
  readonly #tcp: TcpPort;
  readonly #hello: Hello;
  readonly #ledger: ReturnType<typeof describeLedger>;
  readonly #links = new Map<NodeId, PeerLink>();
  /** The connection each peer keeps to us; a newer one replaces it. */
  readonly #incoming = new Map<NodeId, Connection>();
  readonly #received = new Map<NodeId, number>();
  readonly #logged = new Map<string, number>();
  readonly #writer = new ByteWriter(BATCH_BYTES * 2);
  #identity = "";
  #ring: KeyRing;

  private constructor(config: LedgerConfig, tcp: TcpPort, handlers: PeersHandlers) {
    this.#config = config;
    this.#handlers = handlers;
    this.#tcp = tcp;
    this.#ledger = describeLedger(config);
    this.#ring = this.#makeRing();
    this.#hello = {
      cluster: config.cluster,
      environment: config.environment,
      versionMajor: PROTOCOL.major,
      versionMinor: PROTOCOL.minor,
      // Deflating what goes to a neighbour's disk in the same millisecond costs more than it saves.
      capabilities: CAPABILITIES.filter((capability) => capability !== "compression"),
      nodeVersion: handlers.version,
      node: config.name,
      address: formatAddress(config.bind.host, config.bind.port),
      role: "gate",
      datacenter: config.region,
    };
    tcp.onAccept((stream) => this.#accept(stream));
    for (const peer of config.peers) this.#links.set(peer.name, this.#linkTo(peer));
  }

  /** Listens; nobody is called before `start`. */
  static async listen(config: LedgerConfig, handlers: PeersHandlers): Promise<Peers> {
    const tls =
      config.tls === null ? null : readTlsMaterial(config.tls as NonNullable<typeof config.tls>);
    const hosts = new Set(config.peers.map(({ address }) => hostOf(address)));
    const isMember = (host: string): boolean => hosts.has(host);
    const tcp = await TcpPort.listen({ ...config.bind, tls, places: PLACES, isMember });
    return new Peers(config, tcp, handlers);
  }

  get encryption(): string {
    return this.#ring.encryption;
  }

  get digest(): string {
    return this.#ledger.digest;
  }

  /** For the connections to come. Throws, changing nothing, when the secrets cannot be used. */
  reloadKeys(): void {
    this.#ring = this.#makeRing();
  }

  /** `identity`: of our own data directory; nobody is called before it is durable. */
  start(identity: string): void {
    this.#identity = identity;
    for (const link of this.#links.values()) link.start();
  }

  send(to: NodeId, messages: readonly NodeMessage[]): void {
    const link = this.#links.get(to);
    if (link === undefined) return;
    for (const value of encodeBatches(this.#writer, messages, BATCH_BYTES)) {
      link.send(encodeStreamMessage({ name: "ledgerBatch", correlation: 0, value }));
    }
  }

  view(): readonly PeerView[] {
    return this.#config.peers.map(({ name, region, address }) => {
      const link = this.#links.get(name) as PeerLink;
      const heard = this.#incoming.has(name);
      const receivedBatches = this.#received.get(name) ?? 0;
      return { name, region, address, ...link.view(), heard, receivedBatches };
    });
  }

  async stop(): Promise<void> {
    for (const link of this.#links.values()) link.stop();
    await this.#tcp.close();
  }

  #makeRing(): KeyRing {
    const { cluster, environment, readSecrets, secretFile } = this.#config;
    warnOfExposure(secretFile, this.#handlers.log);
    const made = KeyRing.create(nodeAead, readSecrets(), `${cluster}/${environment}`);
    if (!made.ok) throw new Error(made.problem);
    return made.ring;
  }

  #linkTo(peer: PeerConfig): PeerLink {
    return new PeerLink({
      random: Math.random,
      background: this.#handlers.background,
      connect: (handlers) => this.#dial(peer, handlers),
      onUp: () => {
        this.#logged.delete(peer.name);
        this.#handlers.log.event("info", "peer.up", { peer: peer.name, address: peer.address });
        this.#handlers.onLink(peer.name, true);
      },
      onDown: (problem) => {
        this.#logOnce("warn", "peer.down", peer.name, problem);
        this.#handlers.onLink(peer.name, false);
      },
    });
  }

  #dial(
    peer: PeerConfig,
    handlers: {
      readonly onUp: (connection: Connection) => void;
      readonly onEnd: (problem: string) => void;
    },
  ): void {
    this.#tcp.dial(peer.address, DIAL_MS_MAX, (stream, problem) => {
      if (stream === null) {
        handlers.onEnd(problem === "refused" ? "nobody listens there" : "no connection");
        return;
      }
      const connection: Connection = this.#connection(stream, "client", {
        onReady: (hello) => {
          if (hello.node !== peer.name) {
            connection.destroy(`the node at ${peer.address} is called "${hello.node}"`);
            return;
          }
          const value = { ...this.#ledger, identity: this.#identity };
          connection.send(encodeStreamMessage({ name: "ledgerOpening", correlation: 1, value }));
        },
        onMessage: (bytes) => {
          const answer = decodeStreamMessage(bytes);
          if (!answer.ok) connection.destroy(answer.problem);
          else if (answer.value.name === "ledgerOpened") handlers.onUp(connection);
          else if (answer.value.name === "refusal") connection.destroy(answer.value.value.text);
        },
        onEnd: (ended) => handlers.onEnd(ended ?? "the connection closed"),
      });
    });
  }

  #accept(stream: ByteStream): void {
    let peer: Caller | null = null;
    const connection: Connection = this.#connection(stream, "server", {
      onReady: () => {},
      onMessage: (bytes, hello) => {
        const message = decodeStreamMessage(bytes);
        if (!message.ok) connection.destroy(message.problem);
        else if (peer !== null) this.#onBatch(peer, message.value, connection);
        else peer = this.#onOpening(message.value, hello, connection);
      },
      onEnd: (problem) => {
        const name = peer?.name;
        if (name !== undefined && this.#incoming.get(name) === connection) {
          this.#incoming.delete(name);
        }
        if (problem !== null) this.#logOnce("warn", "peer.refused", name ?? stream.host, problem);
      },
    });
  }

  #onBatch({ name, identity }: Caller, message: StreamEnvelope, connection: Connection): void {
    if (message.name !== "ledgerBatch") {
      connection.destroy(`a ledger does not send ${message.name}`);
      return;
    }
    const batch = decodeBatch(message.value);
    if (!batch.ok) {
      connection.destroy(batch.problem);
      return;
    }
    this.#received.set(name, (this.#received.get(name) ?? 0) + 1);
    this.#handlers.onMessages(name, identity, batch.messages);
  }

  /** Who it is, if it belongs to this ledger. */
  #onOpening(message: StreamEnvelope, hello: Hello, connection: Connection): Caller | null {
    const known = this.#config.peers.find(({ name }) => name === hello.node);
    const problem = this.#openingProblem(message, hello, known);
    if (problem !== null || known === undefined || message.name !== "ledgerOpening") {
      const text = problem ?? "unknown";
      const value = { code: "LEDGER", text, retryAfterMs: null };
      connection.send(encodeStreamMessage({ name: "refusal", correlation: 1, value }));
      connection.close();
      this.#logOnce("error", "peer.refused", hello.node, text);
      return null;
    }
    this.#incoming.get(known.name)?.close();
    this.#incoming.set(known.name, connection);
    const value = { node: this.#config.name };
    connection.send(encodeStreamMessage({ name: "ledgerOpened", correlation: 1, value }));
    return { name: known.name, identity: message.value.identity };
  }

  #openingProblem(
    message: StreamEnvelope,
    { node, datacenter, role }: Hello,
    known: PeerConfig | undefined,
  ): string | null {
    const { name, region } = this.#config;
    if (message.name !== "ledgerOpening") return "a connection of a ledger begins with its opening";
    if (role !== "gate") return `a ${role} is no replica of a ledger`;
    if (node === name) return `two nodes are called "${name}"`;
    const { digest, described } = message.value;
    if (known === undefined || digest !== this.#ledger.digest) {
      return (
        `another replica set: ${node} has [${described}], ${name} has ` +
        `[${this.#ledger.described}]; make name, region, peers, replicas and fewNodes agree on all nodes`
      ).slice(0, 500);
    }
    if (known.region === datacenter) {
      return this.#handlers.identityProblem(known.name, message.value.identity);
    }
    return `${node} says it is in ${datacenter}; ${name} (${region}) has it in ${known.region}`;
  }

  #connection(
    stream: ByteStream,
    side: "client" | "server",
    handlers: Pick<ConstructorParameters<typeof Connection>[0], "onReady" | "onMessage" | "onEnd">,
  ): Connection {
    return new Connection({
      stream,
      compressor: deflate,
      guard: { entropy: randomBytes, ring: this.#ring, side, hello: this.#hello },
      ...handlers,
    });
  }

  #logOnce(level: "warn" | "error", event: string, peer: string, problem: string): void {
    const key = `${event} ${peer} ${problem}`;
    const now = performance.now();
    if (now - (this.#logged.get(key) ?? Number.NEGATIVE_INFINITY) < REPEAT_LOG_MS) return;
    if (this.#logged.size > 1_000) this.#logged.clear();
    this.#logged.set(key, now);
    this.#handlers.log.event(level, event, { peer, problem });
  }
}
