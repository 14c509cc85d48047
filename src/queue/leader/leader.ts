/**
 * One leadership: from the acquisition of an epoch to its end. The single writer of task state.
 * (TQ-2)
 *
 *     clients ──► submit writer ──┐                      ┌── finish writer ◄── reports, renewals
 *                                 ├─► memory (lanes, ────┤
 *     workers ──► grant writer ◄──┘   leases, nodes)     └── housekeeping: expiry, due times,
 *                                                            dependencies, schedules, pruning
 *
 * Three writers work side by side, each in order, each fenced by the epoch. What they hold in
 * common is the memory, which a new leader builds from the database before it answers anyone.
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
  Grant,
  LeaderPort,
  LeaseRef,
  NewTask,
  NodeRegistration,
  Progress,
  Report,
  TaskCounts,
} from "../api/types.ts";
import { type Database, sqlArray } from "../store/database.ts";
import { FencedWriter, notLeader } from "../store/fenced-writer.ts";
import type { Feed } from "./feed.ts";
import { FinishWriter } from "./finish-writer.ts";
import { GrantWriter } from "./grant-writer.ts";
import { Housekeeping } from "./housekeeping.ts";
import { type KnownNode, LeaderMemory, type Lease, readyTask } from "./memory.ts";
import type { QueueMetrics } from "./metrics.ts";
import { type SubmitAnswer, SubmitWriter } from "./submit-writer.ts";

/** What is recorded of a task whose node went away without a word. */
const LOST = "ended while it ran this task";

export interface LeaderOptions {
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
}

export class Leader implements LeaderPort {
  readonly epoch: number;
  readonly writer: FencedWriter;
  readonly memory: LeaderMemory;
  readonly submits: SubmitWriter;
  readonly #options: LeaderOptions;
  readonly #grants: GrantWriter;
  readonly #results: FinishWriter;
  readonly #housekeeping: Housekeeping;

  constructor(options: LeaderOptions) {
    this.#options = options;
    this.epoch = options.epoch;
    const { settings, metrics, nodeId } = options;
    const { taskLeaseMs } = settings;
    const writer = new FencedWriter(options);
    const memory = new LeaderMemory(options);
    this.writer = writer;
    this.memory = memory;
    this.#grants = new GrantWriter({ writer, memory, metrics, taskLeaseMs });
    const onReady = (): void => this.#grants.dispatch();
    this.submits = new SubmitWriter({
      writer,
      memory,
      nodeId,
      onReady,
      onWaiting: (dependsOn) => {
        if (dependsOn.length > 0) {
          memory.dependenciesOpen = true;
          this.#housekeeping.resolveSoon(dependsOn);
        }
        this.#housekeeping.promoteWithin(0);
      },
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
    this.#housekeeping = new Housekeeping({
      writer,
      memory,
      settings,
      log: options.log,
      submits: this.submits,
      results: this.#results,
      onReady,
    });
  }

