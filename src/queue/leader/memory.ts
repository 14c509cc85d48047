/**
 * In-memory state of a leader for the length of one epoch: ready tasks, leases, nodes. All of it is derived from the
 * database and discarded with the leadership.
 */

import { performance } from "node:perf_hooks";
import { QUEUE_LIMITS } from "../../core/queue/defaults.ts";
import { QueueGates } from "../../core/queue/gates.ts";
import { Lanes, type ReadyTask } from "../../core/queue/lanes.ts";
import type { NodeProfile, Placement } from "../../core/queue/placement.ts";
import type { EventType, TaskState } from "../../core/queue/states.ts";
import type { Log } from "../../host/ports/log.ts";
import type { NodeRegistration } from "../api/types.ts";
import type { Feed } from "./feed.ts";
import type { QueueMetrics } from "./metrics.ts";

/** A timer this late means that the process was paused, and received nothing meanwhile. */
export const STOOD_STILL_MS = 1_000;

export interface Lease {
  readonly taskId: number;
  readonly token: string;
  readonly nodeId: string;
  readonly lane: string;
  readonly queue: string;
  readonly priority: number;
  readonly attempt: number;
  readonly placement: Placement | null;
  /** The claimed task; undefined for leases that this leader inherited. */
  readonly task: ReadyTask | undefined;
  /** Renewals under way: a holder that asked in time is not silent, however long the database takes. */
  renewing: number;
  expiresAt: number;
}

export interface KnownNode {
  readonly registration: NodeRegistration;
  readonly profile: NodeProfile;
  /** Revoked leases that the node has not been notified of. */
  readonly revoked: string[];
  readonly runningByLane: Map<string, number>;
  wake: (() => void) | undefined;
  /** How often its open requests were abandoned: grants to one of them go back. */
  asksForgotten: number;
  /** The last request that listed its leases. */
  heldNamed: number;
  /** Time of its last call, on this process's clock. */
  lastSeenAt: number;
  /** When its connection closed; undefined after it has called again. */
  droppedAt: number | undefined;
}

interface Transition {
  readonly taskId: number;
  readonly eventType: EventType;
  readonly from: TaskState | null;
  readonly to: TaskState;
  readonly nodeId: string | null;
  readonly attempt: number;
}

export class LeaderMemory {
  readonly lanes = new Lanes({
    tasksMax: QUEUE_LIMITS.laneTasksMax,
    refillBelow: QUEUE_LIMITS.laneRefillBelow,
  });
  /** Counts every assigned task, and by `dropLease` its end. */
  readonly gates = new QueueGates();
  readonly leases = new Map<string, Lease>();
  readonly nodes = new Map<string, KnownNode>();
  /** Some task waits for another: only then can finished tasks have dependents. */
  dependenciesOpen = false;
  readonly #feed: Feed;
  readonly #log: Log;
  readonly #metrics: QueueMetrics;
  readonly #epoch: number;

  constructor(options: { epoch: number; feed: Feed; log: Log; metrics: QueueMetrics }) {
    this.#epoch = options.epoch;
    this.#feed = options.feed;
    this.#log = options.log;
    this.#metrics = options.metrics;
  }

  addLease(lease: Lease): void {
    this.leases.set(lease.token, lease);
    const node = this.nodes.get(lease.nodeId);
    if (node === undefined || lease.placement?.max_parallel_per_node === undefined) return;
    node.runningByLane.set(lease.lane, (node.runningByLane.get(lease.lane) ?? 0) + 1);
  }

  dropLease(token: string): Lease | undefined {
    const lease = this.leases.get(token);
    if (lease === undefined) return undefined;
    this.leases.delete(token);
    this.gates.released(lease.queue);
    if (lease.placement?.max_parallel_per_node === undefined) return lease;
    const running = this.nodes.get(lease.nodeId)?.runningByLane;
    const count = running?.get(lease.lane);
    if (count !== undefined) running?.set(lease.lane, Math.max(0, count - 1));
    return lease;
  }

