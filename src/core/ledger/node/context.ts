/**
 * State shared by the parts of a ledger node: its name and clocks, the groups it replicates, the records on their way
 * to the log, and the effects of the current turn. Parts decide; the context stores and sends. It knows none of the
 * parts.
 */

import { HybridClock } from "../../base/hlc.ts";
import type { NodeId } from "../../base/ids.ts";
import type { Random } from "../../base/random.ts";
import type { GroupId } from "../group/messages.ts";
import type { Operation } from "../group/types.ts";
import { FIRST_MAX, JobIdMint } from "../job/job-id.ts";
import { GroupKinds } from "./application.ts";
import { BATCH_MESSAGES_MAX, checkLedgerNodeConfig } from "./config.ts";
import type { Group } from "./group.ts";
import type { NodeMessage } from "./messages.ts";
import { Topology } from "./topology.ts";
import type { LedgerEffect, LedgerOptions } from "./types.ts";

/** Whom a durable record concerns: its group, or a function to run for a record of this node alone. */
type RecordOwner = Group | (() => void);

/** Settled places at the front of the owners before they are copied together. */
const OWNERS_SLACK = 4_096;

export class LedgerContext {
  readonly self: NodeId;
  readonly options: LedgerOptions;
  readonly topology: Topology;
  readonly kinds: GroupKinds;
  readonly hlc: HybridClock;
  readonly mint: JobIdMint;
  readonly groups = new Map<GroupId, Group>();
  /** Jobs that left memory; a late message must not bring their groups back. */
  readonly archived = new Set<string>();
  /** Groups with operations to propose at the end of the turn. */
  readonly dirty = new Set<Group>();
  /** Nodes that lead nothing new where others can. */
  passedOver: ReadonlySet<string> = new Set();
  now = 0;
  wall = 0;
  /** Wall time that never goes back within this process: what shards write down. */
  #wallOffset: number | null = null;
  #out: LedgerEffect[] = [];
  #outbox = new Map<NodeId, NodeMessage[]>();
  /** In the order of the log; the one at `#ownersFrom` owns record `durable` + 1. */
  #owners: RecordOwner[] = [];
  #ownersFrom = 0;
  #appends = 0;
  #durable = 0;

  constructor(options: LedgerOptions, random: Random) {
    checkLedgerNodeConfig(options.config);
    this.self = options.self;
    this.options = options;
    const { replicas, fewGates } = options.config;
    this.topology = new Topology(options.sites, { replicas, fewGates });
    this.kinds = new GroupKinds(options.kinds ?? []);
    this.hlc = new HybridClock(options.self);
    const region = this.topology.region(options.self);
    this.mint = new JobIdMint(region, options.self, random.fork("ids").below(FIRST_MAX));
  }

  /** At the beginning of every input. */
  setTime(now: number, wall: number): void {
    this.now = now;
    this.wall = Math.floor(wall);
    this.#wallOffset ??= wall - now;
  }

  get wallNow(): number {
    return Math.floor(this.now + (this.#wallOffset ?? 0));
  }

  /** Records handed to the log by this process. */
  get appends(): number {
    return this.#appends;
  }

  /** How many of them are durable. */
  get durable(): number {
    return this.#durable;
  }

  emit(effect: LedgerEffect): void {
    this.#out.push(effect);
  }

  /** Messages of one turn to one node travel together. */
  send(to: NodeId, message: NodeMessage): void {
    const messages = this.#outbox.get(to);
    if (messages === undefined) this.#outbox.set(to, [message]);
    else messages.push(message);
  }

  /** Proposed at the end of the turn, together with all that the group is given until then. */
  propose(group: Group, operation: Operation): void {
    group.queue.push(operation);
    this.dirty.add(group);
  }

  append(type: number, payload: Uint8Array, owner: RecordOwner): void {
    const { wallMs: wall, logical } = this.hlc.current;
    this.emit({ kind: "append", type, payload, wall, logical });
    this.#owners.push(owner);
    this.#appends++;
  }

  /** The first `count` records are safe: how many more of which group. Runs what waited beside groups. */
  takeDurable(count: number): ReadonlyMap<Group, number> {
    const touched = new Map<Group, number>();
    for (; this.#durable < count; this.#durable++) {
      const owner = this.#owners[this.#ownersFrom++];
      if (owner === undefined) break;
      if (typeof owner === "function") owner();
      else touched.set(owner, (touched.get(owner) ?? 0) + 1);
    }
    if (this.#ownersFrom > OWNERS_SLACK && this.#ownersFrom * 2 > this.#owners.length) {
      this.#owners = this.#owners.slice(this.#ownersFrom);
      this.#ownersFrom = 0;
    }
    return touched;
  }

  /** All effects since the last call, messages last. */
  takeEffects(): readonly LedgerEffect[] {
    for (const [to, messages] of this.#outbox) {
      for (let at = 0; at < messages.length; at += BATCH_MESSAGES_MAX) {
        const batch = messages.slice(at, at + BATCH_MESSAGES_MAX);
        this.#out.push({ kind: "send", to, messages: batch });
      }
    }
    this.#outbox = new Map();
    const out = this.#out;
    this.#out = [];
    return out;
  }
}
