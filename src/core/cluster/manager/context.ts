/** State shared by the parts of a manager: time, effects, peers and workers, and committed state. */

import type { NodeId } from "../../base/ids.ts";
import type { GroupId } from "../../ledger/group/messages.ts";
import { HEARTBEAT_MS, type Refusal, refusal } from "../messages.ts";
import { TimeoutCounters } from "../overload/timeout-counters.ts";
import { DATACENTER_PREFIX, DatacenterState } from "./datacenter-state.ts";
import { Peers } from "./peers.ts";
import { Proposals, type Proposed } from "./proposals.ts";
import { MANAGER_RULES, type ManagerRules } from "./rules.ts";
import { RUN_PREFIX, RunState } from "./run-state.ts";
import type { GroupLookup, ManagerEffect, ManagerOptions } from "./types.ts";
import { WorkerTable } from "./worker-table.ts";

/** Longest interval between two steps of a manager that has or awaits a worker, unless its process was paused. */
const IDLE_MS_MAX = 2 * HEARTBEAT_MS;

export class ManagerContext {
  readonly options: ManagerOptions;
  readonly rules: ManagerRules;
  readonly workers: WorkerTable;
  readonly proposals: Proposals;
  /** The other managers of the datacenter. */
  readonly peers = new Peers();
  readonly datacenterGroup: GroupId;
  /** Timeout counters over all jobs. */
  readonly timeouts = new TimeoutCounters();
  now = 0;
  wall = 0;
  readonly #lookup: GroupLookup;
  #beganAt: number | null = null;
  #hasCaughtUp = false;
  /** Start of the current uninterrupted run of this process; shorter pauses are added to it. */
  #awakeSince = 0;
  #requests = 0;
  #events = 0;
  #effects: ManagerEffect[] = [];

  constructor(options: ManagerOptions, lookup: GroupLookup) {
    const { config, datacenter } = options;
    this.options = options;
    this.rules = options.rules ?? MANAGER_RULES;
    this.#lookup = lookup;
    this.datacenterGroup = `${DATACENTER_PREFIX}${datacenter}` as GroupId;
    this.workers = new WorkerTable(config, this.rules);
    this.proposals = new Proposals(this, config.proposeRetryMs);
  }

  setTime(now: number, wall: number): void {
    // A manager checks on its workers once per timeout: twice that long without a step means that it was paused.
    const stoppedMs = 2 * this.options.config.workerTimeoutMs;
    const idleMs = now - this.now;
    if (this.#beganAt === null || idleMs > stoppedMs) this.#awakeSince = now;
    else this.#awakeSince += Math.max(0, idleMs - IDLE_MS_MAX);
    this.#beganAt ??= now;
    this.now = now;
    this.wall = wall;
    this.#hasCaughtUp ||= this.#lookup.find(this.datacenterGroup)?.isBehind === false;
  }

  /**
   * Time by which this process has received a heartbeat from every live worker. Own pauses do not count, since nothing
   * is received during one. After a power cut workers may return later than managers: with no worker at all, jobs could
   * only fail, so the manager keeps waiting.
   */
  get allSeenAt(): number {
    const { loadTimeoutMs, rejoinMs, workerTimeoutMs } = this.options.config;
    const firstAt = this.workers.firstSeenAt ?? (this.#beganAt ?? 0) + loadTimeoutMs;
    return Math.max(this.#awakeSince + rejoinMs, firstAt + workerTimeoutMs);
  }

  emit(effect: ManagerEffect): void {
    this.#effects.push(effect);
  }

  takeEffects(): readonly ManagerEffect[] {
    const effects = this.#effects;
    this.#effects = [];
    return effects;
  }

  /** Returns a new id for a request to a worker. */
  newRequest(): number {
    return ++this.#requests;
  }

  /** Returns a unique event id for an entry. */
  newEventId(): string {
    return `${this.options.self}/${this.options.boot}/${this.#events++}`;
  }

  /** Proposes an entry decided by a group leader on this node. */
  propose(
    group: GroupId,
    eventId: string,
    data: Uint8Array,
    done: (proposed: Proposed) => void,
    members: readonly NodeId[] = [],
  ): void {
    this.proposals.propose({ group, eventId, data, members, by: "leader", done });
  }

  /** Proposes an entry requested by a client. */
  proposeForClient(
    group: GroupId,
    eventId: string,
    data: Uint8Array,
    done: (proposed: Proposed) => void,
  ): void {
    const members = group === this.datacenterGroup ? this.options.managers : [];
    this.proposals.propose({ group, eventId, data, members, by: "client", done });
  }

  /** State of the standing group; null until it is founded. */
  datacenter(): DatacenterState | null {
    const application = this.#lookup.find(this.datacenterGroup)?.application;
    return application instanceof DatacenterState ? application : null;
  }

  /** True when this manager may lack jobs of the datacenter, as after a restart. */
  get isBehind(): boolean {
    return this.#lookup.find(this.datacenterGroup)?.isBehind ?? false;
  }

  /** True while the manager has been behind ever since its process started. */
  get isCatchingUp(): boolean {
    return !this.#hasCaughtUp && this.isBehind;
  }

  /** Asks the client to retry: this manager may lack jobs that others know. */
  behind(): Refusal {
    const { self } = this.options;
    return refusal(
      "retry",
      `${self} is catching up with the other managers: ask again, or another`,
    );
  }

  /** Answers a request for an unknown job: a manager that is behind cannot claim that the job does not exist. */
  noJob(job: string): Refusal {
    return this.isBehind ? this.behind() : refusal("unknownJob", `there is no job ${job}`);
  }

  /** All groups replicated by this node. */
  groups(): Iterable<GroupId> {
    return this.#lookup.names();
  }

  /** State of a job's group, and its leader as far as this node knows. */
  runOf(job: string): { readonly state: RunState; readonly primary: NodeId | null } | null {
    const found = this.#lookup.find(runGroup(job));
    if (found === null || !(found.application instanceof RunState)) return null;
    return { state: found.application, primary: found.primary };
  }

  log(
    level: "info" | "warn" | "error",
    event: string,
    fields: Readonly<Record<string, string | number>>,
  ): void {
    this.emit({ kind: "log", level, event, fields });
  }
}

export function runGroup(job: string): GroupId {
  return `${RUN_PREFIX}${job}` as GroupId;
}