  /** Builds the memory from the database, then begins to serve. Ends early when the leadership does. */
  async begin(): Promise<void> {
    await this.#load();
    if (this.#options.database.kind === "embedded") await this.#returnAllLeases();
    if (this.writer.ended) throw notLeader();
    this.#housekeeping.start();
    this.#grants.dispatch();
  }

  get counts(): TaskCounts {
    return { ...this.memory.counts };
  }

  /** Stops writing at once; whoever waits is sent away. */
  end(): void {
    this.writer.end();
    this.#housekeeping.stop();
    this.#grants.end(notLeader());
    for (const node of this.memory.nodes.values()) node.wake?.();
  }

  submit(tasks: readonly NewTask[]): Promise<readonly SubmitAnswer[]> {
    return this.submits.submit(tasks);
  }

  /** Cancels what is not terminal; returns the ids it changed. Idempotent. */
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
        to: "CANCELED",
        nodeId: lease?.nodeId ?? null,
        attempt: lease?.attempt ?? 1,
      });
      if (token !== null) memory.revoke(token);
    }
    if (memory.dependenciesOpen) this.#housekeeping.resolveSoon(ids);
    return cancelled.map(({ id }) => id);
  }

  /** Dead letters go back to the queue with fresh attempts. */
  async revive(ids: readonly number[]): Promise<readonly number[]> {
    const { row, repeated } = await this.writer.write("grant", "revive", [sqlArray(ids)]);
    const revived = row["revived"] as readonly Record<string, unknown>[];
    for (const one of revived) {
      const task = readyTask(one, QUEUE_LIMITS.inlineInputBytesMax);
      if (one["ready"] === true) this.memory.lanes.add(String(one["lane"]), task);
      else this.memory.dependenciesOpen = true;
      this.memory.moved({
        taskId: task.id,
        eventType: "requeued",
        from: one["old_state"] as TaskState,
        to: "QUEUED",
        nodeId: null,
        attempt: task.attempt,
      });
    }
    if (repeated) this.#housekeeping.pollLanesSoon();
    this.#grants.dispatch();
    return revived.map((one) => Number(one["id"]));
  }

  /** Every lease that has expired by the database's clock, found by a full look. */
  async recoverStaleLeases(): Promise<readonly number[]> {
    const rows = await this.writer.read("running", []);
    const expired = rows.filter((row) => Number(row["expires_in_ms"]) <= 0);
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

  async putSchedule(id: string, cron: string, template: unknown): Promise<void> {
    await this.#housekeeping.putSchedule(id, cron, template);
  }

  async removeSchedule(id: string): Promise<boolean> {
    const { row, repeated } = await this.writer.write("control", "schedule-remove", [id]);
    return repeated || Number(row["changed"]) > 0;
  }

  // What workers ask of the leader.

  async register(node: NodeRegistration): Promise<void> {
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
    if (known !== undefined) this.#grants.forget(known);
    this.memory.addNode(node);
    // The process that held these leases is gone: its work is free now, not after a whole lease.
    if (restarted) await this.#returnLeases(node.node_id, "lost");
    this.#options.log.event("info", "node.registered", {
      node_id: node.node_id,
      executors: node.executor_types,
    });
  }

  async heartbeat(nodeId: string, run: string): Promise<boolean> {
    if (this.memory.nodes.get(nodeId)?.registration.run !== run) return false;
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

  acquire(ask: {
    nodeId: string;
    run: string;
    max: number;
    waitMs: number;
  }): Promise<readonly Grant[]> {
    const max = Math.min(ask.max, QUEUE_LIMITS.claimTasksMax);
    const waitMs = Math.min(ask.waitMs, QUEUE_LIMITS.claimWaitMsMax);
    return this.#grants.acquire(this.#node(ask.nodeId, ask.run), max, waitMs);
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
    return this.#results.report(nodeId, reports);
  }

  renew(nodeId: string, leases: readonly LeaseRef[]): Promise<readonly string[]> {
    return this.#results.renew(nodeId, leases);
  }

  async release(_nodeId: string, leases: readonly LeaseRef[]): Promise<void> {
    await this.#results.requeue(
      leases.map((lease) => ({ ...lease, reason: "released", delayMs: 0, error: null })),
    );
  }

  progress(_nodeId: string, messages: readonly Progress[]): Promise<void> {
    for (const { lease_token: token, task_id: taskId, kind, message } of messages) {
      if (this.memory.leases.has(token))
        this.#options.feed.publish({ kind, task_id: taskId, message });
    }
    return Promise.resolve();
  }

  #node(nodeId: string, run: string): KnownNode {
    const node = this.memory.nodes.get(nodeId);
    if (node === undefined || node.registration.run !== run) {
      throw new QueueError(
        "NODE_UNKNOWN",
        `node "${nodeId}" is not registered with this leader: register_node first`,
      );
    }
    return node;
  }

  async #returnLeases(nodeId: string, reason: "released" | "lost"): Promise<void> {
    await this.#giveBack(
      [...this.memory.leases.values()].filter((lease) => lease.nodeId === nodeId),
      reason,
    );
  }

  /** The process that held them all is gone, and with it the only worker there was. */
  async #returnAllLeases(): Promise<void> {
    await this.#giveBack([...this.memory.leases.values()], "lost");
  }

  async #giveBack(leases: readonly Lease[], reason: "released" | "lost"): Promise<void> {
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

  async #load(): Promise<void> {
    const now = performance.now();
    const [running, nodes, counts, lanes, dependencies] = await Promise.all([
      this.writer.read("running", []),
      this.writer.read("node-list", []),
      this.writer.read("counts", []),
      this.writer.read("lanes", []),
      this.writer.read("dependencies-open", []),
    ]);
    for (const row of nodes) this.memory.addNode(row as unknown as NodeRegistration);
    for (const row of running) {
      this.memory.addLease({
        taskId: Number(row["id"]),
        token: String(row["lease_id"]),
        nodeId: String(row["node_id"]),
        lane: String(row["lane"]),
        attempt: Number(row["attempt_id"]),
        task: undefined,
        expiresAt: now + Number(row["expires_in_ms"]),
      });
    }
    for (const row of counts) this.memory.counts[row["state"] as TaskState] += Number(row["count"]);
    for (const row of lanes) this.memory.lanes.reopen(String(row["lane"]));
    this.memory.dependenciesOpen = Number(dependencies[0]?.["count"] ?? 0) > 0;
  }
}

function problem(message: string): string {
  return JSON.stringify({ message });
}
