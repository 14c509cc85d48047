/**
 * State machine of a gate, on top of the ledger node of its process.
 *
 *     clients ── submit ──▶ the gates' ledger: one group per job ── leads ──▶ JobLeader
 *             ── watch ───▶ the leader of the job                                │
 *                                                managers of each datacenter ◀───┘
 *
 * Any gate accepts jobs and controls. The leader of a job's group acts for it, and only on committed state.
 */

import { assertNever } from "../../base/assert.ts";
import { type Millis, millis } from "../../base/brand.ts";
import { Deadlines } from "../../base/deadlines.ts";
import type { GroupId } from "../../ledger/group/messages.ts";
import { type JobId, parseJobId } from "../../ledger/job/job-id.ts";
import type { DatacenterView } from "../messages.ts";
import type { TimeoutView } from "../overload/timeout-counters.ts";
import type { CallsView } from "./calls.ts";
import { ClientRequests } from "./client-requests.ts";
import { GateContext } from "./context.ts";
import type { FederatedView, RoutingView } from "./datacenters.ts";
import { EndedParts } from "./ended-parts.ts";
import type { GateWatchView } from "./gate-peers.ts";
import { JobLeader } from "./job-leader.ts";
import { JobReports } from "./job-reports.ts";
import { ownHealth } from "./own-health.ts";
import { hasJobEnded } from "./status.ts";
import type { GateEffect, GateInput, GateLookup, GateOptions } from "./types.ts";

/** Finished jobs led by this gate whose log lines are kept. */
const ENDED_MAX = 20;

export class Gate {
  readonly #context: GateContext;
  readonly #requests: ClientRequests;
  readonly #reports: JobReports;
  readonly #endedParts: EndedParts;
  /** Leaders of the jobs it leads, and of the last finished ones. */
  readonly #leaders = new Map<string, JobLeader>();
  /** Deadline of each leader: every input asks for the next one, and thousands of jobs may wait. */
  readonly #due = new Deadlines<string>();
  /** Finished jobs, in the order of their end. */
  readonly #over = new Set<string>();
  #wakeAt = 0;

