/**
 * State shared by the parts of a replica: the group state, the rules, the effects of the current step and the few
 * operations on the log. Parts decide; the context stores, persists and sends.
 */

import { assert } from "../../base/assert.ts";
import type { NodeId } from "../../base/ids.ts";
import type { Random } from "../../base/random.ts";
import type { VsrConfig } from "./config.ts";
import { HELD_MAX } from "./limits.ts";
import type { LogEntry, VsrMessage } from "./messages.ts";
import type { VsrRules } from "./rules.ts";
import type { Peer, ReplicaState } from "./state.ts";
import type { VsrEffect, VsrRecord } from "./types.ts";

/** Bytes an entry costs beside its data, roughly. */
const ENTRY_HEAD_BYTES = 64;

/**
 * Replicas that should lead only if no other can. The set may change; a listed replica may still lead, it is only not
 * preferred.
 */
export interface Standing {
  readonly passedOver: ReadonlySet<string>;
}

export class VsrContext {
  readonly self: NodeId;
  readonly config: VsrConfig;
  readonly rules: VsrRules;
  readonly random: Random;
  readonly state: ReplicaState;
  now = 0;
  out: VsrEffect[] = [];
  /** Scratch space of `#quorumth`. */
  readonly #ranked: number[] = [];
  readonly #standing: Standing;

  constructor(
    self: NodeId,
    state: ReplicaState,
    config: VsrConfig,
    random: Random,
    rules: VsrRules,
    standing: Standing = { passedOver: new Set() },
  ) {
    this.#standing = standing;
    this.self = self;
    this.state = state;
    this.config = config;
    this.random = random;
    this.rules = rules;
  }

  get lastSeq(): number {
    const { firstSeq, entries } = this.state;
    return firstSeq + entries.length - 1;
  }

  get quorum(): number {
    const count = this.state.members.length;
    return this.rules.majorityQuorum ? Math.floor(count / 2) + 1 : Math.floor(count / 2);
  }

  owner(view: number): NodeId | null {
    const { members } = this.state;
    return members[(view - 1) % members.length] ?? null;
  }

  mayOwn(view: number, node: NodeId): boolean {
    return !this.rules.ownerByView || this.owner(view) === node;
  }

  /** A replica silent for longer than this may be dead. Covers at least two heartbeats and one full lease. */
  get patienceMs(): number {
    return Math.max(this.config.leaseMs, 2 * this.config.renewMs);
  }

  isPassedOver(node: NodeId): boolean {
    return this.#standing.passedOver.has(node);
  }

  others(): NodeId[] {
    return this.state.members.filter((member) => member !== this.self);
  }

  peer(id: NodeId): Peer {
    const known = this.state.peers.get(id);
    if (known !== undefined) return known;
    const peer = {
      acked: -1,
      sentAt: Number.NEGATIVE_INFINITY,
      round: 0,
      resentTo: -1,
      resentAt: Number.NEGATIVE_INFINITY,
    };
    this.state.peers.set(id, peer);
    return peer;
  }

  emit(effect: VsrEffect): void {
    this.out.push(effect);
  }

  send(to: NodeId, message: VsrMessage): void {
    this.out.push({ kind: "send", to, message });
  }

  /** Sent once everything persisted so far is durable. */
  sendDurably(to: NodeId, message: VsrMessage): void {
    const { state } = this;
    if (state.durable >= state.appended) this.send(to, message);
    else if (state.held.length < HELD_MAX) state.held.push({ ticket: state.appended, to, message });
  }

  persist(record: VsrRecord): void {
    this.state.appended++;
    this.out.push({ kind: "persist", record });
  }

  entryAt(seq: number): LogEntry | undefined {
    return this.state.entries[seq - this.state.firstSeq];
  }

  /** A new last entry, durable later. */
  append(entry: LogEntry, logged: boolean): void {
    const { state } = this;
    assert(entry.seq === this.lastSeq + 1, "a log has no holes");
    state.entries.push(entry);
    if (entry.kind === "reconfigure" && entry.epoch === state.epoch)
      state.reconfigureSeq = entry.seq;
    if (logged) this.persist({ kind: "entry", entry });
    this.mark();
  }

