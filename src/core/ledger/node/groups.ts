/**
 * The groups this node replicates: opened when they are founded, recovered or invited to, stepped with
 * one input at a time, timed together, and removed when their job goes to the archive or their owner forgets
 * them.
 *
 * Sending and persisting are done here; every other effect of a replica is reported to the listener.
 */

import { assert } from "../../base/assert.ts";
import { millis } from "../../base/brand.ts";
import { ByteWriter } from "../../base/bytes.ts";
import { Deadlines } from "../../base/deadlines.ts";
import type { NodeId } from "../../base/ids.ts";
import type { Random } from "../../base/random.ts";
import type { GroupId, GroupSnapshot, VsrMessage } from "../group/messages.ts";
import { type Origin, Replica } from "../group/replica.ts";
import type { VsrEffect, VsrInput } from "../group/types.ts";
import type { JobId } from "../job/job-id.ts";
import type { GroupPeek } from "./application.ts";
import { COMPACT_BYTES, shardConfig } from "./config.ts";
import type { LedgerContext } from "./context.ts";
import { type Group, type GroupApp, newGroup } from "./group.ts";
import { JobApp } from "./job-app.ts";
import { encodeGroupRecord, recordType } from "./records.ts";
import { RegisteredApp } from "./registered-app.ts";
import { ShardApp } from "./shard-app.ts";
import { shardIndex } from "./topology.ts";

/** Effects of a replica other than sending and persisting. */
export type GroupEffect = Exclude<VsrEffect, { kind: "send" | "persist" }>;

interface GroupListener {
  onEffect(group: Group, effect: GroupEffect): void;
  /** A peer refers to a group whose job we have archived. */
  onEnded(from: NodeId, id: GroupId): void;
  /** After a step of a group in which committed events wait for their level. */
  onAcks(group: Group): void;
}

export class Groups {
  readonly #context: LedgerContext;
  readonly #random: Random;
  readonly #listener: GroupListener;
  readonly #timers = new Deadlines<Group>();
  readonly #writer = new ByteWriter(1_024);

  constructor(context: LedgerContext, random: Random, listener: GroupListener) {
    this.#context = context;
    this.#random = random;
    this.#listener = listener;
  }

  nextDeadline(): number | null {
    return this.#timers.next();
  }

  open(id: GroupId, origin: Origin): Group {
    const { options, self, now, groups } = this.#context;
    const { config, rules } = options;
    const app = this.#appOf(id);
    // A shard or a registered kind has its own timers, until it is declared finished.
    const staysAwake = app.kind !== "job";
    const replicaOptions = { self, config: config.vsr, standing: this.#context, staysAwake };
    const replica = new Replica(replicaOptions, origin, this.#random.fork(id), rules.vsr);
    const { entries = [] } = origin.kind === "recovered" ? origin.image : {};
    const group = newGroup(id, replica, app, entries.at(-1)?.seq ?? -1);
    groups.set(id, group);
    this.#carryOut(group, replica.start(millis(now)));
    this.#afterStep(group);
    return group;
  }

  #appOf(id: GroupId): GroupApp {
    const { options, kinds } = this.#context;
    const { config, rules } = options;
    const kind = kinds.of(id);
    if (kind !== null) {
      const application = kinds.found(id);
      assert(application !== null, `${id} names a group of its kind`);
      return new RegisteredApp(kind, application, rules.node);
    }
    const index = shardIndex(id);
    if (index !== null) return new ShardApp(index, shardConfig(config), rules.idempotency);
    return new JobApp(id as string as JobId, rules.node);
  }

  /** Whether there is such a kind, which lets it begin here, now. */
  mayBegin(id: GroupId): boolean {
    const { groups, kinds } = this.#context;
    const kind = kinds.of(id);
    if (kind?.mayBegin === undefined) return kinds.knows(id);
    const peek: GroupPeek = (prefix) => {
      for (const [name, { app, replica }] of groups) {
        if (app.kind !== "registered" || !name.startsWith(prefix)) continue;
        const { entries, firstSeq } = replica.state;
        const open = entries.slice(Math.max(0, app.appliedSeq + 1 - firstSeq));
        const tail = open.flatMap((entry) => (entry.kind === "op" ? [entry.data] : []));
        return { application: app.application, tail };
      }
      return null;
    };
    return kinds.knows(id) && kind.mayBegin(id.slice(kind.prefix.length), peek);
  }

  /** A group that is new everywhere. */
  found(id: GroupId, members: readonly NodeId[]): Group {
    this.#context.mint.observe(id);
    return this.open(id, { kind: "founded", members });
  }

  step(group: Group, input: VsrInput): void {
    this.#carryOut(group, group.replica.step(input, millis(this.#context.now)));
    this.#afterStep(group);
  }

  /** Somebody wants something of it that another replica must do. */
  wake(group: Group): void {
    if (group.replica.state.asleep) this.step(group, { kind: "wake" });
  }

  onMessage(from: NodeId, id: GroupId, message: VsrMessage): void {
    const group = this.#context.groups.get(id) ?? this.#invited(from, id, message);
    if (group === null) return;
    if (message.kind === "logSuffix" && !this.#isReadable(id, message.snapshot)) {
      const why = `SNAPSHOT_UNREADABLE: at place ${message.snapshot?.seq}`;
      this.#listener.onEffect(group, { kind: "implausible", from, why });
      return;
    }
    this.step(group, { kind: "message", from, message });
  }

  /**
   * Tested on a separate application: once a replica has accepted a snapshot, it is on our disk and replaces
   * everything.
   */
  #isReadable(id: GroupId, snapshot: GroupSnapshot | null): boolean {
    return snapshot === null || this.#appOf(id).restore(snapshot);
  }

