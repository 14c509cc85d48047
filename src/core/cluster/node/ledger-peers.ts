/**
 * Peers of a ledger node over secured streams. In addition to the greeting and checks of every connection in a cluster,
 * both sides must agree on the ledger. A connection is refused with a reason that both sides log.
 */

import type { Compressor } from "../../../host/ports/compressor.ts";
import type { Hello } from "../../../wire/hello.ts";
import type { KeyRing } from "../../../wire/key-ring.ts";
import type { LedgerMark } from "../../../wire/messages/ledger.ts";
import { encodeStreamMessage, MESSAGES, type StreamEnvelope } from "../../../wire/registry.ts";
import { encode } from "../../../wire/schema.ts";
import type { Entropy } from "../../../wire/seal.ts";
import type { Millis } from "../../base/brand.ts";
import { ByteWriter } from "../../base/bytes.ts";
import type { Address, NodeId } from "../../base/ids.ts";
import type { Random } from "../../base/random.ts";
import { decodeBatch, encodeBatches } from "../../ledger/node/codec.ts";
import type { NodeMessage } from "../../ledger/node/messages.ts";
import type { GateHealth } from "../gate-messages.ts";
import type { QueueLimits } from "../link/limits.ts";
import { type Gone, type Incoming, Links } from "../link/links.ts";
import type { LinkRules } from "../link/rules.ts";
import type { LinkInput, StreamId } from "../link/types.ts";
import type { LedgerDescription } from "./describe-ledger.ts";
import { LogMarks, OLD_LOG } from "./log-marks.ts";
import { PeerClocks } from "./peer-clocks.ts";
import type { ProcessRules } from "./rules.ts";
import type { LogLevel, PeerView, ProcessEffect, ProcessInput } from "./types.ts";

/** Maximum size of one batch of messages, which fits one frame. */
const BATCH_BYTES = 524_288;
/** Interval at which the same message about the same peer is logged again. */
const REPEAT_LOG_MS = 30_000;
const REPEATS_MAX = 1_000;

interface LedgerPeer {
  readonly name: NodeId;
  readonly region: string;
  readonly address: Address;
}

export interface LedgerPeersOptions {
  readonly hello: Hello;
  /** Sent when a link opens. */
  readonly ledger: LedgerDescription;
  readonly peers: readonly LedgerPeer[];
  readonly ring: KeyRing;
  readonly entropy: Entropy;
  readonly compressor: Compressor;
  readonly limits: QueueLimits;
  readonly rules: { readonly link: LinkRules; readonly peers: ProcessRules };
}

/** Observer of messages between a node and its links, for checkers; unused in production. */
export interface PeersWatcher {
  /** The node sends this many batches to a peer, including a log mark. */
  readonly onSend: (to: NodeId, messages: readonly NodeMessage[], batches: number) => void;
  /** A batch was handed to the network, in its envelope. */
  readonly onSent: (stream: StreamId, message: Uint8Array) => void;
  /** A peer's batch is passed to the node. */
  readonly onTaken: (stream: StreamId, batch: Uint8Array) => void;
}

interface PeersHandlers {
  readonly emit: (effect: ProcessEffect) => void;
  /** `identity`: of the sender's data directory. */
  readonly onMessages: (from: NodeId, identity: string, messages: readonly NodeMessage[]) => void;
  readonly onReached: (peer: NodeId) => void;
  /** Reason to reject a peer with this data directory; null to accept it. */
  readonly refuseIdentity: (peer: NodeId, identity: string) => string | null;
  /** Last durable record of our own log. */
  readonly lastRecord: () => number;
  readonly wall: () => number;
}

/** Peer on an incoming connection. */
interface Caller {
  readonly name: NodeId;
  readonly identity: string;
}

export class LedgerPeers {
  readonly #options: LedgerPeersOptions;
  readonly #handlers: PeersHandlers;
  readonly #links: Links;
  readonly #marks: LogMarks;
  readonly clocks = new PeerClocks();
  readonly #byName = new Map<string, LedgerPeer>();
  readonly #callers = new Map<StreamId, Caller>();
  /** Incoming connection of each peer; a newer one replaces it. */
  readonly #incoming = new Map<NodeId, StreamId>();
  readonly #received = new Map<NodeId, number>();
  readonly #loggedAt = new Map<string, number>();
  readonly #writer = new ByteWriter(BATCH_BYTES * 2);
  /** Software versions of peers, from their greeting. */
  readonly #versions = new Map<string, string>();
  /** Draining peers, by the connection on which they reported it. */
  readonly #draining = new Map<StreamId, NodeId>();
  #isDraining = false;
  /** Own health as reported to peers. */
  #health: GateHealth | null = null;
  #diskProblem = "";
  /** Disk problems reported by peers, by their connection. */
  readonly #diskProblems = new Map<StreamId, string>();
  #identity = "";
  #now = 0 as Millis;
  watcher: PeersWatcher | null = null;

