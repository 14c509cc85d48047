/**
 * Requests and their answers: served here when this node leads the group, sent on otherwise. Every
 * request is answered once, at the latest when its time is over; an event that was proposed and not
 * seen to commit is "unknown", never "failed". (PIPE-3, VSR-11, VSR-16, VSR-24, IDEM-29)
 */

import type { NodeId } from "../../base/ids.ts";
import type { Random } from "../../base/random.ts";
import type { GroupId, LogEntry } from "../group/messages.ts";
import { durabilityOfEvent } from "../job/durability.ts";
import { isReplicated, type JobEvent } from "../job/events.ts";
import type { JobState } from "../job/job-state.ts";
import type { GateCacheStats } from "../keys/gate-cache.ts";
import { candidates, isPromisedHere, isProvenAbsent, mayExist, PROMISED } from "./absence.ts";
import { Cancels } from "./cancels.ts";
import { Commits } from "./commits.ts";
import { REQUESTS_MAX } from "./config.ts";
import type { LedgerContext } from "./context.ts";
import { appliedOf, type CommitWaiter, type Group } from "./group.ts";
import type { GroupEffect, Groups } from "./groups.ts";
import { KeyCache } from "./key-cache.ts";
import type { LedgerAnswer, LedgerRequest, PeerRequest } from "./messages.ts";
import { authoritative, Reads } from "./reads.ts";
import type { Reply } from "./reply.ts";
import { type Routed, Router } from "./router.ts";
import type { ShardApp } from "./shard-app.ts";
import { ShardService } from "./shard-service.ts";
import { boundFor, founders, groupOf, named, overdue, prepare, refused } from "./submission.ts";

type Request<Kind extends PeerRequest["kind"]> = Extract<PeerRequest, { kind: Kind }>;
type Answer<Kind extends LedgerAnswer["kind"]> = Extract<LedgerAnswer, { kind: Kind }>;

/** An unanswered request is sent again after this many retry pauses. */
const ANSWER_PAUSES = 10;
/** After so many redirects in a row the nodes disagree: wait before asking again. */
const REDIRECTS_MAX = 4;
/** Interval of repeated alarms about implausible messages from one peer. */
const IMPLAUSIBLE_EVERY_MS = 10_000;

/** Listener for changes of this node's jobs. */
interface JobListener {
  /** A job has moved on. */
  onApplied(group: Group): void;
  /** This node is no replica of the group any more. */
  onRetired(group: Group): void;
  /** Somebody wants a job to stop, and it is not committed. */
  onStop(event: JobEvent): void;
  /** Somebody reads a job that has left memory. */
  readArchived(jobId: string, reply: Reply): void;
  /** A job has left the memory of the node that answered. */
  onArchived(state: JobState): void;
}

export class Service {
  readonly #context: LedgerContext;
  readonly #groups: Groups;
  readonly #listener: JobListener;
  readonly #router: Router;
  readonly #commits: Commits;
  readonly #shards: ShardService;
  readonly #keyCache: KeyCache;
  readonly #cancels: Cancels;
  readonly #reads: Reads;
  /** Peers with a recent alarm about implausible messages; at most one entry per node. */
  readonly #quietUntil = new Map<NodeId, number>();

  constructor(context: LedgerContext, groups: Groups, random: Random, listener: JobListener) {
    this.#context = context;
    this.#groups = groups;
    this.#listener = listener;
    this.#router = new Router(random.fork("requests"));
    const answer = (reply: Reply, text: LedgerAnswer): void => this.answer(reply, text);
    this.#commits = new Commits(context, answer);
    this.#reads = new Reads(context, groups, answer);
    const route = (reply: Reply, request: PeerRequest): void =>
      this.#route(reply, request, this.#deadline());
    this.#shards = new ShardService(context, { answer, route });
    this.#keyCache = new KeyCache(context, route);
    this.#cancels = new Cancels(context, { route, stop: (event) => listener.onStop(event) });
  }

  get waiting(): number {
    return this.#commits.size + this.#reads.size;
  }

  get forwarded(): number {
    return this.#router.size;
  }

