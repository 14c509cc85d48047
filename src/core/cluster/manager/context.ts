/** What the parts of a manager share: the time, what is asked for, who is there, and what is committed. */

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

/** The longest time without a step of a manager that has a worker or waits for one, unless it was stopped. */
const IDLE_MS_MAX = 2 * HEARTBEAT_MS;

export class ManagerContext {
  readonly options: ManagerOptions;
  readonly rules: ManagerRules;
  readonly workers: WorkerTable;
  readonly proposals: Proposals;
  /** The other managers of the datacenter. */
  readonly peers = new Peers();
  readonly datacenterGroup: GroupId;
  /** Of the clocks of jobs. */
  readonly timeouts = new TimeoutCounters();
  now = 0;
  wall = 0;
  readonly #lookup: GroupLookup;
  #beganAt: number | null = null;
  #hasCaughtUp = false;
  /** Since when it runs without having been stopped for long; shorter stops are added to it. */
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
    // Whoever hears a worker looks after it once in this time: without a step for twice as long it was stopped.
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
   * By then every worker that lives has been heard by this process. While it was stopped it could hear nobody.
   * After a power cut workers may be back later than managers: as long as there are none at all, a job could only
   * fail for want of them.
   */
  get heardAllAt(): number {
    const { loadTimeoutMs, rejoinMs, workerTimeoutMs } = this.options.config;
    const firstAt = this.workers.firstHeardAt ?? (this.#beganAt ?? 0) + loadTimeoutMs;
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

  /** A number for a request to a worker. */
  newRequest(): number {
    return ++this.#requests;
  }

  /** A name for an entry, never given twice. */
  newEventId(): string {
    return `${this.options.self}/${this.options.boot}/${this.#events++}`;
  }

  /** Decided by whoever leads a group here. */
  propose(
    group: GroupId,
    eventId: string,
    data: Uint8Array,
    done: (proposed: Proposed) => void,
    members: readonly NodeId[] = [],
  ): void {
    this.proposals.propose({ group, eventId, data, members, by: "leader", done });
  }

  /** Asked for by a client. */
  proposeForClient(
    group: GroupId,
    eventId: string,
    data: Uint8Array,
    done: (proposed: Proposed) => void,
  ): void {
    const members = group === this.datacenterGroup ? this.options.managers : [];
    this.proposals.propose({ group, eventId, data, members, by: "client", done });
  }

  /** The standing group's state; null until it is founded. */
  datacenter(): DatacenterState | null {
    const application = this.#lookup.find(this.datacenterGroup)?.application;
    return application instanceof DatacenterState ? application : null;
  }

  /** Whether jobs of the datacenter may be missing here, as after a restart. */
  get isBehind(): boolean {
    return this.#lookup.find(this.datacenterGroup)?.isBehind ?? false;
  }

  /** True while that has been so since the process began. */
  get isCatchingUp(): boolean {
    return !this.#hasCaughtUp && this.isBehind;
  }

  /** Asks a client to retry: jobs that others know may be missing here. */
  behind(): Refusal {
    const { self } = this.options;
    return refusal(
      "retry",
      `${self} is catching up with the other managers: ask again, or another`,
    );
  }

  /** Answers about a job that is not here: a manager that is behind cannot say that there is none. */
  noJob(job: string): Refusal {
    return this.isBehind ? this.behind() : refusal("unknownJob", `there is no job ${job}`);
  }

  /** All groups that this node replicates. */
  groups(): Iterable<GroupId> {
    return this.#lookup.names();
  }

  /** The state of a job's group, and who leads it as far as this node knows. */
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
