/**
 * The leader's grant writer: workers ask, ready tasks are matched to them in order, and the claims of all workers are
 * written in one statement. A worker that asks while nothing is ready waits here and is answered within the commit of
 * the next submit: no notification, no polling delay.
 */

import { randomUUID } from "node:crypto";
import { performance } from "node:perf_hooks";
import { QUEUE_LIMITS } from "../../core/queue/defaults.ts";
import { DatabaseUnavailable, QueueError } from "../../core/queue/errors.ts";
import type { ReadyTask } from "../../core/queue/lanes.ts";
import type { Work } from "../../host/background.ts";
import { startTimer, type Timer } from "../../host/timer.ts";
import type { Grant } from "../api/types.ts";
import { sqlArray, sqlColumn } from "../store/database.ts";
import type { FencedWriter } from "../store/fenced-writer.ts";
import { GroupCommit } from "../store/group-commit.ts";
import { type KnownNode, type LeaderMemory, readyTask } from "./memory.ts";
import type { QueueMetrics } from "./metrics.ts";

interface Ask {
  readonly node: KnownNode;
  readonly max: number;
  readonly timer: Timer;
  readonly resolve: (grants: readonly Grant[]) => void;
  readonly reject: (error: unknown) => void;
}

interface Assignment {
  readonly lane: string;
  readonly task: ReadyTask;
  readonly token: string;
}

interface Claim {
  readonly ask: Pick<Ask, "node" | "resolve" | "reject">;
  readonly assignments: readonly Assignment[];
}

interface GrantWriterOptions {
  readonly writer: FencedWriter;
  readonly memory: LeaderMemory;
  readonly metrics: QueueMetrics;
  readonly taskLeaseMs: number;
}

export class GrantWriter {
  readonly #options: GrantWriterOptions;
  readonly #commit: GroupCommit<Claim>;
  readonly #asks = new Set<Ask>();
  #refilling = false;
  #free: Work | undefined;