  constructor(options: LedgerPeersOptions, handlers: PeersHandlers, random: Random) {
    this.#options = options;
    this.#handlers = handlers;
    this.#marks = new LogMarks(options.hello);
    for (const peer of options.peers) this.#byName.set(peer.name, peer);
    const { hello, ring, entropy, compressor, limits, rules } = options;
    this.#links = new Links(
      { hello, ring, entropy, compressor, limits, rules: rules.link, emit: handlers.emit },
      {
        refusePeer: (peer, theirs) => {
          const { address } = this.#byName.get(peer) as LedgerPeer;
          if (theirs.node !== peer) return `the node at ${address} is called "${theirs.node}"`;
          this.#marks.onGreeted(peer as NodeId, theirs);
          this.#versions.set(peer, theirs.nodeVersion);
          return null;
        },
        opening: () => {
          const lastRecord = handlers.lastRecord();
          const value = { ...this.#options.ledger, identity: this.#identity, lastRecord };
          return { name: "ledgerOpening", correlation: 1, value };
        },
        refuseOpened: (_peer, { name }) =>
          name === "ledgerOpened" ? null : `a ledger does not answer with ${name}`,
        onSent: (stream, message) => this.watcher?.onSent(stream, message),
        onUp: (peer) => this.#onUp(peer as NodeId),
        onPush: (peer, message) =>
          handlers.emit({ kind: "peerAnswered", peer: peer as NodeId, message }),
        onDown: (peer, problem) => this.#onDown(peer as NodeId, problem),
        onDropped: (peer, count) => {
          this.#say(
            "warn",
            "peer.dropped",
            peer,
            `${count} batches or more: it takes them too slowly`,
          );
        },
        onRequest: (incoming) => this.#onRequest(incoming),
        onMessage: (incoming) => this.#onBatch(incoming),
        onGone: (stream, gone) => this.#onGone(stream, gone),
      },
      random,
    );
    for (const { name, address } of options.peers) this.#links.keep(name, address);
  }

  get encryption(): string {
    return this.#links.ring.encryption;
  }

  /** Sets the key ring for new connections. */
  useRing(ring: KeyRing): void {
    this.#links.useRing(ring);
  }

  /** `identity`: of our own data directory, which is durable. */
  connect(identity: string, now: Millis): void {
    this.#now = now;
    this.#identity = identity;
    this.#links.call(now);
  }

  send(to: NodeId, messages: readonly NodeMessage[], now: Millis): void {
    if (!this.#byName.has(to)) return;
    this.#now = now;
    const batches = encodeBatches(this.#writer, messages, BATCH_BYTES);
    const mark = this.#mark(to);
    this.watcher?.onSend(to, messages, batches.length + (mark === null ? 0 : 1));
    if (mark !== null) this.#links.send(to, mark, now);
    for (const value of batches) {
      const batch = { name: "ledgerBatch", correlation: 0, value } as const;
      this.#links.send(to, encodeStreamMessage(batch, this.#writer), now);
    }
  }

  /** Returns an encoded log mark if one is due for this peer, else null. */
  #mark(to: NodeId): Uint8Array | null {
    const lastRecord = this.#marks.due(to, this.#handlers.lastRecord, this.#now);
    return lastRecord === null ? null : this.#encodeMark(lastRecord);
  }

  #encodeMark(lastRecord: number): Uint8Array {
    const wallMs = Math.max(0, this.#handlers.wall());
    const own = {
      draining: this.#isDraining,
      health: this.#health,
      diskProblem: this.#diskProblem,
    };
    const value = { lastRecord, wallMs, ...own };
    return encodeStreamMessage({ name: "ledgerMark", correlation: 0, value });
  }

  /** Reports to all current and future peers that this node accepts no more work. */
  drain(now: Millis): void {
    this.#now = now;
    if (this.#isDraining) return;
    this.#isDraining = true;
    this.#reportToAll();
  }

  #reportToAll(): void {
    for (const { name } of this.#options.peers) this.#reportTo(name);
  }

  #reportTo(to: NodeId): void {
    if (!this.#marks.isSupported(to) || !this.#links.view(to).up) return;
    this.watcher?.onSend(to, [], 1);
    this.#links.send(to, this.#encodeMark(this.#handlers.lastRecord()), this.#now);
  }

  #onMark(stream: StreamId, { identity, name }: Caller, mark: LedgerMark): void {
    this.#marks.onReceived(name, identity, mark.lastRecord);
    this.watcher?.onTaken(stream, encode(MESSAGES.ledgerMark.type, mark));
    const { wallMs } = mark;
    const aheadMs = this.#handlers.wall() - wallMs;
    if (wallMs > 0 && this.clocks.onReceived(name, aheadMs, this.#now)) this.#logClock();
    // Ignores late marks of a replaced connection. (AD-19.40)
    if (mark.health !== null && this.#incoming.get(name) === stream)
      this.#handlers.emit({ kind: "peerHealth", peer: name, health: mark.health });
    if (mark.diskProblem !== (this.#diskProblems.get(stream) ?? ""))
      this.#onDiskProblem(stream, name, mark.diskProblem);
    if (!mark.draining || this.#draining.has(stream)) return;
    this.#draining.set(stream, name);
    this.#handlers.emit({ kind: "peerDrains", peer: name, drains: true });
  }

  #onDiskProblem(stream: StreamId, peer: NodeId, problem: string): void {
    if (problem === "") this.#diskProblems.delete(stream);
    else this.#diskProblems.set(stream, problem);
    this.#handlers.emit({ kind: "diskProblem", peer, problem });
  }

  #logClock(): void {
    const { ahead } = this.clocks;
    this.#handlers.emit(
      ahead === null
        ? logged("info", "clock.agrees", {})
        : logged("error", "clock.ahead", { peer: ahead.peer, aheadMs: String(ahead.aheadMs) }),
    );
  }

  /** `say` answers a caller. `askPeer` sends a non-ledger message over a peer link. */
  take(
    input:
      | LinkInput
      | Extract<ProcessInput, { kind: "say" | "askPeer" | "tellPeers" | "tellDisk" }>,
    now: Millis,
  ): void {
    this.#now = now;
    if (input.kind === "say") this.#links.answer(input.stream, input.message, now);
    else if (input.kind === "tellPeers") {
      this.#health = input.health;
      this.#reportToAll();
    } else if (input.kind === "tellDisk") {
      this.#diskProblem = input.problem;
      this.#reportToAll();
    } else if (input.kind === "askPeer") {
      if (this.#byName.has(input.peer))
        this.#links.send(input.peer, encodeStreamMessage(input.message), now);
    } else this.#links.take(input, now);
  }

  tick(now: Millis): void {
    this.#now = now;
    this.#links.tick(now);
  }

  nextDeadline(): number | null {
    return this.#links.nextDeadline();
  }

  view(): readonly PeerView[] {
    return this.#options.peers.map(({ name, region, address }) => {
      const link = this.#links.view(name);
      const heard = this.#incoming.has(name);
      const receivedBatches = this.#received.get(name) ?? 0;
      return { name, region, address, ...link, heard, receivedBatches };
    });
  }

  #onUp(peer: NodeId): void {
    const { address } = this.#byName.get(peer) as LedgerPeer;
    this.#handlers.emit(logged("info", "peer.up", { peer, address }));
    const version = this.#versions.get(peer) ?? "";
    this.#handlers.emit({ kind: "peer", peer, up: true, version });
    this.#handlers.onReached(peer);
    if (this.#isDraining || this.#health !== null || this.#diskProblem !== "") this.#reportTo(peer);
  }

  #onDown(peer: NodeId, problem: string): void {
    this.#say("warn", "peer.down", peer, problem);
    if (problem.startsWith(OLD_LOG)) this.#handlers.emit({ kind: "outdated", problem });
    const version = this.#versions.get(peer) ?? "";
    this.#handlers.emit({ kind: "peer", peer, up: false, version });
  }

  #onGone(stream: StreamId, { name, problem, wasReset }: Gone): void {
    const caller = this.#callers.get(stream);
    this.#callers.delete(stream);
    if (caller !== undefined && this.#incoming.get(caller.name) === stream) {
      this.#incoming.delete(caller.name);
      if (this.clocks.forget(caller.name, this.#now)) this.#logClock();
    }
    if (this.#diskProblems.has(stream)) this.#onDiskProblem(stream, name as NodeId, "");
    const drained = this.#draining.get(stream);
    this.#draining.delete(stream);
    // A drain lasts as long as its connection; the peer repeats it on the next one.
    if (drained !== undefined)
      this.#handlers.emit({ kind: "peerDrains", peer: drained, drains: false });
    this.#handlers.emit({ kind: "callerGone", stream, byPeer: problem === null && !wasReset });
    if (problem !== null) this.#say("warn", "peer.refused", name, problem);
  }

  /**
   * Passes messages for the application on: workers, clients and gates of another ledger share the port of the peers,
   * and peers request blobs from each other.
   */
  #isForApplication({ stream, peer: { node: name, role }, message }: Incoming): boolean {
    if (role === "manager") {
      const asksForBlobs = message.name === "blobPut" || message.name === "blobGet";
      if (!asksForBlobs || !this.#callers.has(stream)) return false;
    } else if (role === this.#options.hello.role) return false;
    this.#handlers.emit({ kind: "called", stream, role, name, message });
    return true;
  }

  #onBatch(incoming: Incoming): void {
    if (this.#isForApplication(incoming)) return;
    const { stream, message } = incoming;
    const caller = this.#callers.get(stream);
    if (caller !== undefined && message.name === "ledgerMark") {
      this.#onMark(stream, caller, message.value);
      return;
    }
    if (caller === undefined || message.name !== "ledgerBatch") {
      const problem =
        caller === undefined
          ? "a connection of a ledger begins with its opening"
          : `a ledger does not send ${message.name}`;
      this.#links.destroy(stream, problem, this.#now);
      return;
    }
    const batch = decodeBatch(message.value);
    if (!batch.ok) {
      this.#links.destroy(stream, batch.problem, this.#now);
      return;
    }
    const { name, identity } = caller;
    this.#received.set(name, (this.#received.get(name) ?? 0) + 1);
    this.watcher?.onTaken(stream, message.value);
    this.#handlers.onMessages(name, identity, batch.messages);
  }

  /** Accepts messages of a caller once its opening proves that it belongs to this ledger. */
  #onRequest(incoming: Incoming): void {
    if (this.#isForApplication(incoming)) return;
    const { stream, peer, message } = incoming;
    const known = this.#byName.get(peer.node);
    const problem = this.#openingProblem(message, peer, known);
    if (problem !== null || known === undefined || message.name !== "ledgerOpening") {
      const text = problem ?? "unknown";
      this.#links.refuse(incoming, "LEDGER", text, this.#now);
      this.#say("error", "peer.refused", peer.node, text);
      return;
    }
    const { name } = known;
    const former = this.#incoming.get(name);
    if (former !== undefined && former !== stream) this.#links.close(former, this.#now);
    this.#incoming.set(name, stream);
    this.#callers.set(stream, { name, identity: message.value.identity });
    const value = { node: this.#options.hello.node };
    const { correlation } = message;
    this.#links.answer(stream, { name: "ledgerOpened", correlation, value }, this.#now);
  }

  #openingProblem(
    message: StreamEnvelope,
    { node, datacenter }: Hello,
    known: LedgerPeer | undefined,
  ): string | null {
    const { hello, ledger, rules } = this.#options;
    if (message.name !== "ledgerOpening") return "a connection of a ledger begins with its opening";
    if (node === hello.node) return `two nodes are called "${node}"`;
    const { digest, described, identity, lastRecord } = message.value;
    const agrees = digest === ledger.digest || !rules.peers.digestCompared;
    if (known === undefined || !agrees) {
      return (
        `another replica set: ${node} has [${described}], ${hello.node} has ` +
        `[${ledger.described}]; make name, region, peers, replicas and fewNodes agree on all nodes`
      );
    }
    if (known.region === datacenter) {
      const other = this.#handlers.refuseIdentity(known.name, identity);
      return other ?? this.#marks.refuse(known.name, identity, lastRecord);
    }
    return (
      `${node} says it is in ${datacenter}; ${hello.node} (${hello.datacenter}) has it in ` +
      known.region
    );
  }

  #say(level: LogLevel, event: string, peer: string, problem: string): void {
    const key = `${event} ${peer} ${problem}`;
    const before = this.#loggedAt.get(key) ?? Number.NEGATIVE_INFINITY;
    if (this.#now - before < REPEAT_LOG_MS) return;
    if (this.#loggedAt.size >= REPEATS_MAX) this.#loggedAt.clear();
    this.#loggedAt.set(key, this.#now);
    this.#handlers.emit(logged(level, event, { peer, problem }));
  }
}

function logged(
  level: LogLevel,
  event: string,
  fields: Readonly<Record<string, string>>,
): ProcessEffect {
  return { kind: "log", level, event, fields };
}
