/**
 * The ledger node: every group this node replicates, over one log, behind one face.
 *
 *     requests ──► serve here, or send on to the primary ──► proposals ──► replica of the group
 *     records of all groups ──► one log ──► durable(n) ──► the groups that waited
 *     committed entries ──► fold of the job, or state of the shard ──► answers
 *
 * A job group holds one job's events. A shard group holds idempotency keys: its entry makes a job
 * exist, and its primary sees to it that the job's own group is founded. (IDEM-20..26, VSR-26..33)
 */

import { assertNever } from "../../base/assert.ts";
import type { Millis } from "../../base/brand.ts";
import { millis } from "../../base/brand.ts";
import { ByteWriter } from "../../base/bytes.ts";
import { Deadlines } from "../../base/deadlines.ts";
import { HybridClock } from "../../base/hlc.ts";
import type { NodeId } from "../../base/ids.ts";
import type { Random } from "../../base/random.ts";
import type { GroupId, VsrMessage } from "../group/messages.ts";
import { type Origin, Replica } from "../group/replica.ts";
import type { GroupImage, VsrEffect, VsrInput } from "../group/types.ts";
import { isTerminal } from "../job/fold.ts";
import { FIRST_MAX, type JobId, JobIdMint, parseJobId } from "../job/job-id.ts";
import { SHARD_COUNT } from "../keys/key.ts";
import { Comparison } from "./comparison.ts";
import { ARCHIVE_EVERY_MS, BATCH_MESSAGES_MAX } from "./config.ts";
import { type Group, newGroup } from "./group.ts";
import { JobApp } from "./job-app.ts";
import type { NodeMessage } from "./messages.ts";
import { encodeGroupRecord, recordType } from "./records.ts";
import { Service } from "./service.ts";
import { ShardApp } from "./shard-app.ts";
import { shardGroup, shardIndex, Topology } from "./topology.ts";
import type { LedgerEffect, LedgerInput, LedgerOptions, LedgerStatus } from "./types.ts";

export class LedgerNode {
  readonly self: NodeId;
  readonly options: LedgerOptions;
  readonly topology: Topology;
  readonly hlc: HybridClock;
  readonly mint: JobIdMint;
  readonly groups = new Map<GroupId, Group>();
  /** Jobs that left memory; a late message must not bring their groups back. */
  readonly archived = new Set<string>();
  readonly #random: Random;
  readonly #service: Service;
  readonly #comparison: Comparison;
  readonly #timers = new Deadlines<Group>();
  readonly #writer = new ByteWriter(1_024);
  #out: LedgerEffect[] = [];
  #outbox = new Map<NodeId, NodeMessage[]>();
  readonly #dirty = new Set<Group>();
  /** Whose records wait for the disk, in the order of the log; the first belongs to record `durable` + 1. */
  #owners: (Group | (() => void))[] = [];
  #ownersFrom = 0;
  #appends = 0;
  #durable = 0;
  #archiveAt = 0;
  now = 0;
  wall = 0;
  /** Wall time that never goes back within this process: what shards write down. */
  #wallOffset: number | null = null;

  constructor(options: LedgerOptions, random: Random) {
    this.self = options.self;
    this.options = options;
    this.#random = random;
    const { replicas, fewGates } = options.config;
    this.topology = new Topology(options.sites, { replicas, fewGates });
    this.hlc = new HybridClock(options.self);
    const region = this.topology.region(options.self);
    this.mint = new JobIdMint(region, options.self, random.fork("ids").below(FIRST_MAX));
    this.#service = new Service(this, random);
    this.#comparison = new Comparison(this, random.fork("comparison"));
  }

  /** Before `start`: what the log says about each group. */
  recover(images: ReadonlyMap<GroupId, GroupImage>, now: Millis, wall: number): void {
    this.#at(now, wall);
    for (const [id, image] of images) {
      this.mint.observe(id);
      for (const { wall: wallMs, logical } of image.entries) this.hlc.recover({ wallMs, logical });
      this.#open(id, { kind: "recovered", image });
    }
    this.mint.skip();
  }

  /**
   * With `found`, the shards that are ours by configuration and not there yet are founded: only ever when
   * the whole ledger starts for the first time. A node whose disk was lost must not found what others
   * have been running for long; it is invited like any new replica. (VSR-30)
   */
  start(now: Millis, wall: number, found: boolean): void {
    this.#at(now, wall);
    this.#archiveAt = now + ARCHIVE_EVERY_MS;
    this.#comparison.start();
    if (!found) return;
    const all = Array.from({ length: SHARD_COUNT }, (_, index) => index);
    for (const index of this.options.shards ?? all) {
      const id = shardGroup(index);
      const members = this.topology.replicas(id);
      if (members.includes(this.self) && !this.groups.has(id)) {
        this.#open(id, { kind: "founded", members });
      }
    }
  }