  get keys(): GateCacheStats {
    return this.#keyCache.stats;
  }

  nextDeadline(): number | null {
    const never = Number.POSITIVE_INFINITY;
    const at = Math.min(
      this.#commits.nextDeadline() ?? never,
      this.#router.nextDeadline() ?? never,
      this.#reads.nextDeadline() ?? never,
      this.#keyCache.nextDeadline() ?? never,
      this.#cancels.nextDeadline() ?? never,
    );
    return at === never ? null : at;
  }

  #deadline(): number {
    return this.#context.now + this.#context.options.config.requestTimeoutMs;
  }

  onRequest(token: number, request: LedgerRequest): void {
    const reply = { kind: "client", token } as const;
    const held = this.waiting + this.forwarded + this.#cancels.waiting;
    if (held >= boundFor(request, REQUESTS_MAX)) {
      this.answer(reply, { kind: "retry", why: "this node has too many requests waiting" });
      return;
    }
    const ready = prepare(request, this.#context);
    if (ready.kind === "refused") this.answer(reply, ready);
    else if (ready.kind === "submit") this.#keyCache.submit(token, ready);
    else if (ready.kind === "append" && !isReplicated(ready.event.kind)) {
      this.#commits.keep(reply, ready);
    } else if (!this.#cancels.take(token, ready)) this.#route(reply, ready, this.#deadline());
  }

  #route(reply: Reply, request: PeerRequest, deadline: number): void {
    const id = groupOf(request);
    const group = this.#context.groups.get(id);
    if (group !== undefined && this.#servesHere(group, request)) {
      this.#serve(group, reply, request, deadline);
    } else if (request.kind === "read" && this.#context.archived.has(id)) {
      this.#listener.readArchived(id, reply);
    } else this.#attempt(this.#router.add(id, reply, request, deadline));
  }

  /** Here if we can, else where the primary should be. */
  #attempt(routed: Routed): void {
    const { now, self, options, groups } = this.#context;
    const { routeRetryMs } = options.config;
    const group = groups.get(routed.group);
    if (group !== undefined && this.#servesHere(group, routed.request)) {
      this.#router.remove(routed);
      this.#serve(group, routed.reply, routed.request, routed.deadline);
      return;
    }
    const target = this.#target(routed, group);
    if (group !== undefined) this.#groups.wake(group);
    routed.attempts++;
    routed.sentTo = target;
    if (target === null) {
      this.#router.wakeAt(routed, now + routeRetryMs);
      return;
    }
    this.#router.wakeAt(routed, now + ANSWER_PAUSES * routeRetryMs);
    const request = authoritative(routed.request);
    // We may be the first replica of a group that is not founded yet.
    if (target === self) this.onPeerRequest(self, routed.id, request);
    else this.#context.send(target, { kind: "request", id: routed.id, request });
  }

  #servesHere(group: Group, request: PeerRequest): boolean {
    if (group.replica.state.acting) return true;
    return request.kind === "read" && this.#reads.readableHere(group, request);
  }

  #target(routed: Routed, group: Group | undefined): NodeId | null {
    const { self, topology } = this.#context;
    const { hint } = routed;
    routed.hint = null;
    if (hint !== null && hint !== self) return hint;
    const primary = group?.replica.state.primary ?? null;
    if (routed.attempts === 0 && primary !== null && primary !== self) return primary;
    const { request } = routed;
    const others = group?.replica.state.members.filter((id) => id !== self);
    const founded = founders(request);
    const unknown = founded.length > 0 ? founded : candidates(topology, routed.group);
    const nodes = others ?? unknown;
    return nodes[routed.attempts % Math.max(1, nodes.length)] ?? null;
  }

  /** A request that another node sent on to us; answered with a redirect when it is not ours. */
  onPeerRequest(from: NodeId, id: number, request: PeerRequest): void {
    const reply = { kind: "peer", node: from, id } as const;
    const groupId = groupOf(request);
    const group = this.#context.groups.get(groupId) ?? this.#founded(groupId, request);
    if (group === null) {
      if (request.kind === "read" && this.#context.archived.has(groupId)) {
        this.#listener.readArchived(groupId, reply);
      } else this.answer(reply, this.#absent(groupId, request));
      return;
    }
    const { acting, takeOverAt, primary } = group.replica.state;
    // About to lead: the group's first record is on its way to the disk, what follows may queue.
    const founding = takeOverAt > 0 && founders(request).length > 0;
    if (acting || founding || this.#servesHere(group, request)) {
      this.#serve(group, reply, request, this.#deadline());
    } else {
      this.#groups.wake(group);
      this.answer(reply, { kind: "redirect", primary });
    }
  }

  /** A group is founded at the first replica that receives the request. (IDEM-22) */
  #founded(id: GroupId, request: PeerRequest): Group | null {
    const members = founders(request);
    if (!members.includes(this.#context.self) || this.#context.archived.has(id)) return null;
    return this.#groups.mayBegin(id) ? this.#groups.found(id, members) : null;
  }

  #absent(id: GroupId, request: PeerRequest): LedgerAnswer {
    if (!this.#context.archived.has(id)) {
      if (founders(request).length > 0 && !this.#groups.mayBegin(id))
        return { kind: "retry", why: "what makes the group is not known here, or no more" };
      return isPromisedHere(this.#context, id) ? PROMISED : { kind: "notFound", jobId: id };
    }
    if (request.kind === "found") return { kind: "founded", seq: 0, level: "LOCAL" };
    return refused("ARCHIVED", `job ${id} has ended and is in the archive`);
  }

  /** The primary's own work; reads may come here at replicas too. */
  #serve(group: Group, reply: Reply, request: PeerRequest, deadline: number): void {
    const { app } = group;
    switch (request.kind) {
      case "read":
      case "inspect":
        this.#reads.read(group, reply, request, deadline);
        return;
      case "propose":
        this.#propose(group, reply, request, deadline);
        return;
      case "append": {
        if (app.kind !== "job") return;
        if (app.state.status === "ABSENT") {
          // The group exists and its first entry is being retried: nothing may come before it. (IDEM-22)
          this.#sendOn(group, reply, request, deadline);
          return;
        }
        const { event } = request;
        const merged = this.#context.hlc.receive(event.hlc, this.#context.wall);
        if (!merged.ok) {
          const text = `the event's time is ${merged.refusal.aheadMs} ms ahead of this node`;
          this.answer(reply, refused(merged.refusal.code, text));
          return;
        }
        const required = durabilityOfEvent(event.kind, request.durability);
        this.#commits.append(group, app, event, { reply, request, required, deadline });
        return;
      }
      case "found": {
        if (app.kind !== "job") return;
        const { required, created } = request;
        this.#commits.append(group, app, created, { reply, request, required, deadline });
        return;
      }
      case "submit":
        if (app.kind === "shard") this.#shards.submit(group, app, reply, request);
        return;
      case "replace":
        this.#replace(group, reply, request, deadline);
    }
  }

  #propose(group: Group, reply: Reply, request: Request<"propose">, deadline: number): void {
    const { app, replica } = group;
    if (app.kind !== "registered") return;
    const problem = app.application.problemOf(request.data);
    if (problem !== null) {
      this.answer(reply, refused("INVALID_OPERATION", problem));
      return;
    }
    const { epoch, members } = replica.state;
    // Founding it with other replicas would have made a second group of this name. (VSR-26)
    if (epoch === 1 && request.members.some((member) => !members.includes(member))) {
      this.answer(reply, refused("BAD_MEMBERS", `${group.id} stands at ${members.join(", ")}`));
      return;
    }
    const asked = { reply, request, required: "NONE", deadline } as const;
    this.#commits.propose(group, app, request, asked);
  }

  #replace(group: Group, reply: Reply, request: Request<"replace">, deadline: number): void {
    const { members } = group.replica.state;
    const { leaving, joining, eventId } = request;
    if (!members.includes(leaving) || members.includes(joining)) {
      const text = `${group.id} has the replicas ${members.join(", ")}`;
      this.answer(reply, refused("BAD_MEMBERS", text));
      return;
    }
    const next = members.map((id) => (id === leaving ? joining : id));
    const asked = { reply, request, required: "NONE", deadline } as const;
    this.#commits.wait({ group, eventId, ...asked, outcome: null });
    this.#groups.step(group, { kind: "reconfigure", eventId, members: next });
  }

  onEffect(group: Group, effect: GroupEffect): void {
    const { app } = group;
    switch (effect.kind) {
      case "committed":
        this.#onCommitted(group, effect.entry, effect.copies);
        return;
      case "restored":
        if (app.restore(effect.snapshot)) {
          this.#listener.onApplied(group);
          return;
        }
        this.#context.emit({ kind: "alarm", group: group.id, why: "a snapshot cannot be read" });
        return;
      case "refused":
        if (app.kind === "shard") this.#shards.onRefused(group, app, effect.eventId);
        this.#sendOnAll(group, this.#commits.release(group, effect.eventId));
        return;
      case "tookOver":
        this.#context.emit({ kind: "leads", group: group.id, view: effect.view, leads: true });
        if (app.kind === "shard") this.#shards.onTookOver(group, app);
        return;
      case "steppedDown":
        this.#onSteppedDown(group, effect.view);
        return;
      case "readReady":
      case "readFailed":
        this.#onRead(group, effect.token, effect.kind === "readReady");
        return;
      case "broken":
        this.#context.emit({ kind: "alarm", group: group.id, why: effect.why });
        return;
      case "implausible":
        this.#onImplausible(group, effect.from, `${effect.why}, dropped`);
        return;
      case "accepted":
        if (app.kind === "shard") app.proposed.delete(effect.eventId);
        return;
      case "retired":
        this.#listener.onRetired(group);
        return;
      case "epochChanged":
        return;
    }
  }

  /** Raises an alarm at a limited rate per peer: a peer that sends implausible messages sends many. */
  #onImplausible(group: Group, from: NodeId, why: string): void {
    const { now } = this.#context;
    if (now < (this.#quietUntil.get(from) ?? Number.NEGATIVE_INFINITY)) return;
    this.#quietUntil.set(from, now + IMPLAUSIBLE_EVERY_MS);
    this.#context.emit({ kind: "alarm", group: group.id, why: `${why}; sent by ${from}` });
  }

  #onCommitted(group: Group, entry: LogEntry, copies: readonly NodeId[]): void {
    const { app } = group;
    // A time too far ahead is not merged and yet committed: places in the log decide, not times. (HLC-6)
    const stamp = { wallMs: entry.wall, logical: entry.logical };
    const merged = this.#context.hlc.receive(stamp, this.#context.wall);
    if (!merged.ok) {
      const ahead = `an entry is ${Math.round(merged.refusal.aheadMs / 1_000)} s ahead`;
      const from = group.replica.view().primaryId ?? this.#context.self;
      this.#onImplausible(group, from, `CLOCK_SKEW: ${ahead}: set clocks`);
    }
    if (app.kind === "shard") {
      this.#shards.onCommitted(group, app, entry);
      return;
    }
    const outcome = app.apply(entry);
    this.#context.emit(appliedOf(group, entry, outcome?.kind));
    this.#commits.onCommitted(group, entry, outcome, copies);
    this.#listener.onApplied(group);
  }

  #onRead(group: Group, token: number, ready: boolean): void {
    const open = this.#reads.onRead(group, token, ready);
    if (open !== null) this.#sendOn(group, open.reply, open.request, open.deadline);
  }

  /** Requests that wait here are sent on to the next primary with the same event. (VSR-16) */
  #onSteppedDown(group: Group, view: number): void {
    this.#context.emit({ kind: "leads", group: group.id, view, leads: false });
    if (group.app.kind === "shard") this.#shards.onSteppedDown(group, group.app);
    group.queue = [];
    this.#sendOnAll(group, this.#commits.releaseAll(group));
  }

  #sendOnAll(group: Group, waiters: readonly CommitWaiter[]): void {
    for (const { reply, request, deadline } of waiters) {
      this.#sendOn(group, reply, request, deadline);
    }
  }

  #sendOn(group: Group, reply: Reply, request: PeerRequest, deadline: number): void {
    if (reply.kind === "peer" && reply.node !== this.#context.self) {
      this.answer(reply, { kind: "redirect", primary: group.replica.state.primary });
      return;
    }
    const routed = this.#router.add(group.id, reply, request, deadline);
    this.#router.wakeAt(routed, this.#context.now + this.#context.options.config.routeRetryMs);
  }

  /** The group has left memory: waiters ask its replicas, or its archive. */
  onGone(group: Group): void {
    this.#sendOnAll(group, this.#commits.releaseAll(group));
    for (const { reply, request, deadline } of this.#reads.releaseAll(group)) {
      this.#sendOn(group, reply, request, deadline);
    }
  }

  /** Some levels may be reached now. */
  onAcks(group: Group): void {
    this.#commits.onAcks(group);
  }

  onShardTick(group: Group, app: ShardApp): void {
    this.#shards.onTick(group, app);
  }

  onTick(): void {
    const { now } = this.#context;
    this.#commits.onTick(now);
    this.#keyCache.onTick();
    this.#cancels.onTick(now);
    this.#reads.onTick(now);
    for (const routed of this.#router.takeDue(now)) {
      if (now < routed.deadline) {
        this.#attempt(routed);
        continue;
      }
      this.#router.remove(routed);
      this.answer(routed.reply, overdue(routed.request, routed.why));
    }
  }

  onAnswer(from: NodeId, id: number, answer: LedgerAnswer): void {
    const routed = this.#router.get(id);
    if (routed === undefined || routed.sentTo !== from) return;
    const { now, options } = this.#context;
    const { routeRetryMs } = options.config;
    switch (answer.kind) {
      case "redirect":
        this.#onRedirect(routed, from, answer);
        return;
      case "notFound":
        routed.why = "the group is not known";
        if (isProvenAbsent(this.#context.topology, routed, from)) break;
        if (routed.attempts % this.#context.topology.nodes.length > 0) this.#attempt(routed);
        else this.#router.wakeAt(routed, now + routeRetryMs);
        return;
      case "retry":
      case "unknown":
        mayExist(routed);
        routed.why = answer.why;
        this.#router.wakeAt(routed, now + routeRetryMs);
        return;
      default:
        break;
    }
    this.#router.remove(routed);
    if (answer.kind === "job" && answer.archived) this.#listener.onArchived(answer.state);
    else if (answer.kind === "job") this.#onStrongAnswer(routed, answer);
    this.answer(routed.reply, named(routed, answer));
  }

  /** The primary answered with its state: if ours is as new, it was fresh when we asked. */
  #onStrongAnswer({ request, deadline }: Routed, { state }: Answer<"job">): void {
    if (request.kind !== "read" || authoritative(request).level !== "STRONG") return;
    const group = this.#context.groups.get(groupOf(request));
    if (group !== undefined && group.app.appliedSeq >= state.appliedSeq) {
      this.#reads.refresh(group, deadline);
    }
  }

  #onRedirect(routed: Routed, from: NodeId, { primary }: Answer<"redirect">): void {
    mayExist(routed);
    routed.why = "the group has no primary";
    routed.hint = primary === from ? null : primary;
    const lost = routed.hint === null || routed.attempts % REDIRECTS_MAX === REDIRECTS_MAX - 1;
    if (!lost) {
      this.#attempt(routed);
      return;
    }
    this.#router.wakeAt(routed, this.#context.now + this.#context.options.config.routeRetryMs);
  }

  answer(reply: Reply, answer: LedgerAnswer): void {
    switch (reply.kind) {
      case "client":
        this.#context.emit({ kind: "answer", token: reply.token, answer });
        return;
      case "peer":
        if (reply.node === this.#context.self) this.onAnswer(reply.node, reply.id, answer);
        else this.#context.send(reply.node, { kind: "answer", id: reply.id, answer });
        return;
      case "keyCache":
        this.#keyCache.onAnswer(reply, answer);
        return;
      case "cancel":
        this.#cancels.onAnswer(reply, answer);
        return;
      case "shard":
        if (answer.kind === "founded") this.#shards.onFounded(reply);
    }
  }
}
