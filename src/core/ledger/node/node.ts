/**
 * The ledger node: every group this node replicates, over one log.
 *
 *     requests ──► serve here, or forward to the primary ──► proposals ──► replica of the group
 *     records of all groups ──► one log ──► durable(n) ──► the groups that waited
 *     committed entries ──► fold of the job, or state of the shard ──► answers
 *
 * A job group has one job's events. A shard group has idempotency keys: its entry makes a job exist, and its primary
 * ensures that the job's own group is founded. (IDEM-20..26, VSR-26..33)
 *
 * The parts share a context and never this class: groups steps the replicas, service answers requests, comparison finds
 * differences between nodes.
 */

import { assertNever } from "../../base/assert.ts";
import type { Millis } from "../../base/brand.ts";
import { millis } from "../../base/brand.ts";
import type { NodeId } from "../../base/ids.ts";
import type { Random } from "../../base/random.ts";
import type { GroupId } from "../group/messages.ts";
import type { GroupImage } from "../group/types.ts";
import { parseKey, SHARD_COUNT, shardOf } from "../keys/key.ts";
import { Admission } from "./admission.ts";
import { Archiving } from "./archiving.ts";
import { Comparison } from "./comparison.ts";
import { LedgerContext } from "./context.ts";
import type { Group } from "./group.ts";
import { Groups } from "./groups.ts";
import { Identities } from "./identities.ts";
import { JobIndex, type JobQuery } from "./job-index.ts";
import type { LedgerAnswer, NodeMessage } from "./messages.ts";
import { Service } from "./service.ts";
import { shardGroup } from "./topology.ts";
import type { LedgerEffect, LedgerInput, LedgerOptions, LedgerStatus } from "./types.ts";
import { Watches } from "./watches.ts";

/** Content of a log and its checkpoint: see `LedgerRecovery`. */
interface RecoveredLedger {
  readonly images: ReadonlyMap<GroupId, GroupImage>;
  readonly archived: Iterable<string>;
  /** Pinned data directory of each peer. */
  readonly identities: ReadonlyMap<NodeId, string>;
}

/** A peer that gives up its groups is dead after this, or back. */
const LEAVING_MS_MAX = 30_000;

const NOT_JOINED: LedgerAnswer = {
  kind: "retry",
  why: "its peers do not know this node by its data directory (yet, or no more: see its log); ask another",
};

export class LedgerNode {
  readonly #context: LedgerContext;
  readonly #groups: Groups;
  readonly #comparison: Comparison;
  readonly #service: Service;
  readonly #watches: Watches;
  readonly #jobs = new JobIndex();
  readonly #identities: Identities;
  readonly #admission: Admission;
  readonly #archiving: Archiving;
  /** Groups given up by this process that have no other leader yet, as far as it knows. */
  readonly #givenUp = new Set<Group>();
  /** When each peer gave something up last; as many as there are nodes. */
  readonly #resignedAt = new Map<NodeId, number>();
  /** This node goes: what it comes to lead is given up as well. */
  #isLeaving = false;