  /** Once what is persisted by now is durable, the log up to here counts as acked in this view. */
  mark(): void {
    const { state } = this;
    const mark = { ticket: state.appended, seq: this.lastSeq, view: state.lastNormalView };
    if (mark.ticket <= state.durable || !this.rules.ackAfterDurable) {
      state.durableSeq = mark.seq;
      state.durableView = mark.view;
    } else state.marks.push(mark);
  }

  /** Highest entry of the current view's log that is durable on this replica. (I6) */
  get acked(): number {
    const { state } = this;
    return state.durableView === state.lastNormalView ? state.durableSeq : -1;
  }

  /** Entries from `from` on, as many as one message takes. */
  page(from: number): LogEntry[] {
    const { batchEntries, batchBytes } = this.config;
    const page: LogEntry[] = [];
    let bytes = 0;
    for (let seq = from; page.length < batchEntries; seq++) {
      const entry = this.entryAt(seq);
      if (entry === undefined) break;
      bytes += entryBytes(entry);
      if (bytes > batchBytes && page.length > 0) break;
      page.push(entry);
    }
    return page;
  }

  /** Replaces everything above `keep`. */
  replaceLog(keep: number, entries: readonly LogEntry[]): void {
    const { state } = this;
    state.entries.length = Math.max(0, Math.min(state.entries.length, keep - state.firstSeq + 1));
    for (const entry of entries) {
      assert(entry.seq === this.lastSeq + 1, "a taken-over log has no holes");
      state.entries.push(entry);
    }
    state.reconfigureSeq = -1;
    for (let seq = Math.max(state.firstSeq, state.commit + 1); seq <= this.lastSeq; seq++) {
      const entry = this.entryAt(seq);
      // One of an older epoch is done with, whether or not we know yet that it is committed.
      if (entry?.kind === "reconfigure" && entry.epoch === state.epoch) state.reconfigureSeq = seq;
    }
  }

  /** How long we are bound: a replica by its promise, a primary by its own lease. (VSR-12) */
  leaseLeft(): number {
    const { state } = this;
    if (!this.rules.promiseHonoured) return 0;
    const until = state.acting ? this.leaseUntil() : state.promisedUntil;
    return Math.max(0, until - this.now);
  }

  /** Until when a primary may assume that no other leads, on its own clock. (VSR-20) */
  leaseUntil(): number {
    const { leaseMs, clockDriftMax, leaseMarginMs } = this.config;
    if (leaseMs === 0) return Number.NEGATIVE_INFINITY;
    if (!this.rules.leaseFromQuorum) return this.now + leaseMs;
    const base = this.#quorumth("sentAt", this.now);
    // Replicas that received our sleep notice are released from the lease.
    if (base <= this.state.restedAt) return Number.NEGATIVE_INFINITY;
    return base + leaseMs * (1 - clockDriftMax) - leaseMarginMs;
  }

  /** The value that a quorum, ourselves included, has reached. On the path of every ack. */
  #quorumth(field: "acked" | "sentAt" | "round", own: number): number {
    const ranked = this.#ranked;
    ranked.length = 0;
    ranked.push(own);
    for (const id of this.state.members) {
      if (id === this.self) continue;
      const value = this.state.peers.get(id)?.[field] ?? Number.NEGATIVE_INFINITY;
      let place = ranked.length;
      while (place > 0 && (ranked[place - 1] ?? value) < value) {
        ranked[place] = ranked[place - 1] ?? value;
        place--;
      }
      ranked[place] = value;
    }
    return ranked[this.quorum - 1] ?? Number.NEGATIVE_INFINITY;
  }

  quorumAcked(): number {
    return this.#quorumth("acked", this.rules.primaryLogs ? this.acked : this.lastSeq);
  }

  quorumRound(): number {
    return this.#quorumth("round", Number.POSITIVE_INFINITY);
  }
}

export function entryBytes(entry: LogEntry): number {
  return entry.data.length + entry.eventId.length + ENTRY_HEAD_BYTES;
}
