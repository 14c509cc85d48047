/**
 * Anti-entropy between nodes: for every peer a Merkle tree over the jobs that both replicate, compared periodically.
 * The log repairs itself, so a node that is behind only asks to be invited to groups it does not know. Two different
 * histories of one length mean that a guarantee was broken: the group stops with an alarm. (AE-1..5, LEDG-6)
 */

import { millis } from "../../base/brand.ts";
import type { NodeId } from "../../base/ids.ts";
import type { Random } from "../../base/random.ts";
import type { GroupId } from "../group/messages.ts";
import {
  AntiEntropy,
  type AntiEntropyEffect,
  type AntiEntropyInput,
  type AntiEntropyMessage,
} from "../job/anti-entropy.ts";
import { MerkleTree } from "../job/merkle.ts";
import type { LedgerContext } from "./context.ts";
import type { Group } from "./group.ts";
import type { Groups } from "./groups.ts";

interface Peer {
  readonly tree: MerkleTree;
  readonly machine: AntiEntropy;
  /** Jobs that changed since the tree was last updated. */
  readonly moved: Set<Group>;
}

export class Comparison {
  readonly #context: LedgerContext;
  readonly #groups: Groups;
  readonly #random: Random;
  readonly #peers = new Map<NodeId, Peer>();

  constructor(context: LedgerContext, groups: Groups, random: Random) {
    this.#context = context;
    this.#groups = groups;
    this.#random = random;
  }

  start(): void {
    for (const id of this.#context.topology.nodes) {
      if (id === this.#context.self) continue;
      const tree = new MerkleTree();
      const { antiEntropy } = this.#context.options.config;
      const machine = new AntiEntropy(tree, antiEntropy, this.#random.fork(id));
      const peer = { tree, machine, moved: new Set<Group>() };
      this.#peers.set(id, peer);
      for (const group of this.#context.groups.values()) this.onApplied(group);
      this.#step(id, peer, { kind: "peers", peers: [id] });
    }
  }

  onApplied(group: Group): void {
    if (group.app.kind !== "job") return;
    for (const member of group.replica.state.members) this.#peers.get(member)?.moved.add(group);
  }

  onGone(group: Group): void {
    for (const { tree, moved } of this.#peers.values()) {
      moved.delete(group);
      if (group.app.kind === "job") tree.delete(group.app.state.jobId);
    }
  }

  onMessage(from: NodeId, message: AntiEntropyMessage): void {
    const peer = this.#peers.get(from);
    if (peer !== undefined) this.#step(from, peer, { kind: "message", from, message });
  }

  onReached(id: NodeId): void {
    const peer = this.#peers.get(id);
    if (peer !== undefined) this.#step(id, peer, { kind: "healed", peer: id });
  }

  nextDeadline(): number | null {
    let at = Number.POSITIVE_INFINITY;
    for (const { machine } of this.#peers.values()) {
      at = Math.min(at, machine.nextDeadline() ?? Number.POSITIVE_INFINITY);
    }
    return at === Number.POSITIVE_INFINITY ? null : at;
  }

  onTick(): void {
    for (const [id, peer] of this.#peers) {
      const due = peer.machine.nextDeadline();
      if (due !== null && due <= this.#context.now) this.#step(id, peer, { kind: "tick" });
    }
  }

  #step(id: NodeId, peer: Peer, input: AntiEntropyInput): void {
    for (const group of peer.moved) {
      const { app, replica } = group;
      if (app.kind !== "job") continue;
      const { jobId, chain, appliedSeq: commitSeq } = app.state;
      if (replica.state.members.includes(id)) peer.tree.set({ jobId, commitSeq, chain });
      else peer.tree.delete(jobId);
    }
    peer.moved.clear();
    const effects = peer.machine.step(input, millis(this.#context.now));
    for (const effect of effects) this.#carryOut(id, peer, effect);
  }

  #carryOut(id: NodeId, peer: Peer, effect: AntiEntropyEffect): void {
    switch (effect.kind) {
      case "send":
        this.#context.send(effect.to, { kind: "compare", message: effect.message });
        return;
      case "fetch": {
        const { jobId } = effect;
        this.#ask(id, jobId as string as GroupId);
        // The primary's next message brings the rest; nothing is merged past the log.
        this.#step(id, peer, { kind: "fetched", peer: id, jobId });
        return;
      }
      case "alarm":
        this.#onDiverged(effect.jobId as string as GroupId, `${effect.why} (with ${id})`);
        return;
      case "stateChanged":
        return;
    }
  }

  /** Two committed histories of one job: its group stops here, an operator decides. (LEDG-6) */
  #onDiverged(id: GroupId, why: string): void {
    const group = this.#context.groups.get(id);
    if (group !== undefined) this.#groups.step(group, { kind: "stop", why });
  }

  /** Asks the primary of a group that we should replicate and do not know to invite us. */
  #ask(peer: NodeId, group: GroupId): void {
    const message = { kind: "unknownGroup", epoch: 1 } as const;
    const known = this.#context.groups.get(group);
    if (this.#context.archived.has(group)) this.#groups.onEnded(peer, group);
    else if (known === undefined) this.#context.send(peer, { kind: "vsr", group, message });
    // The group fell asleep, or restarted asleep, before it received the rest.
    else this.#groups.wake(known);
  }
}
