/**
 * State machine of a manager, on top of the ledger node of its process.
 *
 *     clients ── submit ──▶ dc/NAME: queue, cores ── admission ──▶ run/ID: one group per job
 *                              │ its primary: DatacenterLeader        │ its primary: RunLeader
 *     workers ── heartbeats ──▶ who is there                          └─▶ orders ─▶ workers ─▶ events
 *
 * Every manager receives heartbeats of all workers and answers any client. The leader of a job answers for it; the
 * other managers redirect to the leader. Nothing takes effect before it is committed, and a manager never loads a
 * workflow.
 */

import { assertNever } from "../../base/assert.ts";
import { type Millis, millis } from "../../base/brand.ts";
import type { GroupId } from "../../ledger/group/messages.ts";
import { startsOf } from "../incarnation.ts";
import type { Announced, Events, Refusal, Taken } from "../messages.ts";
import type { HealthCounts } from "../overload/health-counters.ts";
import type { TimeoutView } from "../overload/timeout-counters.ts";
import { BlobPins } from "./blob-pins.ts";
import { ClientRequests } from "./client-requests.ts";
import { ManagerContext, runGroup } from "./context.ts";
import { DatacenterLeader } from "./datacenter-leader.ts";
import { encodeDatacenterEntry } from "./datacenter-state.ts";
import { ForgottenRuns } from "./forgotten-runs.ts";
import { GateRequests } from "./gate-requests.ts";
import { JobClocks } from "./job-clocks.ts";
import { JobQueue } from "./job-queue.ts";
import { NodeRequests } from "./node-requests.ts";
import type { RunEnd } from "./run-entries.ts";
import { RunLeader } from "./run-leader.ts";
import { RUN_PREFIX } from "./run-state.ts";
import type { GroupLookup, ManagerEffect, ManagerInput, ManagerOptions } from "./types.ts";
import { WaitingSince } from "./waiting-since.ts";
import { WorkerWatch } from "./worker-watch.ts";
import { WorkflowStates, type WorkflowStatesView } from "./workflow-states.ts";

/** Finished jobs that this manager has led and whose messages it still keeps. */
const ENDED_RUNS_MAX = 20;

export class Manager {
  readonly #context: ManagerContext;
  readonly #requests: ClientRequests;
  readonly #nodes: NodeRequests;
  readonly #pins: BlobPins;
  readonly #gates: GateRequests;
  readonly #watch: WorkerWatch;
  readonly #workflows: WorkflowStates;
  readonly #forgotten: ForgottenRuns;
  /** The jobs that this manager leads, and the last ones that it led to their end. */
  readonly #runs = new Map<string, RunLeader>();
  readonly #clocks: JobClocks;
  readonly #waiting: WaitingSince;
  #datacenter: DatacenterLeader | null = null;
  /** Queue derived from the datacenter's state as last requested. */
  #queue: JobQueue | null = null;
  /**
   * Earliest deadline of all jobs as of the last input; cached because the driver asks after every input, most of which
   * belong to the ledger.
   */
  #deadline: Millis | null | undefined;