  take(input: LedgerInput, now: Millis, wall: number): void {
    this.#at(now, wall);
    switch (input.kind) {
      case "messages":
        if (!this.topology.knows(input.from)) return;
        for (const message of input.messages) this.#onMessage(input.from, message);
        return;
      case "durable":
        this.#onDurable(input.count);
        return;
      case "tick":
        this.#onTick();
        return;
      case "request":
        this.#service.onRequest(input.token, input.request);
        return;
      default:
        assertNever(input);
    }
  }

  /** All effects since the last call. */
  flush(): readonly LedgerEffect[] {
    // Proposing may commit at once (a group of one) and bring more to propose.
    for (const group of this.#dirty) {
      this.#dirty.delete(group);
      const { replica, queue } = group;
      const { acting, takeOverAt } = replica.state;
      // About to lead: what waits is proposed then.
      if (queue.length === 0 || (!acting && takeOverAt > 0)) continue;
      const operations = queue.splice(0, acting ? replica.room : queue.length);
      if (operations.length > 0) this.stepGroup(group, { kind: "propose", operations });
    }
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

  nextDeadline(): Millis | null {
    const groups = this.#timers.next() ?? Number.POSITIVE_INFINITY;
    const service = this.#service.nextDeadline() ?? Number.POSITIVE_INFINITY;
    const comparison = this.#comparison.nextDeadline() ?? Number.POSITIVE_INFINITY;
    const at = Math.min(groups, service, comparison, this.#archiveAt);
    return at === Number.POSITIVE_INFINITY ? null : millis(at);
  }

  status(): LedgerStatus {
    let [jobs, shards, leading] = [0, 0, 0];
    for (const { app, replica } of this.groups.values()) {
      if (app.kind === "job") jobs++;
      else shards++;
      if (replica.state.acting) leading++;
    }
    return {
      self: this.self,
      region: this.topology.region(this.self),
      ...{ jobs, shards, leading },
      waiting: this.#service.waiting,
      forwarded: this.#service.forwarded,
      appends: this.#appends,
      durable: this.#durable,
      clockSkewRefused: this.hlc.refused,
      keys: this.#service.keys,
    };
  }

  /** Records handed to the log by this process: what a checkpoint taken now covers. */
  get appends(): number {
    return this.#appends;
  }

  get wallNow(): number {
    return Math.floor(this.now + (this.#wallOffset ?? 0));
  }

  emit(effect: LedgerEffect): void {
    this.#out.push(effect);
  }

  send(to: NodeId, message: NodeMessage): void {
    const messages = this.#outbox.get(to);
    if (messages === undefined) this.#outbox.set(to, [message]);
    else messages.push(message);
  }

  /** A job has moved on. */
  onApplied(group: Group): void {
    this.#comparison.onApplied(group);
  }

  /** Two committed histories of one job: its group stops here, an operator decides. (LEDG-6) */
  onDiverged(id: GroupId, why: string): void {
    const group = this.groups.get(id);
    if (group !== undefined) this.stepGroup(group, { kind: "stop", why });
  }

  markDirty(group: Group): void {
    this.#dirty.add(group);
  }

  /** A job's group that is new everywhere. */
  found(id: GroupId, members: readonly NodeId[]): Group {
    this.mint.observe(id);
    return this.#open(id, { kind: "founded", members });
  }

  stepGroup(group: Group, input: VsrInput): void {
    this.#carryOut(group, group.replica.step(input, millis(this.now)));
    this.#afterStep(group);
  }

  #at(now: Millis, wall: number): void {
    this.now = now;
    this.wall = Math.floor(wall);
    this.#wallOffset ??= wall - now;
  }

  #open(id: GroupId, origin: Origin): Group {
    const { config, rules } = this.options;
    const index = shardIndex(id);
    const app =
      index === null
        ? new JobApp(id as string as JobId)
        : new ShardApp(index, config.idempotency, rules.idempotency);
    const random = this.#random.fork(id);
    const options = { self: this.self, config: config.vsr };
    const replica = new Replica(options, origin, random, rules.vsr);
    const group = newGroup(id, replica, app);
    this.groups.set(id, group);
    this.#carryOut(group, replica.start(millis(this.now)));
    this.#afterStep(group);
    return group;
  }

  #afterStep(group: Group): void {
    const { replica } = group;
    const due = replica.nextDeadline();
    const desk = group.app.kind === "shard" ? group.app.desk.nextDeadline() : null;
    const at = Math.min(due ?? Number.POSITIVE_INFINITY, desk ?? Number.POSITIVE_INFINITY);
    // Deadlines mostly move away: the timer stays and finds nothing to do.
    if (at < group.armedAt) {
      group.armedAt = at;
      this.#timers.set(group, at);
    }
    if (group.queue.length > 0) this.#dirty.add(group);
    if (group.levelling.size > 0) this.#service.onAcks(group);
    this.#compact(group);
  }

  /** A log that has grown is folded into a snapshot. (VSR-31) */
  #compact(group: Group): void {
    const { commit, status } = group.replica.state;
    if (commit - group.compactedSeq < this.options.config.compactEntries) return;
    if (status === "broken" || group.app.appliedSeq !== commit) return;
    group.compactedSeq = commit;
    const snapshot = { seq: commit, bytes: group.app.snapshot() };
    group.replica.step({ kind: "compact", snapshot }, millis(this.now));
  }

