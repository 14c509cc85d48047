/**
 * Anti-entropy: finds differences between replicas of different regions. (AE-1..5)
 *
 *     CONSISTENT ──roots differ──> COMPARING ──leaves found──> FETCHING ──> VERIFYING
 *         ^                           ^   drill down, 10 levels               │   │
 *         │                           └──────────── roots differ ─────────────┘   │
 *         └─────────────────────────────── roots equal ───────────────────────────┘
 *
 * One round per peer at a time, started by the timer, after a heal, after a restart. A side that is behind fetches; a
 * side that is ahead notifies the other. Answering is stateless. A round keeps no state that would be missed: it may
 * stop at any point, and the next one begins at the roots.
 *
 * Only committed prefixes are compared, and nothing is merged here: a job that is behind gets the rest from its group.
 * The same index with different chains raises an alarm. (LEDG-6)
 */

import { assert } from "../../base/assert.ts";
import type { Millis } from "../../base/brand.ts";
import type { NodeId } from "../../base/ids.ts";
import type { Random } from "../../base/random.ts";
import { type AntiEntropyConfig, checkAntiEntropyConfig } from "./config.ts";
import type { JobId } from "./job-id.ts";
import {
  childrenOf,
  isLeaf,
  isNode,
  type JobSummary,
  MERKLE_ROOT,
  type MerkleTree,
  sameHash,
} from "./merkle.ts";

type RepairState = "CONSISTENT" | "COMPARING" | "FETCHING" | "VERIFYING";

/** Every message of a round carries its number; answers to an older round are passed over. */
export type AntiEntropyMessage =
  | { readonly kind: "rootRequest"; readonly round: number }
  | { readonly kind: "rootHash"; readonly round: number; readonly hash: Uint8Array }
  | { readonly kind: "subtreeRequest"; readonly round: number; readonly nodes: readonly number[] }
  | {
      readonly kind: "subtreeHashes";
      readonly round: number;
      readonly hashes: readonly { readonly node: number; readonly hash: Uint8Array }[];
    }
  | {
      readonly kind: "leafRequest";
      readonly round: number;
      readonly leaf: number;
      /** The last job of the page before; null for the first page. */
      readonly after: JobId | null;
    }
  | {
      readonly kind: "leafJobs";
      readonly round: number;
      readonly leaf: number;
      readonly jobs: readonly JobSummary[];
      readonly more: boolean;
    }
  /** The receiver lacks events that the sender has. */
  | { readonly kind: "youAreBehind" };

export type AntiEntropyInput =
  | { readonly kind: "peers"; readonly peers: readonly NodeId[] }
  /** This peer is connected again. */
  | { readonly kind: "healed"; readonly peer: NodeId }
  | { readonly kind: "message"; readonly from: NodeId; readonly message: AntiEntropyMessage }
  /** `fetch` was carried out: the available entries are on their way, or already in the tree. */
  | { readonly kind: "fetched"; readonly peer: NodeId; readonly jobId: JobId }
  | { readonly kind: "tick" };

export type AntiEntropyEffect =
  | { readonly kind: "send"; readonly to: NodeId; readonly message: AntiEntropyMessage }
  /** This job is behind what the peer holds: its group must bring the rest. */
  | { readonly kind: "fetch"; readonly peer: NodeId; readonly jobId: JobId }
  | {
      readonly kind: "alarm";
      readonly peer: NodeId;
      readonly jobId: JobId;
      readonly seq: number;
      readonly why: string;
    }
  | {
      readonly kind: "stateChanged";
      readonly peer: NodeId;
      readonly from: RepairState;
      readonly to: RepairState;
    };

/** Hashes requested in one message; the children of the most leaves a round repairs. */
export const SUBTREE_NODES_MAX = 256;
/** Comparisons of one round: a live cluster moves on while it is compared, so roots may never be equal. */
const PASSES_MAX = 4;
/** Jobs found behind in one pass; the rest is found in the next. */
const BEHIND_MAX = 4_096;
/** Alarms remembered; beyond it they would be raised again in every round. */
const ALARMS_MAX = 1_024;