  constructor(options: LedgerOptions, random: Random) {
    this.#context = new LedgerContext(options, random);
    this.#groups = new Groups(this.#context, random, {
      onEffect: (group, effect) => {
        if (effect.kind === "tookOver" && this.#isLeaving && group.replica.isAwaited) {
          this.#givenUp.add(group);
        }
        this.#service.onEffect(group, effect);
      },
      onEnded: (from, id) => this.#archiving.tell(id, from),
      onAcks: (group) => this.#service.onAcks(group),
    });
    this.#comparison = new Comparison(this.#context, this.#groups, random.fork("comparison"));
    this.#watches = new Watches(this.#context);
    this.#service = new Service(this.#context, this.#groups, random, {
      onApplied: (group) => {
        this.#comparison.onApplied(group);
        this.#watches.onApplied(group);
        this.#jobs.onApplied(group);
      },
      onRetired: (group) => this.#watches.onGone(group),
      onStop: (event) => this.#watches.onStop(event),
      readArchived: (jobId, reply) => this.#archiving.read(jobId, reply),
      onArchived: (state) => this.#archiving.onArchived(state),
    });
    this.#archiving = new Archiving(this.#context, {
      onGone: (group) => this.#onGone(group),
      answer: (reply, answer) => this.#service.answer(reply, answer),
    });
    this.#identities = new Identities(this.#context, (from, messages) => {
      for (const message of messages) this.#onMessage(from, message);
    });
    this.#admission = new Admission(this.#context, this.#identities);
  }

  /** Restores the groups from the log; called before `start`. */
  recover(recovered: RecoveredLedger, now: Millis, wall: number): void {
    const { images, archived, identities } = recovered;
    const context = this.#context;
    const { recoveredAheadMsMax } = context.options.config;
    context.setTime(now, wall);
    this.#identities.recover(identities);
    // Groups of registered kinds that were forgotten while the checkpoint was taken have no archive.
    for (const id of archived)
      if (context.kinds.of(id as GroupId) === null) context.archived.add(id);
    for (const [id, image] of images) {
      // Skipping the group would forget what this node promised there.
      if (!context.kinds.knows(id))
        throw new Error(`${id} is a group of a kind this node does not know`);
      context.mint.observe(id);
      for (const { wall: wallMs, logical } of image.entries) {
        // A stamp from further ahead was committed and never merged: it must not take our clock along.
        if (wallMs <= wall + recoveredAheadMsMax) context.hlc.recover({ wallMs, logical });
      }
      this.#groups.open(id, { kind: "recovered", image });
    }
    context.mint.skip();
  }

  /**
   * Starts the node. With "found", missing shards that are ours by configuration are founded: only ever when the whole
   * ledger starts for the first time. A node whose disk was lost must not found groups that others have long been
   * running. With "join" it waits until its peers know it, and is invited like any new replica; null is for every later
   * start. (VSR-30)
   */
  start(now: Millis, wall: number, first: "found" | "join" | null): void {
    const { self, options, topology, groups } = this.#context;
    this.#context.setTime(now, wall);
    this.#archiving.start();
    this.#comparison.start();
    this.#admission.start(first === "join");
    if (first !== "found") return;
    const all = Array.from({ length: SHARD_COUNT }, (_, index) => index);
    for (const index of options.shards ?? all) {
      const id = shardGroup(index);
      const members = topology.replicas(id);
      if (members.includes(self) && !groups.has(id)) {
        this.#groups.open(id, { kind: "founded", members });
      }
    }
  }

  take(input: LedgerInput, now: Millis, wall: number): void {
    this.#context.setTime(now, wall);
    switch (input.kind) {
      case "messages":
        if (!this.#context.topology.knows(input.from)) return;
        this.#identities.take(input.from, input.identity, input.messages);
        return;
      case "reached":
        this.#comparison.onReached(input.peer);
        return;
      case "durable":
        this.#groups.onDurable(input.count);
        return;
      case "tick":
        this.#onTick();
        return;
      case "archivedState":
        this.#archiving.onState(input.jobId, input.state);
        return;
      case "giveUp":
        this.#giveUp();
        return;
      case "mayRest":
        this.#mayRest(input.group);
        return;
      case "forget":
        this.#forget(input);
        return;
      case "passOver":
        this.#context.passedOver = new Set(input.nodes);
        return;
      case "request":
        if (this.#admission.isMember) this.#service.onRequest(input.token, input.request);
        else this.#context.emit({ kind: "answer", token: input.token, answer: NOT_JOINED });
        return;
      case "watch":
        this.#watches.begin(input.token, input.request, input.room);
        return;
      case "watchRoom":
        this.#watches.makeRoom(input.token, input.count);
        return;
      case "watchEnd":
        this.#watches.end(input.token);
        return;
      default:
        assertNever(input);
    }
  }

  /** All effects since the last call. */
  flush(): readonly LedgerEffect[] {
    this.#handOver();
    this.#groups.propose();
    this.#watches.deliver();
    return this.#context.takeEffects();
  }

  nextDeadline(): Millis | null {
    const groups = this.#groups.nextDeadline() ?? Number.POSITIVE_INFINITY;
    const service = this.#service.nextDeadline() ?? Number.POSITIVE_INFINITY;
    const comparison = this.#comparison.nextDeadline() ?? Number.POSITIVE_INFINITY;
    const admission = this.#admission.nextDeadline() ?? Number.POSITIVE_INFINITY;
    const at = Math.min(groups, service, comparison, admission, this.#archiving.nextDeadline());
    return at === Number.POSITIVE_INFINITY ? null : millis(at);
  }

  status(): LedgerStatus {
    const { self, topology, groups, appends, durable, hlc } = this.#context;
    let [jobs, shards, others, leading] = [0, 0, 0, 0];
    for (const { app, replica } of groups.values()) {
      if (app.kind === "job") jobs++;
      else if (app.kind === "shard") shards++;
      else others++;
      if (replica.state.acting) leading++;
    }
    const { waiting, forwarded, keys } = this.#service;
    return {
      self,
      region: topology.region(self),
      ...{ jobs, shards, others, leading, waiting, forwarded, appends, durable, keys },
      watchers: this.#watches.size,
      clockSkewRefused: hlc.refused,
    };
  }

  /** Whether a job was submitted with this key, as far as this node knows. */
  knowsKey(text: string): boolean {
    const parsed = parseKey(text);
    if (parsed.kind !== "key") return false;
    const app = this.#context.groups.get(shardGroup(shardOf(parsed.key)))?.app;
    return app?.kind === "shard" && app.state.has(parsed.key);
  }

  /** Groups that this node has given up and that have no other leader yet, as far as it knows. */
  get handingOver(): number {
    return this.#givenUp.size;
  }

  /** Whether a peer has recently given up its groups: it is shutting down as well. */
  isLeaving(peer: NodeId): boolean {
    const at = this.#resignedAt.get(peer) ?? Number.NEGATIVE_INFINITY;
    return this.#context.now - at < LEAVING_MS_MAX;
  }

  /** The jobs that this node replicates, by status and owner. */
  list(query: JobQuery): ReturnType<JobIndex["list"]> {
    return this.#jobs.list(query);
  }

  /** Groups of jobs that have not finished: finished ones are many, and stay until they are archived. */
  *openJobs(): Iterable<GroupId> {
    for (const { id } of this.#jobs.open()) yield id;
  }

  /** For checkpoints, status and checkers; not to be changed. */
  get groups(): ReadonlyMap<GroupId, Group> {
    return this.#context.groups;
  }

  /** Jobs that left memory. */
  get archived(): ReadonlySet<string> {
    return this.#context.archived;
  }

  /** Pinned data directory of each peer, as stored by a checkpoint. */
  get identities(): ReadonlyMap<NodeId, string> {
    return this.#identities.written;
  }

  /** Whether another directory under this name would be refused, also after a crash. */
  knows(peer: NodeId): boolean {
    return this.#identities.known.has(peer);
  }

  /**
   * Returns why messages from a peer with this data directory are rejected, and raises an alarm; null if they are
   * accepted.
   */
  refuseIdentity(peer: NodeId, identity: string): string | null {
    return this.#identities.refuse(peer, identity);
  }

  /** Records handed to the log by this process: what a checkpoint taken now covers. */
  get appends(): number {
    return this.#context.appends;
  }

  /** The archive has expired this job: nothing needs to know any more that it existed. */
  forget(jobId: string): void {
    this.#context.archived.delete(jobId);
  }

  /** How far this clock is behind the times in our own log; until then this node must not serve. (HLC-5) */
  clockBehindMs(wall: number): number {
    return this.#context.hlc.waitMs(Math.floor(wall));
  }

  #onMessage(from: NodeId, message: NodeMessage): void {
    if (!this.#admission.mayHear(message)) return;
    switch (message.kind) {
      case "vsr":
        if (message.message.kind === "resign") this.#resignedAt.set(from, this.#context.now);
        this.#groups.onMessage(from, message.group, message.message);
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
      case "archived":
        this.#archiving.onArchived(message.state);
        return;
      case "stop":
        this.#watches.onStop(message.event);
        return;
      case "watch":
      case "watched":
        return;
      case "introduction":
        this.#admission.onIntroduction(from);
        return;
      case "acquainted":
        this.#admission.onAcquainted(from);
        return;
      default:
        assertNever(message);
    }
  }

  #mayRest(id: GroupId): void {
    const group = this.#context.groups.get(id);
    if (group?.app.kind === "registered") this.#groups.step(group, { kind: "mayRest" });
  }

  /** Why they are not needed is on disk first: a restart must not let them begin again. */
  #forget({ by, groups }: Extract<LedgerInput, { kind: "forget" }>): void {
    const why = this.#context.groups.get(by);
    if (why === undefined) return;
    this.#groups.step(why, { kind: "mark" });
    for (const id of groups) {
      const group = this.#context.groups.get(id);
      if (group?.app.kind !== "registered") continue;
      const { acting, knownView: view } = group.replica.state;
      if (acting) this.#context.emit({ kind: "leads", group: id, view, leads: false });
      this.#onGone(group);
    }
  }

  #giveUp(): void {
    this.#isLeaving = true;
    for (const group of this.#context.groups.values()) {
      if (group.replica.isAwaited) this.#givenUp.add(group);
      else if (!group.replica.state.asleep) this.#groups.step(group, { kind: "giveUp" });
    }
  }

  /**
   * A group that found no successor in time keeps leading, and one that was just founded or elected leads as well: a
   * node that shuts down asks them again.
   */
  #handOver(): void {
    const { self, groups } = this.#context;
    for (const group of this.#givenUp) {
      const { acting, giveUpBy, primary, status } = group.replica.state;
      const isOver = status === "retired" || status === "broken";
      const isFollowed = primary !== null && primary !== self;
      if (groups.get(group.id) !== group || isOver || isFollowed) this.#givenUp.delete(group);
      else if (acting && giveUpBy === Number.POSITIVE_INFINITY) {
        this.#groups.step(group, { kind: "giveUp" });
      }
    }
  }

  #onTick(): void {
    const { now } = this.#context;
    for (const group of this.#groups.takeDue(now)) {
      this.#groups.tick(group);
      if (group.app.kind === "shard") this.#service.onShardTick(group, group.app);
    }
    this.#service.onTick();
    this.#comparison.onTick();
    this.#admission.onTick();
    this.#archiving.onTick();
  }

  /** A group leaves memory. */
  #onGone(group: Group): void {
    if (group.app.kind === "job") this.#watches.onGone(group);
    this.#jobs.onGone(group);
    this.#comparison.onGone(group);
    this.#groups.remove(group);
    this.#service.onGone(group);
  }
}
