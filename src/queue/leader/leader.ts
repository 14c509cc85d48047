/**
 * One leadership: from the acquisition of an epoch to its end. The single writer of task state.
 * (TQ-2)
 *
 *     clients ──► submit writer ──┐                      ┌── finish writer ◄── reports, renewals
 *                                 ├─► memory (lanes, ────┤
 *     workers ──► grant writer ◄──┘   leases, nodes)     └── housekeeping: expiry, due times,
 *                                                            dependencies, schedules, pruning
 *
 * Three writers work side by side, each in order, each fenced by the epoch. They share the memory, which a new leader
 * builds from the database before it answers anyone.
 */

import { performance } from "node:perf_hooks";
import { Random } from "../../core/base/random.ts";
import { QUEUE_LIMITS } from "../../core/queue/defaults.ts";
import { QueueError } from "../../core/queue/errors.ts";
import { refusal } from "../../core/queue/placement.ts";
import type { QueueSettings } from "../../core/queue/settings.ts";
import type { TaskState } from "../../core/queue/states.ts";
import type { Background } from "../../host/background.ts";
import type { Log } from "../../host/ports/log.ts";
import { startTimer } from "../../host/timer.ts";
import type {
  AcquireAsk,
  ExecutionHistory,
  Grant,
  LeaderPort,
  LeaseRef,
  NewGraph,
  NewTask,
  NodeRegistration,
  Progress,
  Report,
  SubmittedGraph,
} from "../api/types.ts";
import { type Database, sqlArray } from "../store/database.ts";
import { FencedWriter, notLeader } from "../store/fenced-writer.ts";
import { Arrivals } from "./arrivals.ts";
import type { Feed } from "./feed.ts";
import { FileWriter } from "./file-writer.ts";
import { FinishWriter, isExpired } from "./finish-writer.ts";
import { GrantWriter } from "./grant-writer.ts";
import { Housekeeping } from "./housekeeping.ts";
import { loadMemory } from "./load-memory.ts";
import { type KnownNode, LeaderMemory, type Lease, STOOD_STILL_MS } from "./memory.ts";
import type { QueueMetrics } from "./metrics.ts";
import { Schedules } from "./schedules.ts";
import { type SubmitAnswer, SubmitWriter } from "./submit-writer.ts";
import { WordWriter } from "./word-writer.ts";

/** Recorded for a task whose node disappeared. */
const LOST = "ended while it ran this task";

const OVERDUE = "it was not done within its time limit";

/** Grace period for a node to reconnect. */
const DISCONNECT_GRACE_MS = 5_000;
/** A node seen within this many heartbeats, and still connected, is alive. */
const HEARTBEATS_TO_LIVE = 2;

interface LeaderOptions {
  readonly database: Database;
  readonly epoch: number;
  readonly run: string;
  readonly nodeId: string;
  readonly settings: QueueSettings;
  readonly feed: Feed;
  readonly log: Log;
  readonly background: Background;
  readonly metrics: QueueMetrics;
  readonly onFenced: () => void;
  /** First leadership of this process: tasks running in an embedded database were left by another process. */
  readonly firstOfProcess: boolean;
}

export class Leader implements LeaderPort {
  readonly epoch: number;
  readonly writer: FencedWriter;
  readonly memory: LeaderMemory;
  readonly submits: SubmitWriter;
  readonly files: FileWriter;
  readonly schedules: Schedules;
  readonly #options: LeaderOptions;
  readonly #grants: GrantWriter;
  readonly #results: FinishWriter;
  readonly #housekeeping: Housekeeping;
  readonly #arrivals: Arrivals;
  readonly #words: WordWriter;