  #onMessage(from: NodeId, message: NodeMessage): void {
    switch (message.kind) {
      case "vsr":
        this.#onVsr(from, message.group, message.message);
        return;
      case "request":
        this.#service.onPeerRequest(from, message.id, message.request);
        return;
      case "answer":
        this.#service.onAnswer(from, message.id, message.answer);
        return;
      case "compare":
        this.#comparison.onMessage(from, message.message);
        return;
      default:
        assertNever(message);
    }
  }

  #onVsr(from: NodeId, id: GroupId, message: VsrMessage): void {
    const group = this.groups.get(id) ?? this.#invited(from, id, message);
    if (group === null) return;
    this.stepGroup(group, { kind: "message", from, message });
  }

  /** A group we did not know: we become its replica when its founder or primary says so. */
  #invited(from: NodeId, id: GroupId, message: VsrMessage): Group | null {
    if (this.archived.has(id) || message.kind === "unknownGroup") return null;
    if (message.kind !== "found") {
      const reply = { kind: "unknownGroup", epoch: message.epoch } as const;
      this.send(from, { kind: "vsr", group: id, message: reply });
      return null;
    }
    const { epoch, members } = message;
    const isKnown = shardIndex(id) !== null || parseJobId(id) !== null;
    if (!isKnown || !members.includes(this.self)) return null;
    this.mint.observe(id);
    const kind = epoch === 1 ? "founded" : "invited";
    return this.#open(id, kind === "founded" ? { kind, members } : { kind, epoch, members });
  }

  #onDurable(count: number): void {
    const touched = new Map<Group, number>();
    for (; this.#durable < count; this.#durable++) {
      const owner = this.#owners[this.#ownersFrom++];
      if (owner === undefined) break;
      if (typeof owner === "function") owner();
      else touched.set(owner, (touched.get(owner) ?? 0) + 1);
    }
    if (this.#ownersFrom > 4_096 && this.#ownersFrom * 2 > this.#owners.length) {
      this.#owners = this.#owners.slice(this.#ownersFrom);
      this.#ownersFrom = 0;
    }
    for (const [group, records] of touched) {
      const durable = group.replica.state.durable + records;
      this.stepGroup(group, { kind: "durable", count: durable });
    }
  }

  #onTick(): void {
    for (const group of this.#timers.takeDue(this.now)) {
      group.armedAt = Number.POSITIVE_INFINITY;
      this.stepGroup(group, { kind: "tick" });
      if (group.app.kind === "shard") this.#service.onDeskTick(group, group.app);
    }
    this.#service.onTick();
    this.#comparison.onTick();
    if (this.now >= this.#archiveAt) this.#archive();
  }

  /** Finished jobs leave memory after their retention. (G-14, LEDG-8) */
  #archive(): void {
    this.#archiveAt = this.now + ARCHIVE_EVERY_MS;
    const before = this.wallNow - this.options.config.retentionMs;
    for (const [id, group] of this.groups) {
      if (group.app.kind !== "job") continue;
      const { state } = group.app;
      const { replica } = group;
      const settled = replica.state.commit === replica.view().lastSeq;
      if (!isTerminal(state.status) || !settled || (state.endedAt?.wallMs ?? Infinity) > before) {
        continue;
      }
      this.emit({ kind: "archive", jobId: id, bytes: group.app.snapshot() });
      this.archived.add(id);
      this.#comparison.onGone(group);
      this.#timers.delete(group);
      this.groups.delete(id);
    }
  }

  #carryOut(group: Group, effects: readonly VsrEffect[]): void {
    for (const effect of effects) {
      switch (effect.kind) {
        case "send":
          this.send(effect.to, { kind: "vsr", group: group.id, message: effect.message });
          break;
        case "persist": {
          const { record } = effect;
          const payload = encodeGroupRecord(this.#writer, group.id, record);
          this.#append(recordType(record), payload, group);
          break;
        }
        default:
          this.#service.onEffect(group, effect);
      }
    }
  }

  #append(type: number, payload: Uint8Array, owner: Group | (() => void)): void {
    const { wallMs: wall, logical } = this.hlc.current;
    this.emit({ kind: "append", type, payload, wall, logical });
    this.#owners.push(owner);
    this.#appends++;
  }

  /** A record of this node alone; `done` runs once it is durable. */
  appendLocal(type: number, payload: Uint8Array, done: () => void): void {
    this.#append(type, payload, done);
  }
}