  /** A group unknown here: we become its replica when its founder or primary says so. */
  #invited(from: NodeId, id: GroupId, message: VsrMessage): Group | null {
    const { archived, mint, self } = this.#context;
    if (archived.has(id)) {
      this.onEnded(from, id);
      return null;
    }
    if (message.kind === "unknownGroup") return null;
    if (message.kind !== "found") {
      const reply = { kind: "unknownGroup", epoch: message.epoch } as const;
      this.#context.send(from, { kind: "vsr", group: id, message: reply });
      return null;
    }
    const { epoch, members } = message;
    if (!members.includes(self) || !this.mayBegin(id)) return null;
    mint.observe(id);
    const kind = epoch === 1 ? "founded" : "invited";
    return this.open(id, kind === "founded" ? { kind, members } : { kind, epoch, members });
  }

  onEnded(peer: NodeId, id: GroupId): void {
    this.#listener.onEnded(peer, id);
  }

  onDurable(count: number): void {
    for (const [group, records] of this.#context.takeDurable(count)) {
      // The group may have left memory while its last records were on their way to the disk.
      if (this.#context.groups.get(group.id) !== group) continue;
      const durable = group.replica.state.durable + records;
      this.step(group, { kind: "durable", count: durable });
    }
  }

  /** Gives replicas what waits for them. Proposing may commit at once and bring more to propose. */
  propose(): void {
    const { dirty } = this.#context;
    for (const group of dirty) {
      dirty.delete(group);
      const { replica, queue } = group;
      const { acting, takeOverAt } = replica.state;
      // About to lead: what waits is proposed then.
      if (queue.length === 0 || (!acting && takeOverAt > 0)) continue;
      const operations = queue.splice(0, acting ? replica.room : queue.length);
      if (operations.length > 0) this.step(group, { kind: "propose", operations });
    }
  }

  /** Takes the groups whose timer has expired; the caller ticks each of them. */
  takeDue(now: number): readonly Group[] {
    return this.#timers.takeDue(now);
  }

  tick(group: Group): void {
    group.armedAt = Number.POSITIVE_INFINITY;
    this.step(group, { kind: "tick" });
  }

  remove(group: Group): void {
    this.#timers.delete(group);
    this.#context.dirty.delete(group);
    this.#context.groups.delete(group.id);
  }

  #afterStep(group: Group): void {
    const { replica, app } = group;
    const due = replica.nextDeadline();
    const shard = app.kind === "shard" ? app.waiters.nextDeadline() : null;
    const at = Math.min(due ?? Number.POSITIVE_INFINITY, shard ?? Number.POSITIVE_INFINITY);
    // Deadlines mostly move later: the timer stays and finds nothing to do.
    if (at < group.armedAt) {
      group.armedAt = at;
      this.#timers.set(group, at);
    }
    if (group.queue.length > 0) this.#context.dirty.add(group);
    if (group.levelling.size > 0) this.#listener.onAcks(group);
    this.#compact(group);
  }

  /** A log that has grown is folded into a snapshot. (VSR-31) */
  #compact(group: Group): void {
    const { commit, status } = group.replica.state;
    const { now, options } = this.#context;
    const isShort = commit - group.compactedSeq < options.config.compactEntries;
    if (isShort && group.uncompactedBytes < COMPACT_BYTES) return;
    if (status === "broken" || group.app.appliedSeq !== commit) return;
    group.compactedSeq = commit;
    group.uncompactedBytes = 0;
    const snapshot = { seq: commit, bytes: group.app.snapshot() };
    group.replica.step({ kind: "compact", snapshot }, millis(now));
  }

  #carryOut(group: Group, effects: readonly VsrEffect[]): void {
    for (const effect of effects) {
      switch (effect.kind) {
        case "send": {
          const { to, message } = effect;
          this.#context.send(to, { kind: "vsr", group: group.id, message });
          break;
        }
        case "persist": {
          const { record } = effect;
          const payload = encodeGroupRecord(this.#writer, group.id, record);
          this.#context.append(recordType(record), payload, group);
          break;
        }
        case "committed":
          group.uncompactedBytes += effect.entry.data.length;
          this.#listener.onEffect(group, effect);
          break;
        default:
          this.#listener.onEffect(group, effect);
      }
    }
  }
}