  constructor(options: LeaderOptions) {
    this.#options = options;
    this.epoch = options.epoch;
    const { settings, metrics, nodeId } = options;
    const { taskLeaseMs } = settings;
    const writer = new FencedWriter(options);
    const memory = new LeaderMemory(options);
    this.writer = writer;
    this.memory = memory;
    this.files = new FileWriter(writer);
    this.#words = new WordWriter({ writer, memory, feed: options.feed });
    this.#grants = new GrantWriter({ writer, memory, metrics, taskLeaseMs });
    const onReady = (): void => this.#grants.dispatch();
    const onWaiting = (dependsOn: readonly number[]): void => {
      if (dependsOn.length > 0) {
        memory.dependenciesOpen = true;
        this.#housekeeping.resolveSoon(dependsOn);
      }
      this.#housekeeping.promoteWithin(0);
    };
    this.submits = new SubmitWriter({
      writer,
      memory,
      nodeId,
      onReady,
      onWaiting,
    });
    this.#results = new FinishWriter({
      writer,
      memory,
      metrics,
      taskLeaseMs,
      retry: { baseMs: settings.retryBaseMs, maxMs: settings.retryMaxMs },
      random: new Random(`${options.run}/${options.epoch}`),
      onReady,
      onFinished: (ids) => {
        if (memory.dependenciesOpen) this.#housekeeping.resolveSoon(ids);
        onReady();
      },
      onDelayed: (delayMs) => this.#housekeeping.promoteWithin(delayMs),
    });
    const { log } = options;
    const { submits } = this;
    const { maxAttempts } = settings;
    this.schedules = new Schedules({ writer, memory, submits, maxAttempts, log, onReady });
    this.#housekeeping = new Housekeeping({
      writer,
      memory,
      settings,
      log,
      schedules: this.schedules,
      results: this.#results,
      onReady,
      onSilent: (nodeIds) => {
        for (const nodeId of nodeIds) this.#forget(memory.nodes.get(nodeId));
      },
      onOverdue: async (ids) => {
        await this.cancel(ids, OVERDUE);
      },
    });
    this.#arrivals = new Arrivals({
      database: options.database,
      writer,
      memory,
      onReady,
      onWaiting,
      onMissed: () => this.pollAgain(),
    });
  }

  /** The lock on the data directory proves that the holder of these leases is dead. */
  get #abandoned(): boolean {
    return this.#options.database.kind === "embedded" && this.#options.firstOfProcess;
  }

  /** Builds the memory from the database, then begins to serve. Ends early when the leadership does. */
  async begin(): Promise<void> {
    const { taskLeaseMs } = this.#options.settings;
    await loadMemory(this.memory, this.writer, { taskLeaseMs, abandoned: this.#abandoned });
    if (this.#abandoned) await this.#returnAllLeases();
    if (this.writer.ended) throw notLeader();
    this.#housekeeping.start();
    this.#arrivals.start();
    this.#grants.dispatch();
  }

  /** Stops writing at once; rejects waiting requests. */
  end(): void {
    this.writer.end();
    this.#housekeeping.stop();
    this.#arrivals.stop();
    this.#grants.end(notLeader());
    for (const node of this.memory.nodes.values()) node.wake?.();
  }

  /** Assigns tasks after a change that may allow more. */
  dispatch(): void {
    this.#grants.dispatch();
  }

  submit(tasks: readonly NewTask[]): Promise<readonly SubmitAnswer[]> {
    return this.submits.submit(tasks);
  }

  submitGraph(graph: NewGraph): Promise<SubmittedGraph> {
    return this.submits.submitGraph(graph);
  }

  /** Cancels unfinished tasks; returns the ids it changed. Idempotent. */
  async cancel(ids: readonly number[], reason: string): Promise<readonly number[]> {
    const { memory } = this;
    for (const id of ids) memory.lanes.takeById(id, () => true);
    // On the grant writer, so that it is ordered with claims of the same task.
    const { row } = await this.writer.write("grant", "cancel", [sqlArray(ids), reason]);
    const cancelled = row["cancelled"] as readonly {
      readonly id: number;
      readonly old_state: TaskState;
      readonly lease_id: string | null;
    }[];
    for (const { id, old_state: from, lease_id: token } of cancelled) {
      const lease = token === null ? undefined : memory.leases.get(token);
      memory.moved({
        taskId: id,
        eventType: "cancelled",
        from,
        to: "CANCELLED",
        nodeId: lease?.nodeId ?? null,
        attempt: lease?.attempt ?? 1,
      });
      if (token !== null) memory.revoke(token);
    }
    if (memory.dependenciesOpen) this.#housekeeping.resolveSoon(ids);
    return cancelled.map(({ id }) => id);
  }

  /** Polls for tasks that became ready, or whose dependencies settled, without this memory. */
  pollAgain(): void {
    this.memory.dependenciesOpen = true;
    this.#housekeeping.resolveAllSoon();
    this.#housekeeping.promoteWithin(0);
    this.#housekeeping.pollLanesSoon();
  }

  /** Requeues every lease that has expired by the database's clock, found by a full scan. */
  async recoverStaleLeases(): Promise<readonly number[]> {
    const rows = await this.writer.read("running", []);
    const now = performance.now();
    const expired = rows.filter((row) => {
      const lease = this.memory.leases.get(String(row["lease_id"]));
      return lease === undefined ? Number(row["expires_in_ms"]) <= 0 : isExpired(lease, now);
    });
    const moved = await this.#results.requeue(
      expired.map((row) => ({
        task_id: String(row["id"]),
        lease_token: String(row["lease_id"]),
        reason: "expired",
        delayMs: 0,
        error: problem(`node ${row["node_id"]} did not renew its lease`),
      })),
    );
    return moved.map(({ id }) => id);
  }

  // Operations that workers request of the leader.

  async register(node: NodeRegistration): Promise<void> {
    this.#refuseSecond(node);
    const { row } = await this.writer.write("control", "node-register", [
      node.node_id,
      node.run,
      node.role,
      node.url,
      sqlArray(node.executor_types),
      JSON.stringify(node.capabilities),
      node.max_parallel,
    ]);
    const known = this.memory.nodes.get(node.node_id);
    const restarted = row["old_run"] !== null && row["old_run"] !== node.run;
    this.#forget(known);
    this.memory.addNode(node);
    // The process that held these leases is dead: its work is free now, not after a whole lease.
    if (restarted) await this.#returnLeases(node.node_id, "lost");
    this.#options.log.event("info", "node.registered", {
      node_id: node.node_id,
      executors: node.executor_types,
    });
  }

  async heartbeat(nodeId: string, run: string): Promise<boolean> {
    if (this.memory.nodes.get(nodeId)?.registration.run !== run) return false;
    this.memory.seen(nodeId);
    return this.#housekeeping.heartbeat(nodeId, run);
  }

  drain(nodeId: string, run: string): Promise<void> {
    const node = this.memory.nodes.get(nodeId);
    if (node?.registration.run === run) this.#grants.forget(node);
    return Promise.resolve();
  }

  async deregister(nodeId: string, run: string): Promise<void> {
    const node = this.memory.nodes.get(nodeId);
    if (node !== undefined && node.registration.run !== run) return;
    if (node !== undefined) {
      this.#grants.forget(node);
      node.wake?.();
      this.memory.nodes.delete(nodeId);
    }
    await this.#returnLeases(nodeId, "released");
    await this.writer.write("control", "node-remove", [nodeId, run]);
    this.#options.log.event("info", "node.left", { node_id: nodeId });
  }

  async acquire(ask: AcquireAsk): Promise<readonly Grant[]> {
    const node = this.#node(ask.nodeId, ask.run);
    if (ask.held !== undefined) {
      // Superseded: the worker has sent another request and may hold more by now.
      if (ask.held.question <= node.heldNamed) return [];
      node.heldNamed = ask.held.question;
      await this.#returnUndelivered(node, new Set(ask.held.tokens));
    }
    const max = Math.min(ask.max, QUEUE_LIMITS.claimTasksMax);
    if (max === 0) return [];
    const { asksForgotten } = node;
    const waitMs = Math.min(ask.waitMs, QUEUE_LIMITS.claimWaitMsMax);
    const grants = await this.#grants.acquire(node, max, waitMs);
    if (node.asksForgotten === asksForgotten) return grants;
    await this.release(ask.nodeId, grants, "undelivered");
    return [];
  }

  acquireTask(nodeId: string, run: string, id: number): Promise<readonly Grant[]> {
    const node = this.#node(nodeId, run);
    return this.#grants.acquireTask(
      node,
      id,
      (task) => refusal(task.executor, task.placement, node.profile) === undefined,
    );
  }

  findExecutable(nodeId: string, run: string, count: number): readonly string[] {
    const node = this.#node(nodeId, run);
    return this.memory.lanes.peek(node.profile, count).map((task) => String(task.id));
  }

  async watch(nodeId: string, run: string, waitMs: number): Promise<readonly string[]> {
    const node = this.#node(nodeId, run);
    if (node.revoked.length === 0) {
      node.wake?.();
      await new Promise<void>((resolve) => {
        const timer = startTimer(Math.min(waitMs, QUEUE_LIMITS.claimWaitMsMax), resolve);
        node.wake = () => {
          timer.cancel();
          resolve();
        };
      });
      node.wake = undefined;
    }
    return node.revoked.splice(0);
  }

  started(_nodeId: string, leases: readonly LeaseRef[]): Promise<void> {
    return this.#results.started(leases);
  }

  report(nodeId: string, reports: readonly Report[]): Promise<readonly string[]> {
    this.memory.seen(nodeId);
    return this.#results.report(nodeId, reports);
  }

  renew(nodeId: string, leases: readonly LeaseRef[]): Promise<readonly string[]> {
    this.memory.seen(nodeId);
    return this.#results.renew(nodeId, leases);
  }

  async release(
    _nodeId: string,
    leases: readonly LeaseRef[],
    reason: "released" | "undelivered" = "released",
  ): Promise<void> {
    await this.#results.requeue(
      leases.map(({ task_id, lease_token }) => ({
        ...{ task_id, lease_token, reason },
        ...{ delayMs: 0, error: null },
      })),
    );
  }

  progress(_nodeId: string, messages: readonly Progress[]): Promise<void> {
    return this.#words.put(messages);
  }

  history(lease: LeaseRef): Promise<ExecutionHistory> {
    return this.#words.history(lease);
  }

  #node(nodeId: string, run: string): KnownNode {
    const node = this.memory.nodes.get(nodeId);
    if (node === undefined || node.registration.run !== run) {
      throw new QueueError(
        "NODE_UNKNOWN",
        `node "${nodeId}" is not registered with this leader: register_node first`,
      );
    }
    this.memory.seen(nodeId);
    return node;
  }

  /**
   * The connection of a waiting node has closed: it gets a grace period to reconnect, then its work is free. That
   * detects a killed process long before its leases expire. (TQ-35)
   */
  disconnected(nodeId: string, run: string): void {
    const node = this.memory.nodes.get(nodeId);
    if (node === undefined || node.registration.run !== run || this.writer.ended) return;
    node.droppedAt = performance.now();
    this.#waitFor(node, node.droppedAt);
  }

  #waitFor(node: KnownNode, droppedAt: number): void {
    const { background, log } = this.#options;
    const { node_id: nodeId } = node.registration;
    const dueAt = performance.now() + DISCONNECT_GRACE_MS;
    background.after(`grace of node ${nodeId}`, DISCONNECT_GRACE_MS, async () => {
      // The node may have been declared dead meanwhile, and is then unknown.
      const known = this.memory.nodes.get(nodeId) ?? node;
      if (known !== node || node.droppedAt !== droppedAt || this.writer.ended) return;
      // A reconnect may be among the unread calls.
      if (performance.now() - dueAt > STOOD_STILL_MS) return this.#waitFor(node, droppedAt);
      log.event("warn", "node.disconnected", { node_id: nodeId, grace_ms: DISCONNECT_GRACE_MS });
      this.#forget(node);
      await this.#returnLeases(nodeId, "lost");
    });
  }

  /** Two live processes with one id would take each other's work forever. */
  #refuseSecond(node: NodeRegistration): void {
    const known = this.memory.nodes.get(node.node_id);
    if (known === undefined || known.registration.run === node.run) return;
    const liveMs = HEARTBEATS_TO_LIVE * this.#options.settings.heartbeatMs;
    const silentMs = performance.now() - known.lastSeenAt;
    if (known.droppedAt !== undefined || silentMs >= liveMs) return;
    this.#options.log.event("error", "node.refused", {
      node_id: node.node_id,
      url: node.url,
      live_url: known.registration.url,
    });
    throw new QueueError(
      "CONFLICT",
      `another live process has the node id "${node.node_id}" (at ${known.registration.url}): ` +
        "give every process its own --node-id",
    );
  }

  /** Answers open requests of a node with nothing. */
  #forget(node: KnownNode | undefined): void {
    if (node !== undefined) this.#grants.forget(node);
  }

  /**
   * A worker got no answer to a request, from this leader or the previous one, and lists its leases: anything else
   * granted to it never arrived. It did not run, so that costs no attempt. (TQ-34)
   */
  async #returnUndelivered(node: KnownNode, held: ReadonlySet<string>): Promise<void> {
    this.#grants.forget(node);
    const { node_id: nodeId } = node.registration;
    await this.#giveBack(
      [...this.memory.leases.values()].filter(
        (lease) => lease.nodeId === nodeId && !held.has(lease.token),
      ),
      "undelivered",
    );
  }

  async #returnLeases(nodeId: string, reason: "released" | "lost"): Promise<void> {
    await this.#giveBack(
      [...this.memory.leases.values()].filter((lease) => lease.nodeId === nodeId),
      reason,
    );
  }

  /** The process that held them all is dead, and with it the only worker. */
  async #returnAllLeases(): Promise<void> {
    await this.#giveBack([...this.memory.leases.values()], "lost");
  }

  async #giveBack(
    leases: readonly Lease[],
    reason: "released" | "lost" | "undelivered",
  ): Promise<void> {
    await this.#results.requeue(
      leases.map((lease) => ({
        task_id: String(lease.taskId),
        lease_token: lease.token,
        reason,
        delayMs: 0,
        error: reason === "lost" ? problem(`node ${lease.nodeId} ${LOST}`) : null,
      })),
    );
  }
}

function problem(message: string): string {
  return JSON.stringify({ message });
}