  /** Revokes a lease: notifies its holder, wakes its watch. */
  revoke(token: string): void {
    const lease = this.dropLease(token);
    const node = lease === undefined ? undefined : this.nodes.get(lease.nodeId);
    if (node === undefined) return;
    node.revoked.push(token);
    node.wake?.();
  }

  /** This process was paused and received nothing: that time does not count against lease holders. */
  excuse(ms: number): void {
    for (const lease of this.leases.values()) lease.expiresAt += ms;
  }

  addNode(registration: NodeRegistration, lastSeenAt: number = performance.now()): KnownNode {
    const known = this.nodes.get(registration.node_id);
    const node: KnownNode = {
      registration,
      profile: {
        nodeId: registration.node_id,
        executors: registration.executor_types,
        capabilities: registration.capabilities,
      },
      revoked: [],
      runningByLane: new Map(),
      wake: undefined,
      asksForgotten: 0,
      heldNamed: known?.registration.run === registration.run ? known.heldNamed : 0,
      lastSeenAt,
      droppedAt: undefined,
    };
    known?.wake?.();
    this.nodes.set(registration.node_id, node);
    for (const lease of this.leases.values()) {
      if (lease.nodeId !== registration.node_id) continue;
      if (lease.placement?.max_parallel_per_node === undefined) continue;
      node.runningByLane.set(lease.lane, (node.runningByLane.get(lease.lane) ?? 0) + 1);
    }
    return node;
  }

  seen(nodeId: string): void {
    const node = this.nodes.get(nodeId);
    if (node === undefined) return;
    node.lastSeenAt = performance.now();
    node.droppedAt = undefined;
  }

  /** Logs a committed transition and sends it to followers. */
  moved(transition: Transition): void {
    this.#metrics.transition(transition.eventType, transition.to);
    if (this.#log.enabled("info")) {
      this.#log.event("info", `task.${transition.eventType}`, {
        task_id: String(transition.taskId),
        old_state: transition.from,
        new_state: transition.to,
        worker: transition.nodeId,
        attempt: transition.attempt,
        epoch: this.#epoch,
      });
    }
    this.notify(transition);
  }

  /** Records a rejected transition, which changed nothing. */
  refused(event: EventType, taskId: string, nodeId: string, attempt: number | undefined): void {
    this.#log.event("warn", `task.${event}`, {
      task_id: taskId,
      worker: nodeId,
      attempt,
      epoch: this.#epoch,
    });
  }

  /** Notifies followers only: for events that change no state. */
  notify(transition: Transition): void {
    if (!this.#feed.watched) return;
    this.#feed.publish({
      kind: "transition",
      task_id: String(transition.taskId),
      event_type: transition.eventType,
      old_state: transition.from,
      new_state: transition.to,
      node_id: transition.nodeId,
      attempt_id: transition.attempt,
    });
  }
}

/** Converts a database row of lane-load, or of a statement that made a task ready. */
export function readyTask(row: Readonly<Record<string, unknown>>, inlineMax: number): ReadyTask {
  const input = row["input"];
  const text = typeof input === "string" && "waited_ms" in row ? input : undefined;
  const inline = text ?? ("waited_ms" in row ? undefined : (JSON.stringify(input) ?? "null"));
  return {
    id: Number(row["id"]),
    executor: String(row["executor"]),
    queue: String(row["queue"]),
    priority: Number(row["priority"]),
    attempt: Number(row["attempt_id"]),
    placement: row["placement_constraints"] as Placement | null,
    dependent: row["dependent"] === true,
    timeoutMs: row["attempt_timeout_ms"] == null ? null : Number(row["attempt_timeout_ms"]),
    input: inline !== undefined && inline.length <= inlineMax ? inline : undefined,
    readyAt: performance.now() - Number(row["waited_ms"] ?? 0),
  };
}