  constructor(options: GrantWriterOptions) {
    this.#options = options;
    this.#commit = new GroupCommit({
      write: (batch) => this.#write(batch),
      weigh: (claim) => claim.assignments.length,
      batchMax: QUEUE_LIMITS.commitTasksMax,
      pendingMax: QUEUE_LIMITS.pendingOperationsMax,
      background: options.writer.background,
    });
  }

  acquire(node: KnownNode, max: number, waitMs: number): Promise<readonly Grant[]> {
    return new Promise((resolve, reject) => {
      const timer = startTimer(waitMs, () => {
        this.#asks.delete(ask);
        resolve([]);
      });
      const ask: Ask = { node, max, timer, resolve, reject };
      this.#asks.add(ask);
      this.dispatch();
    });
  }

  /** Claims one named task for a node, if it is ready and may run there. */
  acquireTask(
    node: KnownNode,
    id: number,
    mayRun: (task: ReadyTask) => boolean,
  ): Promise<readonly Grant[]> {
    const taken = this.#options.memory.lanes.takeById(id, mayRun);
    if (taken === undefined) return Promise.resolve([]);
    this.#options.memory.gates.taken(taken.task.queue, performance.now());
    const assignments = [{ ...taken, token: randomUUID() }];
    return new Promise((resolve, reject) =>
      this.#commit.add({ ask: { node, resolve, reject }, assignments }),
    );
  }

  /** Matches waiting workers with ready tasks, oldest request first. */
  dispatch(): void {
    const { lanes, gates } = this.#options.memory;
    for (const ask of this.#asks) {
      if (lanes.size === 0) break;
      const taken = lanes.take({
        node: ask.node.profile,
        count: ask.max,
        now: performance.now(),
        running: (lane) => ask.node.runningByLane.get(lane) ?? 0,
        queueRoom: (queue) => gates.room(queue, performance.now()),
        bytesMax: QUEUE_LIMITS.grantBytesMax,
      });
      if (taken.length === 0) continue;
      this.#asks.delete(ask);
      ask.timer.cancel();
      for (const { task } of taken) gates.taken(task.queue, performance.now());
      this.#commit.add({ ask, assignments: taken.map((one) => ({ ...one, token: randomUUID() })) });
    }
    this.#againWhenFree();
    if (this.#refilling || lanes.lowWindows().length === 0) return;
    this.#options.writer.background.run("refill lanes", () => this.#refill());
  }

  /** Dispatches again when the next start of a rate-limited queue is free. */
  #againWhenFree(): void {
    const { lanes, gates } = this.#options.memory;
    if (this.#free !== undefined || this.#asks.size === 0 || lanes.size === 0) return;
    const at = gates.nextAt(performance.now());
    if (at === null) return;
    const waitMs = Math.max(1, at - performance.now());
    this.#free = this.#options.writer.background.after("wait for a start", waitMs, () => {
      this.#free = undefined;
      this.dispatch();
    });
  }

  /** Ends the leadership: waiting workers must find the next leader. */
  end(error: QueueError): void {
    for (const ask of this.#asks) {
      ask.timer.cancel();
      ask.reject(error);
    }
    this.#asks.clear();
    this.#free?.cancel();
  }

  /** A node left, or sent a new request: answers its open requests with nothing. */
  forget(node: KnownNode): void {
    node.asksForgotten++;
    for (const ask of this.#asks) {
      if (ask.node !== node) continue;
      this.#asks.delete(ask);
      ask.timer.cancel();
      ask.resolve([]);
    }
  }

  /** Refills lanes that run low. One reader at a time; it stops when no lane wants more. */
  async #refill(): Promise<void> {
    const { lanes } = this.#options.memory;
    this.#refilling = true;
    try {
      for (let low = lanes.beginRefill(); low.length > 0; low = lanes.beginRefill()) {
        for (const { lane, priority, after } of low) {
          const limit = QUEUE_LIMITS.laneTasksMax - QUEUE_LIMITS.laneRefillBelow;
          const rows = await this.#options.writer.read("lane-load", [
            lane,
            priority,
            after,
            limit,
            QUEUE_LIMITS.inlineInputBytesMax,
          ]);
          const tasks = rows.map((row) => readyTask(row, QUEUE_LIMITS.inlineInputBytesMax));
          lanes.refill(lane, priority, tasks, rows.length === limit);
        }
        setImmediate(() => this.dispatch());
      }
    } catch (error) {
      if (!(error instanceof QueueError)) throw error;
    } finally {
      this.#refilling = false;
    }
  }

  async #write(batch: readonly Claim[]): Promise<void> {
    let held: ReadonlyMap<string, string>;
    try {
      held = await this.#claim(batch);
    } catch (error) {
      for (const { ask, assignments } of batch) {
        for (const { lane, task } of assignments) this.#unclaimed(lane, task);
        ask.reject(error);
      }
      return this.dispatch();
    }
    const claimed = batch.map((claim) => this.#settle(claim, held));
    // One answer after the other: the inputs of a whole batch may be a gigabyte.
    for (const [index, { ask }] of batch.entries())
      await this.#answer(ask, claimed[index] ?? [], held);
    this.dispatch();
  }

  /**
   * Returns the valid leases, with the key of their execution. (TQ-31) By lease, not by task: one that was read again
   * while its claim was under way may be among the assignments twice.
   */
  async #claim(batch: readonly Claim[]): Promise<ReadonlyMap<string, string>> {
    const { writer } = this.#options;
    const all = batch.flatMap(({ ask, assignments }) =>
      assignments.map(({ task, token }) => ({
        id: task.id,
        attempt: task.attempt,
        token,
        nodeId: ask.node.registration.node_id,
      })),
    );
    const ids = sqlColumn(all, ({ id }) => id);
    const tokens = sqlColumn(all, ({ token }) => token);
    const nodes = sqlColumn(all, ({ nodeId }) => nodeId);
    const attempts = sqlColumn(all, ({ attempt }) => attempt);
    for (let attempt = 0; ; attempt++) {
      try {
        const row = await writer.once("grant", "claim", [
          ids,
          tokens,
          nodes,
          this.#options.taskLeaseMs,
          attempts,
        ]);
        const claimed = listOf(row["ids"]);
        if (claimed.length === all.length) {
          const keys = listOf(row["keys"]);
          const byId = new Map(claimed.map((id, index) => [Number(id), keys[index] ?? ""]));
          return new Map(all.map(({ id, token: lease }) => [lease, byId.get(id) ?? ""]));
        }
        // An earlier attempt may have taken effect without an answer.
        const rows = await writer.read("held", [ids, tokens], "grant");
        return new Map(rows.map((found) => [String(found["lease_id"]), String(found["key"])]));
      } catch (error) {
        if (!(error instanceof DatabaseUnavailable)) throw error;
        // The repeat shows whether it took effect: tasks already claimed are no longer QUEUED.
        await writer.pause("claim", attempt, error);
      }
    }
  }

  /** Returns the assignments with valid leases. */
  #settle({ ask, assignments }: Claim, held: ReadonlyMap<string, string>): readonly Assignment[] {
    return assignments.filter((assignment) => {
      const stands = held.has(assignment.token);
      if (stands) this.#addLease(ask.node.registration.node_id, assignment);
      else this.#unclaimed(assignment.lane, assignment.task);
      return stands;
    });
  }

  async #answer(
    ask: Claim["ask"],
    claimed: readonly Assignment[],
    held: ReadonlyMap<string, string>,
  ): Promise<void> {
    try {
      const large = await this.#fetchInputs(claimed);
      const results = await this.#fetchResults(claimed);
      const grants = claimed.flatMap(({ task, token }): Grant[] => {
        const input = task.input ?? large.get(task.id);
        if (input === undefined) return [];
        return [
          {
            task_id: String(task.id),
            executor: task.executor,
            attempt_id: task.attempt,
            lease_token: token,
            idempotency_key: held.get(token) ?? "",
            timeout_ms: task.timeoutMs,
            input,
            ...results.get(task.id),
          },
        ];
      });
      ask.resolve(grants);
    } catch (error) {
      // These leases are never renewed: they expire, and the tasks are queued again.
      ask.reject(error);
    }
  }

  #addLease(nodeId: string, { lane, task, token }: Assignment): void {
    const { memory, metrics, taskLeaseMs } = this.#options;
    const now = performance.now();
    memory.addLease({
      taskId: task.id,
      token,
      nodeId,
      lane,
      queue: task.queue,
      priority: task.priority,
      attempt: task.attempt,
      placement: task.placement,
      task,
      renewing: 0,
      expiresAt: now + taskLeaseMs,
    });
    memory.moved({
      taskId: task.id,
      eventType: "assigned",
      from: "QUEUED",
      to: "RUNNING",
      nodeId,
      attempt: task.attempt,
    });
    metrics.waited(now - task.readyAt);
  }

  /** The task was not claimed, or changed without this memory: reads its lane again. */
  #unclaimed(lane: string, task: ReadyTask): void {
    this.#options.memory.gates.released(task.queue);
    this.#options.memory.lanes.reopen(lane, task.priority);
  }

  async #fetchInputs(claimed: readonly Assignment[]): Promise<ReadonlyMap<number, string>> {
    const ids: number[] = [];
    for (const { task } of claimed) if (task.input === undefined) ids.push(task.id);
    if (ids.length === 0) return new Map();
    const rows = await this.#options.writer.read("inputs", [sqlArray(ids)], "grant");
    return new Map(rows.map((row) => [Number(row["id"]), String(row["input"])]));
  }

  /** Fetches the results of the tasks' dependencies. */
  async #fetchResults(
    claimed: readonly Assignment[],
  ): Promise<ReadonlyMap<number, Pick<Grant, "dependencies" | "dependencies_missing">>> {
    const dependent = claimed.filter(({ task }) => task.dependent);
    if (dependent.length === 0) return new Map();
    const ids = sqlArray(dependent.map(({ task }) => task.id));
    const parameters = [ids, QUEUE_LIMITS.dependencyBytesMax];
    const rows = await this.#options.writer.read("dependency-results", parameters, "grant");
    return new Map(
      rows.map((row) => [
        Number(row["task_id"]),
        {
          dependencies: String(row["results"]),
          dependencies_missing: row["missing"] as Readonly<Record<string, string>>,
        },
      ]),
    );
  }
}

/** Numbers or keys as one text, which is cheaper to parse than an array; null for none. */
function listOf(column: unknown): readonly string[] {
  return typeof column === "string" ? column.split(",") : [];
}