  constructor(options: GateOptions, lookup: GateLookup) {
    this.#context = new GateContext(options, lookup);
    this.#reports = new JobReports(this.#context);
    this.#endedParts = new EndedParts(this.#context);
    this.#requests = new ClientRequests(this.#context, {
      leaderOf: (job) => this.#leaders.get(job) ?? null,
      waiting: () =>
        [...this.#leaders.values()].flatMap(({ waitingTenant }) => waitingTenant ?? []),
    });
  }

  /** Ignores unexpected, late and repeated input. */
  step(input: GateInput, now: Millis, wall: number): readonly GateEffect[] {
    this.#context.setTime(now, wall);
    this.#take(input);
    // A callback may issue another request that completes at once. This terminates, because retries are delayed.
    for (const answer of this.#answers()) answer();
    return this.#context.takeEffects();
  }

  /** Jobs it leads that are not finished everywhere. */
  get openJobs(): readonly string[] {
    return [...this.#leaders.values()].filter(({ isDone }) => !isDone).map(({ job }) => job);
  }

  /** Leads no new jobs and accepts none. */
  get isDraining(): boolean {
    return this.#context.isDraining;
  }

  get routing(): RoutingView {
    return this.#context.datacenters.routing;
  }

  /** Circuit and manager pool of each datacenter. */
  get calls(): readonly CallsView[] {
    return this.#context.calls.views();
  }

  /** Reachability of each datacenter. */
  get federated(): readonly FederatedView[] {
    return this.#context.datacenters.federated;
  }

  /** Health of all gates, as seen by this one. */
  get gates(): GateWatchView {
    return this.#context.gates.view();
  }

  /** Address of a gate for a client refused here; null if none is known. */
  elsewhere(): string | null {
    return this.#context.gates.elsewhere();
  }

  /** Each datacenter with its circuit, pool and health. */
  get datacenters(): readonly (DatacenterView & Omit<CallsView, "datacenter" | "circuit">)[] {
    const { calls, datacenters } = this.#context;
    const ways = new Map(calls.views().map((one) => [one.datacenter, one]));
    return datacenters.views().flatMap((view) => {
      const way = ways.get(view.name);
      return way === undefined ? [] : [{ ...view, pool: way.pool, health: way.health }];
    });
  }

  nextDeadline(): Millis | null {
    const at = Math.min(
      this.#wakeAt,
      this.#context.nextDeadline() ?? Number.POSITIVE_INFINITY,
      this.#context.datacenters.nextDeadline(),
      this.#context.gates.nextDeadline(),
      this.#endedParts.nextDeadline(),
      this.#due.next() ?? Number.POSITIVE_INFINITY,
    );
    return at === Number.POSITIVE_INFINITY ? null : millis(at);
  }

  /** Timeouts of the jobs it leads, and counters of past ones. */
  get timeouts(): TimeoutView {
    const active = [...this.#leaders.values()].filter(({ isDone }) => !isDone).length;
    return { active, counts: this.#context.timeouts.counts };
  }

  *#answers(): Iterable<() => void> {
    const { calls } = this.#context;
    for (let some = calls.takeAnswers(); some.length > 0; some = calls.takeAnswers()) yield* some;
  }

  #take(input: GateInput): void {
    const context = this.#context;
    switch (input.kind) {
      case "leads":
        this.#onLeads(input.group, input.view, input.leads);
        return;
      case "applied":
        context.places.changed();
        this.#leaders.get(input.group)?.look();
        return;
      case "ledger":
        context.onLedger(input.token, input.answer);
        return;
      case "client":
        this.#requests.take(input.id, input.request);
        return;
      case "answered":
        context.calls.onAnswered(input.id, input.answer);
        return;
      case "link":
        context.calls.onLink(input.datacenter, input.manager, input.up);
        if (input.up) context.datacenters.onReached(input.datacenter);
        return;
      case "peer":
        context.peers.hear(input);
        context.gates.onPeer(input.peer, input.up);
        return;
      case "peerDrains":
        context.peers.hear(input);
        context.gates.onDrains(input.peer, input.drains);
        return;
      case "diskProblem":
        context.peers.hear(input);
        return;
      case "peerHealth":
        context.gates.onHealth(input.peer, input.health);
        return;
      case "blobsHeld":
        for (const hash of input.hashes) context.blobs.add(hash);
        return;
      case "blobsGone":
        for (const hash of input.hashes) context.blobs.delete(hash);
        return;
      case "blobRead":
        context.onBlobRead(input.hash, input.bytes);
        return;
      case "partRead":
        context.onPartRead(input.id, input.bytes, input.total);
        return;
      case "pressed":
        context.level = input.level;
        context.gates.pressure = input.state;
        return;
      case "report":
        this.#reports.look(this.#leaders);
        return;
      case "tick":
        this.#onTick();
        return;
      default:
        assertNever(input);
    }
  }

  #onLeads(group: GroupId, view: number, leads: boolean): void {
    if (parseJobId(group) === null) return;
    this.#drop(group);
    const found = leads ? this.#context.lookup.job(group) : null;
    if (found === null || hasJobEnded(found.state)) {
      this.#reports.leaves(group);
      return;
    }
    if (found.state.appliedSeq >= 0) this.#reports.leads(found.state);
    this.#context.log("info", "job.leads", { job: group, view });
    const leader = new JobLeader({ job: group, view }, this.#context, (one) =>
      this.#onLeaderChanged(one),
    );
    this.#leaders.set(group, leader);
    leader.look();
  }

  #onTick(): void {
    const { now } = this.#context;
    this.#context.onTick();
    this.#context.datacenters.onTick();
    this.#context.gates.onTick(() => ownHealth(this.#context, this.#leaders.values()));
    for (const leader of this.#leaders.values()) if (leader.nextDeadline() <= now) leader.look();
    if (now >= this.#wakeAt) this.#wake();
    this.#endedParts.onTick();
    this.#forget();
  }

  /**
   * Wakes the groups of open jobs: an idle group sleeps and would not notice the loss of its leader. A strong read
   * wakes it, and triggers an election if there is no leader.
   */
  #wake(): void {
    this.#wakeAt = this.#context.now + this.#context.options.config.wakeMs;
    const level = { level: "STRONG", minSeq: 0, staleMs: 0 } as const;
    const states = [...this.#context.lookup.jobs()].map(({ state }) => state);
    this.#endedParts.remember(states);
    for (const state of states) {
      if (hasJobEnded(state) || this.#leaders.has(state.jobId)) continue;
      const jobId = state.jobId as JobId;
      this.#context.request({ kind: "read", jobId, ...level }, () => undefined);
    }
  }

  /** Ignores callbacks for a deposed leader. */
  #onLeaderChanged(leader: JobLeader): void {
    const { isDone, job } = leader;
    if (this.#leaders.get(job) !== leader) return;
    const at = leader.nextDeadline();
    if (at === Number.POSITIVE_INFINITY) this.#due.delete(job);
    else this.#due.set(job, at);
    if (isDone) this.#over.add(job);
  }

  #forget(): void {
    for (const job of this.#over) {
      if (this.#over.size <= ENDED_MAX) return;
      this.#drop(job);
    }
  }

  #drop(job: string): void {
    this.#leaders.delete(job);
    this.#due.delete(job);
    this.#over.delete(job);
  }
}