interface Peer {
  state: RepairState;
  round: number;
  nextRoundAt: number;
  lastEndedAt: number;
  /** When the round is given up for want of progress. */
  giveUpAt: number;
  passes: number;
  leaves: number[];
  /** Where the page of the first leaf that is awaited begins. */
  pageAfter: JobId | null;
  behind: JobSummary[];
  /** Jobs being fetched. */
  readonly open: Set<JobId>;
  peerIsBehind: boolean;
}

export class AntiEntropy {
  readonly #tree: MerkleTree;
  readonly #config: AntiEntropyConfig;
  readonly #random: Random;
  readonly #peers = new Map<NodeId, Peer>();
  /** Jobs in alarm: raised once, and never fetched. */
  readonly #alarmed = new Set<JobId>();
  #rounds = 0;
  #effects: AntiEntropyEffect[] = [];

  constructor(tree: MerkleTree, config: AntiEntropyConfig, random: Random) {
    checkAntiEntropyConfig(config);
    this.#tree = tree;
    this.#config = config;
    this.#random = random;
  }

  nextDeadline(): Millis | null {
    let earliest = Number.POSITIVE_INFINITY;
    for (const peer of this.#peers.values()) {
      const at = peer.state === "CONSISTENT" ? peer.nextRoundAt : peer.giveUpAt;
      earliest = Math.min(earliest, at);
    }
    return Number.isFinite(earliest) ? (earliest as Millis) : null;
  }

  step(input: AntiEntropyInput, now: Millis): readonly AntiEntropyEffect[] {
    this.#effects = [];
    switch (input.kind) {
      case "peers":
        this.#onPeers(input.peers, now);
        break;
      case "healed":
        this.#onHealed(input.peer, now);
        break;
      case "message":
        this.#onMessage(input.from, input.message, now);
        break;
      case "fetched":
        this.#onFetched(input, now);
        break;
      case "tick":
        this.#onTick(now);
        break;
    }
    return this.#effects;
  }