  constructor(options: ManagerOptions, lookup: GroupLookup) {
    this.#context = new ManagerContext(options, lookup);
    this.#clocks = new JobClocks(this.#context);
    this.#waiting = new WaitingSince(this.#context);
    this.#pins = new BlobPins(this.#context);
    this.#nodes = new NodeRequests(this.#context);
    const known = {
      leaderOf: (job: string) => this.#runs.get(job) ?? null,
      reasonOf: (job: string) => this.#jobQueue()?.reasonOf(job) ?? null,
    };
    const leadsDatacenter = (): boolean => this.#datacenter !== null;
    this.#requests = new ClientRequests(this.#context, {
      ...{ ...known, nodes: this.#nodes, leadsDatacenter },
    });
    this.#gates = new GateRequests(this.#context, { ...known, nodes: this.#nodes });
    this.#watch = new WorkerWatch(this.#context, () => this.#runs.values());
    this.#workflows = new WorkflowStates(this.#context);
    this.#forgotten = new ForgottenRuns(this.#context, (job) => this.#forget(job));
  }

  /** Total: ignores unexpected, late and repeated inputs. */
  step(input: ManagerInput, now: Millis, wall: number): readonly ManagerEffect[] {
    this.#context.setTime(now, wall);
    this.#deadline = undefined;
    this.#take(input);
    this.#context.proposals.runCallbacks();
    return this.#context.takeEffects();
  }

  nextDeadline(): Millis | null {
    if (this.#deadline === undefined) this.#deadline = this.#earliest();
    return this.#deadline;
  }

  #earliest(): Millis | null {
    const { proposals, workers } = this.#context;
    const { submits } = this.#requests;
    const never = Number.POSITIVE_INFINITY;
    let at = Math.min(
      workers.nextDeadline() ?? never,
      proposals.nextDeadline() ?? never,
      submits.nextDeadline() ?? never,
      this.#pins.nextDeadline() ?? never,
      this.#forgotten.nextDeadline(),
      this.#datacenter?.nextDeadline() ?? never,
    );
    // Finished runs have no deadline.
    for (const run of this.#runs.values())
      if (!run.isDone) at = Math.min(at, run.nextDeadline() ?? never);
    return at === never ? null : millis(at);
  }

  /** Unfinished jobs led by this manager. */
  get openRuns(): readonly string[] {
    return this.#openRuns().map(({ job }) => job);
  }

  /** True when the manager leads nothing new and accepts no more jobs. */
  get isDraining(): boolean {
    return this.#nodes.isDraining;
  }

  /** Counts of health decisions about workers. */
  get health(): HealthCounts {
    return this.#watch.counts;
  }

  /** Workflow states of the jobs led here. */
  get workflows(): WorkflowStatesView {
    return this.#workflows.view;
  }

  /** Clocks of running jobs, and counters of the others. */
  get timeouts(): TimeoutView {
    const active = this.#openRuns().filter(({ timeouts }) => timeouts.isTracked).length;
    return { active, counts: this.#context.timeouts.counts };
  }

  #openRuns(): readonly RunLeader[] {
    return [...this.#runs.values()].filter(({ isDone }) => !isDone);
  }

  #take(input: ManagerInput): void {
    const { peers, proposals } = this.#context;
    switch (input.kind) {
      case "leads":
        this.#onLeads(input.group, input.view, input.leads);
        return;
      case "applied":
        this.#onApplied(input);
        return;
      case "proposed":
        proposals.onAnswer(input.token, input.answer);
        return;
      case "heartbeat":
        this.#onHeartbeat(input);
        return;
      case "workerClosed":
        this.#context.workers.onClosed(input.worker, this.#context.now);
        return;
      case "events":
        this.#onEvents(input.id, input.events);
        return;
      case "extension": {
        const answer = this.#watch.onExtension(input.extension);
        this.#context.emit({ kind: "answer", id: input.id, answer });
        return;
      }
      case "client":
        this.#requests.take(input.id, input.request);
        return;
      case "gate": {
        const { id, request } = input;
        this.#context.emit({ kind: "answer", id, answer: this.#gates.answer(request) });
        return;
      }
      case "workerAnswer":
        this.#onWorkerAnswer(input.id, input.answer);
        return;
      case "blobsReady":
        this.#requests.submits.onReady(input.hashes);
        for (const hash of input.hashes)
          for (const run of this.#runs.values()) run.ending.onBlobKept(hash, null);
        return;
      case "blobsAbsent":
        this.#requests.submits.onAbsent(input.hashes);
        return;
      case "blobNotKept":
        for (const run of this.#runs.values()) run.ending.onBlobKept(input.hash, input.problem);
        return;
      case "blobRead":
        this.#requests.onBlobRead(input.hash, input.bytes);
        return;
      case "peer":
      case "peerDrains":
      case "diskProblem":
        peers.hear(input);
        return;
      case "late":
        this.#context.workers.onLate(input.lagMs, this.#context.now);
        return;
      case "tick":
        this.#onTick();
        return;
      default:
        assertNever(input);
    }
  }

  #onLeads(group: GroupId, view: number, leads: boolean): void {
    const context = this.#context;
    if (group === context.datacenterGroup) {
      const queue = leads ? this.#jobQueue() : null;
      this.#datacenter =
        queue === null ? null : new DatacenterLeader(queue, context, this.#waiting);
      this.#datacenter?.check();
      return;
    }
    if (!group.startsWith(RUN_PREFIX)) return;
    const job = group.slice(RUN_PREFIX.length);
    if (!leads) {
      context.proposals.forget(group);
      this.#drop(job);
      return;
    }
    const run = context.runOf(job);
    if (run === null) return;
    // A finished job recorded by its datacenter needs no leader.
    if (context.datacenter()?.jobs.get(job)?.phase === "ended") {
      context.emit({ kind: "mayRest", group });
      return;
    }
    const ports = {
      beganAt: () => this.#clocks.beganAt(job),
      onEnded: (end: RunEnd) => this.#onEnded(job, end),
    };
    this.#runs.set(job, new RunLeader(job, view, run.state, context, ports));
    this.#workflows.begin(job, run.state);
  }

  #onApplied({
    entry,
    group,
    isRecovered,
    outcome,
  }: Extract<ManagerInput, { kind: "applied" }>): void {
    if (group === this.#context.datacenterGroup) {
      this.#pins.onChange();
      this.#forgotten.onApplied(entry.eventId);
      this.#waiting.onApplied(entry, isRecovered);
      this.#datacenter?.check();
      for (const run of this.#runs.values()) run.onCoresChanged();
    }
    if (!group.startsWith(RUN_PREFIX)) return;
    const job = group.slice(RUN_PREFIX.length);
    const state = this.#context.runOf(job)?.state;
    if (state?.end === null) this.#clocks.onApplied(job, entry, isRecovered);
    else this.#clocks.forget(job);
    this.#runs.get(job)?.onApplied(entry, outcome);
    if (state !== undefined) this.#workflows.update(job, state);
  }

  #onHeartbeat({ heartbeat }: Extract<ManagerInput, { kind: "heartbeat" }>): void {
    const { workers } = this.#context;
    const wasOpen = workers.isOpen(heartbeat.worker);
    const { cores, incarnation, version, worker } = heartbeat;
    const seen = workers.onHeartbeat(heartbeat, this.#context.now);
    if (seen === "full") {
      const why = "this manager knows as many workers as it can: remove lost ones";
      this.#context.log("error", "worker.ignored", { worker, incarnation, why });
      return;
    }
    this.#watch.onHeartbeat(heartbeat);
    if (seen === "known") {
      if (!wasOpen && workers.isOpen(heartbeat.worker)) this.#datacenter?.check();
      return;
    }
    this.#context.log("info", "worker.heard", { worker, incarnation, cores, version });
    const former = workers.replacedBy(worker);
    if (former !== null && startsOf(incarnation) <= startsOf(former)) {
      const why = "its data directory is empty or older: what it ran before is lost";
      this.#context.log("warn", "worker.directoryChanged", { worker, incarnation, former, why });
    }
    for (const run of this.#runs.values()) run.onWorkerSeen(worker);
    this.#datacenter?.check();
  }

  #onEvents(id: number, events: Events): void {
    const { incarnation, job, worker } = events;
    this.#context.workers.onHeard(worker, incarnation, this.#context.now);
    const run = this.#runs.get(job);
    if (run === undefined) this.#context.emit({ kind: "answer", id, answer: this.#whoTakes(job) });
    else run.onEvents(id, events);
  }

  #whoTakes(job: string): Refusal {
    const isOver = this.#context.datacenter()?.jobs.get(job)?.phase === "ended";
    const reason = isOver || this.#forgotten.has(job) ? "unknownJob" : "notLeader";
    return { kind: "refused", reason, message: this.#context.runOf(job)?.primary ?? "" };
  }

  #jobQueue(): JobQueue | null {
    const state = this.#context.datacenter();
    if (state === null) return null;
    if (this.#queue?.state !== state) this.#queue = new JobQueue(this.#context, state);
    return this.#queue;
  }

  #onWorkerAnswer(id: number, answer: Announced | Taken | Refusal | null): void {
    if (this.#nodes.onWorkerAnswer(id, answer)) return;
    for (const run of this.#runs.values()) if (run.onWorkerAnswer(id, answer)) break;
  }

  #onTick(): void {
    const { now, proposals } = this.#context;
    const isAnyGone = this.#watch.onTick();
    proposals.onTick();
    this.#requests.submits.onTick();
    this.#pins.onTick();
    this.#forgotten.onTick();
    for (const run of this.#openRuns()) run.onTick();
    this.#workflows.onTick();
    if (isAnyGone || (this.#datacenter?.nextDeadline() ?? now + 1) <= now)
      this.#datacenter?.check();
  }

  /** Returns the cores of a job to the datacenter once its group has committed its end. */
  #onEnded(job: string, end: RunEnd): void {
    const at = Math.floor(this.#context.wall);
    const data = encodeDatacenterEntry({ kind: "end", job, ...end, onlyQueued: false, at });
    const group = this.#context.datacenterGroup;
    this.#context.propose(group, `end/${job}`, data, (proposed) => {
      if (proposed.kind === "refused")
        this.#context.log("error", "end.refused", { job, why: proposed.message });
      // Rejected counts, too: the datacenter had recorded the end before and has forgotten the job since.
      if (proposed.kind === "committed")
        this.#context.emit({ kind: "mayRest", group: runGroup(job) });
    });
    const over = [...this.#runs.values()].filter((run) => run.isDone);
    for (const old of over.slice(0, -ENDED_RUNS_MAX)) this.#drop(old.job);
  }

  /** Forgets a job that its datacenter recorded as finished and then forgot, whatever its group says here. */
  #forget(job: string): void {
    this.#context.proposals.forget(runGroup(job));
    this.#clocks.forget(job);
    this.#drop(job);
  }

  #drop(job: string): void {
    this.#runs.delete(job);
    this.#workflows.forget(job);
  }
}