  /** A peer that is new to us, after our own restart too, is compared at once. (AE-4) */
  #onPeers(peers: readonly NodeId[], now: Millis): void {
    for (const known of [...this.#peers.keys()]) {
      if (!peers.includes(known)) this.#peers.delete(known);
    }
    for (const peer of peers) {
      if (this.#peers.has(peer)) continue;
      this.#peers.set(peer, {
        state: "CONSISTENT",
        round: 0,
        nextRoundAt: now,
        lastEndedAt: Number.NEGATIVE_INFINITY,
        giveUpAt: 0,
        passes: 0,
        leaves: [],
        pageAfter: null,
        behind: [],
        open: new Set(),
        peerIsBehind: false,
      });
    }
  }

  /** Requests sent over the old connection are lost, and so are their answers. */
  #onHealed(name: NodeId, now: Millis): void {
    const peer = this.#peers.get(name);
    if (peer === undefined) return;
    if (peer.state !== "CONSISTENT") this.#end(name, peer, now);
    this.#hurry(name, now);
  }

  #hurry(name: NodeId, now: Millis): void {
    const peer = this.#peers.get(name);
    if (peer === undefined) return;
    const earliest = Math.max(now, peer.lastEndedAt + this.#config.roundGapMs);
    peer.nextRoundAt = Math.min(peer.nextRoundAt, earliest);
  }

  #onTick(now: Millis): void {
    for (const [name, peer] of this.#peers) {
      if (peer.state !== "CONSISTENT") {
        if (now >= peer.giveUpAt) this.#end(name, peer, now);
      } else if (now >= peer.nextRoundAt) {
        peer.passes = 0;
        peer.peerIsBehind = false;
        this.#compareRoots(name, peer, "COMPARING", now);
      }
    }
  }

  #compareRoots(name: NodeId, peer: Peer, state: "COMPARING" | "VERIFYING", now: Millis): void {
    peer.round = ++this.#rounds;
    peer.passes++;
    peer.leaves = [];
    peer.behind = [];
    peer.open.clear();
    this.#turn(name, peer, state);
    this.#ask(name, peer, { kind: "rootRequest", round: peer.round }, now);
  }

  #ask(name: NodeId, peer: Peer, message: AntiEntropyMessage, now: Millis): void {
    peer.giveUpAt = now + this.#config.stepTimeoutMs;
    this.#effects.push({ kind: "send", to: name, message });
  }

  #onMessage(from: NodeId, message: AntiEntropyMessage, now: Millis): void {
    switch (message.kind) {
      case "rootRequest":
      case "subtreeRequest":
      case "leafRequest":
        this.#answer(from, message);
        return;
      case "youAreBehind":
        this.#hurry(from, now);
        return;
    }
    const peer = this.#peers.get(from);
    if (peer === undefined || peer.state === "CONSISTENT" || message.round !== peer.round) return;
    if (message.kind === "rootHash") this.#onRootHash(from, peer, message.hash, now);
    else if (message.kind === "subtreeHashes") this.#onHashes(from, peer, message.hashes, now);
    else this.#onLeafJobs(from, peer, message, now);
  }

  /** The answering side holds no state, so it can neither leak nor be led astray. */
  #answer(
    from: NodeId,
    message: Extract<
      AntiEntropyMessage,
      { kind: "rootRequest" | "subtreeRequest" | "leafRequest" }
    >,
  ): void {
    const { round } = message;
    const tree = this.#tree;
    const reply = (answer: AntiEntropyMessage): void => {
      this.#effects.push({ kind: "send", to: from, message: answer });
    };
    if (message.kind === "rootRequest") {
      reply({ kind: "rootHash", round, hash: tree.root });
    } else if (message.kind === "subtreeRequest") {
      const nodes = message.nodes.filter(isNode).slice(0, SUBTREE_NODES_MAX);
      const hashes = nodes.map((node) => ({ node, hash: tree.hash(node) }));
      reply({ kind: "subtreeHashes", round, hashes });
    } else if (isNode(message.leaf) && isLeaf(message.leaf)) {
      const { after, leaf } = message;
      const rest = tree.jobsOfLeaf(leaf).filter(({ jobId }) => after === null || jobId > after);
      const jobs = rest.slice(0, this.#config.leafPageJobs);
      reply({ kind: "leafJobs", round, leaf, jobs, more: rest.length > jobs.length });
    }
  }

  #onRootHash(name: NodeId, peer: Peer, hash: Uint8Array, now: Millis): void {
    if (peer.state !== "COMPARING" && peer.state !== "VERIFYING") return;
    if (sameHash(hash, this.#tree.root) || peer.passes > PASSES_MAX) {
      this.#end(name, peer, now);
      return;
    }
    this.#turn(name, peer, "COMPARING");
    this.#drill(name, peer, [MERKLE_ROOT], now);
  }

  /** One level down below the nodes that differ. (AE-1) */
  #drill(name: NodeId, peer: Peer, differing: readonly number[], now: Millis): void {
    const nodes = differing.slice(0, this.#config.leavesPerRoundMax).flatMap(childrenOf);
    this.#ask(name, peer, { kind: "subtreeRequest", round: peer.round, nodes }, now);
  }

  #onHashes(
    name: NodeId,
    peer: Peer,
    hashes: readonly { readonly node: number; readonly hash: Uint8Array }[],
    now: Millis,
  ): void {
    if (peer.state !== "COMPARING" || peer.leaves.length > 0) return;
    const known = hashes.slice(0, SUBTREE_NODES_MAX).filter(({ node }) => isNode(node));
    const differing = known.filter(({ hash, node }) => !sameHash(hash, this.#tree.hash(node)));
    const nodes = differing.map(({ node }) => node);
    const inner = nodes.filter((node) => !isLeaf(node));
    if (inner.length > 0) {
      this.#drill(name, peer, inner, now);
      return;
    }
    peer.leaves = nodes.slice(0, this.#config.leavesPerRoundMax);
    this.#nextLeaf(name, peer, now);
  }

  #nextLeaf(name: NodeId, peer: Peer, now: Millis): void {
    if (peer.leaves.length > 0) this.#askPage(name, peer, null, now);
    else this.#fetchNext(name, peer, now);
  }

  #askPage(name: NodeId, peer: Peer, after: JobId | null, now: Millis): void {
    const [leaf] = peer.leaves;
    assert(leaf !== undefined, "a page is asked of a leaf");
    peer.pageAfter = after;
    this.#ask(name, peer, { kind: "leafRequest", round: peer.round, leaf, after }, now);
  }

  #onLeafJobs(
    name: NodeId,
    peer: Peer,
    message: Extract<AntiEntropyMessage, { kind: "leafJobs" }>,
    now: Millis,
  ): void {
    if (peer.state !== "COMPARING" || message.leaf !== peer.leaves[0]) return;
    const jobs = message.jobs.slice(0, this.#config.leafPageJobs);
    for (const theirs of jobs) this.#compareJob(name, peer, theirs);
    const last = message.more ? (jobs.at(-1)?.jobId ?? null) : null;
    if (this.#hasMore(message.leaf, jobs, peer.pageAfter, last)) peer.peerIsBehind = true;
    if (last !== null) {
      this.#askPage(name, peer, last, now);
      return;
    }
    peer.leaves.shift();
    this.#nextLeaf(name, peer, now);
  }

  /** Whether we hold jobs of this page's range that the page does not name. */
  #hasMore(
    leaf: number,
    page: readonly JobSummary[],
    after: JobId | null,
    last: JobId | null,
  ): boolean {
    const theirs = new Set(page.map(({ jobId }) => jobId));
    return this.#tree.jobsOfLeaf(leaf).some(({ jobId }) => {
      const isInRange = (after === null || jobId > after) && (last === null || jobId <= last);
      return isInRange && !theirs.has(jobId);
    });
  }

  #compareJob(name: NodeId, peer: Peer, theirs: JobSummary): void {
    const { commitSeq: seq, jobId } = theirs;
    const mine = this.#tree.get(jobId);
    if (this.#alarmed.has(jobId)) return;
    if (mine === undefined || mine.commitSeq < seq) {
      if (peer.behind.length < BEHIND_MAX) peer.behind.push(theirs);
    } else if (mine.commitSeq > seq) {
      peer.peerIsBehind = true;
    } else if (!sameHash(mine.chain, theirs.chain)) {
      this.#alarm(name, jobId, seq, "two committed histories of one length");
    }
  }

  #alarm(peer: NodeId, jobId: JobId, seq: number, why: string): void {
    if (this.#alarmed.has(jobId)) return;
    if (this.#alarmed.size < ALARMS_MAX) this.#alarmed.add(jobId);
    this.#effects.push({ kind: "alarm", peer, jobId, seq, why });
  }

  #fetchNext(name: NodeId, peer: Peer, now: Millis): void {
    if (peer.behind.length === 0 && peer.open.size === 0) {
      // Nothing was found to fetch: what differs is the peer's to repair.
      if (peer.state === "COMPARING") this.#end(name, peer, now);
      else this.#compareRoots(name, peer, "VERIFYING", now);
      return;
    }
    if (peer.state === "COMPARING") this.#turn(name, peer, "FETCHING");
    peer.giveUpAt = now + this.#config.stepTimeoutMs;
    while (peer.open.size < this.#config.fetchesMax) {
      const wanted = peer.behind.shift();
      if (wanted === undefined) return;
      const { jobId } = wanted;
      peer.open.add(jobId);
      this.#effects.push({ kind: "fetch", peer: name, jobId });
    }
  }

  #onFetched(
    { jobId, peer: name }: Extract<AntiEntropyInput, { kind: "fetched" }>,
    now: Millis,
  ): void {
    const peer = this.#peers.get(name);
    if (peer?.open.delete(jobId) === true) this.#fetchNext(name, peer, now);
  }

  #end(name: NodeId, peer: Peer, now: Millis): void {
    if (peer.peerIsBehind) {
      this.#effects.push({ kind: "send", to: name, message: { kind: "youAreBehind" } });
    }
    const { intervalJitter, intervalMs } = this.#config;
    const spread = 1 + intervalJitter * (2 * this.#random.float() - 1);
    peer.nextRoundAt = now + Math.round(intervalMs * spread);
    peer.lastEndedAt = now;
    peer.leaves = [];
    peer.behind = [];
    peer.open.clear();
    this.#turn(name, peer, "CONSISTENT");
  }

  #turn(name: NodeId, peer: Peer, to: RepairState): void {
    const from = peer.state;
    if (from === to) return;
    peer.state = to;
    this.#effects.push({ kind: "stateChanged", peer: name, from, to });
  }
}
