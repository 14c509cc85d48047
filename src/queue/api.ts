/**
 * Methods of a node. Every node serves reads from committed state; writes belong to the leader: another node forwards
 * them, an observer rejects them and names the leader. (TQ-5, TQ-40)
 */

import { z } from "zod";
import { QUEUE_LIMITS } from "../core/queue/defaults.ts";
import { QueueError } from "../core/queue/errors.ts";
import { codeRefusal, methodRefusal } from "../core/queue/permissions.ts";
import { ROLES, type Role } from "../core/queue/settings.ts";
import { waitingReason } from "../core/queue/waiting-reason.ts";
import type { AuditEvent } from "../host/ports/audit.ts";
import { parseGraph } from "./api/graph-request.ts";
import type { RpcCall } from "./api/rpc.ts";
import {
  backoffSchema,
  parseParams,
  parseSubmit,
  queueName,
  taskId,
} from "./api/submit-request.ts";
import type { ClusterStatus, QueueActivity, Task } from "./api/types.ts";
import { isSteering, steeringEntry } from "./audit-entries.ts";
import { bulkMethods, reason, taskFilter } from "./bulk-api.ts";
import { fileMethods, listFiles } from "./file-api.ts";
import { inTime } from "./in-time.ts";
import { putLimits, reviveTasks } from "./leader/administration.ts";
import type { Leader } from "./leader/leader.ts";
import type { QueueMetrics } from "./leader/metrics.ts";
import { scheduleMethods } from "./schedule-api.ts";
import type { LeaderRow, Reader } from "./store/reader.ts";
import { type CallContext, type LeaderMethod, workerMethods } from "./worker-api.ts";

/** Interface of the methods to their node. */
export interface ApiHost {
  readonly reader: Reader;
  readonly maxAttempts: number;
  readonly readOnly: boolean;
  /** Whether tokens of clients may submit load tests with files of their own. */
  readonly clientBundles: boolean;
  leader(): Leader | undefined;
  leaderRow(): Promise<LeaderRow | null>;
  forward(call: RpcCall, context: CallContext): Promise<unknown>;
  /** Writes to the audit log. */
  note(event: AuditEvent): void;
  readonly nodeId: string;
  readonly metrics: QueueMetrics;
  become(role: Role): Promise<void>;
}

const limit = (most: number, usual: number) => z.int().min(1).max(most).default(usual);
const oneTask = z
  .object({
    id: taskId.optional(),
    task_id: taskId.optional(),
    reason,
  })
  .transform((params, context) => {
    const id = params.id ?? params.task_id;
    if (id === undefined) context.addIssue({ code: "custom", message: "task_id is missing" });
    return { id: id ?? 0, reason: params.reason };
  });
type Method = (params: unknown, context: CallContext) => Promise<unknown>;

export class QueueApi {
  readonly #host: ApiHost;
  /** Served by the node that receives the call. */
  readonly #reads: Readonly<Record<string, Method>>;
  readonly #writes: Readonly<Record<string, LeaderMethod>>;

  constructor(host: ApiHost) {
    this.#host = host;
    this.#reads = {
      get_task: (params) => this.#getTask(parseParams(oneTask, params).id),
      list_tasks: (params) => this.#listTasks(params),
      task_events: (params) => this.#taskEvents(params),
      task_attempts: (params) => this.#taskAttempts(params),
      task_log: (params) => this.#taskLog(params),
      cluster_status: () => this.clusterStatus(),
      set_role: async (params) => {
        const { role } = parseParams(z.object({ role: z.enum(ROLES) }), params);
        await host.become(role);
        return { role };
      },
      list_queues: () => host.reader.queues(),
      queue_activity: (params, context) => this.#activity(params, context),
      list_schedules: () => host.reader.schedules(),
      task_files: (params) => listFiles(host.reader, params),
    };
    this.#writes = {
      submit_task: (leader, params) => this.#submit(leader, params),
      submit_tasks: (leader, params) => this.#submitMany(leader, params),
      submit_graph: (leader, params) => this.#submitGraph(leader, params),
      cancel_task: (leader, params) => this.#cancel(leader, params),
      requeue_task: (leader, params) => this.#requeue(leader, params),
      put_queue: (leader, params) => putQueue(leader, params),
      ...workerMethods,
      ...fileMethods,
      ...scheduleMethods,
      ...bulkMethods(host.reader),
    };
  }

  /** Performs a call; records control actions with their requester, also when rejected. */
  async handle(call: RpcCall, context: CallContext): Promise<unknown> {
    if (!isSteering(call)) return this.perform(call, context);
    let failure: unknown = null;
    try {
      return await this.perform(call, context);
    } catch (error) {
      failure = error;
      throw error;
    } finally {
      const { nodeId: node } = this.#host;
      const entry = steeringEntry(call, context.requester, { node, error: failure });
      if (entry !== null) this.#host.note(entry);
    }
  }

  async perform(call: RpcCall, context: CallContext): Promise<unknown> {
    const { scope } = context;
    const refusal =
      (scope === null ? null : methodRefusal(scope, call.method)) ??
      codeRefusal(scope, call.params, this.#host.clientBundles);
    if (refusal !== null) throw new QueueError("FORBIDDEN", refusal);
    const read = Object.hasOwn(this.#reads, call.method) ? this.#reads[call.method] : undefined;
    if (read !== undefined) return read(call.params ?? {}, context);
    const write = Object.hasOwn(this.#writes, call.method) ? this.#writes[call.method] : undefined;
    if (write === undefined) {
      const methods = [...Object.keys(this.#reads), ...Object.keys(this.#writes)].sort().join(", ");
      throw new QueueError(
        "METHOD_NOT_FOUND",
        `there is no method "${call.method}"; there are: ${methods}`,
      );
    }
    if (this.#host.readOnly) throw await this.#readOnly();
    const leader = this.#host.leader();
    if (leader !== undefined) return write(leader, call.params ?? {}, context);
    if (context.forwarded) throw new QueueError("NOT_LEADER", "this node does not lead (any more)");
    return this.#host.forward(call, context);
  }

  async clusterStatus(): Promise<ClusterStatus> {
    const [leader, nodes, counts, held] = await Promise.all([
      this.#host.leaderRow(),
      this.#host.reader.nodes(),
      this.#host.reader.counts(),
      this.#host.reader.leases(),
    ]);
    const leases = Object.fromEntries(held);
    if (leader === null || !leader.alive) return { leader: null, nodes, counts, leases };
    const { node_id, epoch, expires_at, url } = leader;
    return { leader: { node_id, epoch, expires_at, url }, nodes, counts, leases };
  }

  async #readOnly(): Promise<QueueError> {
    const leader = await this.#host.leaderRow();
    const where =
      leader?.alive === true
        ? `send it to the leader, ${leader.node_id} at ${leader.url}`
        : "and no node leads now";
    return new QueueError("READ_ONLY", `this node is an observer and takes no writes; ${where}`, {
      data: {
        leader: leader?.alive === true ? { node_id: leader.node_id, url: leader.url } : null,
      },
    });
  }

  async #getTask(id: number): Promise<Task> {
    const [task] = await this.#host.reader.tasks([id]);
    if (task === undefined) throw unknownTask(id);
    const [explained] = await this.#withReasons([task]);
    return explained ?? task;
  }

  /** Adds to every queued task why it waits; reads the data for that once for all of them. */
  async #withReasons(tasks: readonly Task[]): Promise<readonly Task[]> {
    if (!tasks.some(({ state }) => state === "QUEUED")) return tasks;
    const { reader } = this.#host;
    const [nodes, queues, leader, nowMs] = await Promise.all([
      reader.nodes(),
      reader.queues(),
      this.#host.leaderRow(),
      reader.now(),
    ]);
    const able = nodes
      .filter((node) => node.status !== "dead")
      .map(({ node_id: nodeId, executor_types: executors, capabilities }) => {
        return { nodeId, executors, capabilities };
      });
    const paused = new Set(queues.filter((one) => one.paused).map(({ queue }) => queue));
    const facts = { nodes: able, paused, isLed: leader?.alive === true, nowMs };
    return tasks.map((task) =>
      task.state === "QUEUED" ? { ...task, waiting_reason: waitingReason(task, facts) } : task,
    );
  }

  async #listTasks(params: unknown): Promise<unknown> {
    const page = taskFilter.extend({ limit: limit(QUEUE_LIMITS.listTasksMax, 50) });
    const filter = parseParams(page, params);
    const states = filter.states ?? (filter.state === undefined ? undefined : [filter.state]);
    return this.#withReasons(await this.#host.reader.list({ ...filter, states }));
  }

  /** Activity of the leader: any other node asks it, also one that accepts no writes. */
  async #activity(params: unknown, context: CallContext): Promise<QueueActivity> {
    const schema = z.object({ span: z.enum(["hour", "day"]).default("hour") });
    const { span } = parseParams(schema, params);
    if (this.#host.leader() !== undefined)
      return { node_id: this.#host.nodeId, windows: this.#host.metrics.activity.windows(span) };
    if (context.forwarded) throw new QueueError("NOT_LEADER", "this node does not lead (any more)");
    const answer = await this.#host.forward(
      { method: "queue_activity", params: { span } },
      context,
    );
    return answer as QueueActivity;
  }

  async #taskEvents(params: unknown): Promise<unknown> {
    const schema = z.object({
      after: z.int().min(0).default(0),
      limit: limit(QUEUE_LIMITS.eventsListedMax, QUEUE_LIMITS.eventsListedMax),
    });
    const { id } = parseParams(oneTask, params);
    const { after, limit: most } = parseParams(schema, params);
    const events = await this.#host.reader.events(id, after, most);
    if (events.length === 0 && (await this.#host.reader.tasks([id])).length === 0)
      throw unknownTask(id);
    return events;
  }

  async #taskAttempts(params: unknown): Promise<unknown> {
    const { id } = parseParams(oneTask, params);
    const attempts = await this.#host.reader.attempts(id);
    if (attempts.length === 0) await this.#getTask(id);
    return attempts;
  }

  async #taskLog(params: unknown): Promise<unknown> {
    const number = z.int().min(0);
    const schema = z.object({
      attempt: number.optional(),
      after: z
        .strictObject({ attempt_id: number, line: number })
        .default({ attempt_id: 0, line: 0 }),
      limit: limit(QUEUE_LIMITS.logLinesListedMax, QUEUE_LIMITS.logLinesListedMax),
    });
    const { id } = parseParams(oneTask, params);
    const { attempt = null, after, limit: most } = parseParams(schema, params);
    const lines = await this.#host.reader.logLines(id, after, most, attempt);
    if (lines.length === 0) await this.#getTask(id);
    return lines;
  }

  async #submit(leader: Leader, params: unknown): Promise<Task> {
    const task = parseSubmit(params, this.#host.maxAttempts);
    await this.#checkDependencies(task.dependsOn);
    const [answer] = await inTime(leader.submit([task]));
    if (answer === undefined) throw new QueueError("INTERNAL", "the submit was not answered");
    if ("refused" in answer) throw answer.refused;
    return { ...(await this.#getTask(answer.id)), created: answer.created };
  }

  async #submitMany(leader: Leader, params: unknown): Promise<unknown> {
    const { tasks } = parseParams(
      z.strictObject({ tasks: z.array(z.unknown()).min(1).max(QUEUE_LIMITS.batchCallsMax) }),
      params,
    );
    const news = tasks.map((task, index) => {
      try {
        return parseSubmit(task, this.#host.maxAttempts);
      } catch (error) {
        if (!(error instanceof QueueError)) throw error;
        throw new QueueError(error.code, `tasks.${index}: ${error.message}`);
      }
    });
    await this.#checkDependencies(news.flatMap((task) => task.dependsOn));
    const answers = await inTime(leader.submit(news));
    return {
      tasks: answers.map((answer) =>
        "refused" in answer
          ? { error: { name: answer.refused.code, message: answer.refused.message } }
          : { id: String(answer.id), created: answer.created },
      ),
    };
  }

  async #submitGraph(leader: Leader, params: unknown): Promise<unknown> {
    const graph = parseGraph(params, this.#host.maxAttempts);
    await this.#checkDependencies(graph.tasks.flatMap((task) => task.dependsOn));
    const { ids, created } = await inTime(leader.submitGraph(graph));
    const tasks = [...ids].map(([name, id]) => [name, String(id)] as const);
    return { tasks: Object.fromEntries(tasks), created };
  }

  async #checkDependencies(ids: readonly number[]): Promise<void> {
    if (ids.length === 0) return;
    const missing = await this.#host.reader.missing([...new Set(ids)]);
    if (missing.length === 0) return;
    const problem = `depends_on names tasks that do not exist: ${missing.join(", ")}`;
    throw new QueueError("NOT_FOUND", problem);
  }

  async #cancel(leader: Leader, params: unknown): Promise<Task> {
    const { id, reason } = parseParams(oneTask, params);
    if ((await this.#host.reader.tasks([id])).length === 0) throw unknownTask(id);
    await inTime(leader.cancel([id], reason ?? "cancelled by request"));
    return this.#getTask(id);
  }

  async #requeue(leader: Leader, params: unknown): Promise<Task> {
    const { id } = parseParams(oneTask, params);
    const [task] = await this.#host.reader.tasks([id]);
    if (task === undefined) throw unknownTask(id);
    const revived = await inTime(reviveTasks(leader, [id]));
    if (revived.length === 0) {
      const ended = task.state === "FAILED" || task.state === "CANCELLED";
      const why = ended ? "another task with its unique_key is live" : `it is ${task.state}`;
      throw new QueueError(
        "CONFLICT",
        `task ${id} cannot be requeued: ${why}; only FAILED and CANCELLED tasks can`,
      );
    }
    return this.#getTask(id);
  }
}

async function putQueue(leader: Leader, params: unknown): Promise<unknown> {
  const schema = z.strictObject({
    queue: queueName,
    paused: z.boolean().optional(),
    concurrency: z.int().positive().max(1_000_000).nullish(),
    rate: z
      .strictObject({
        count: z.int().positive().max(1_000_000),
        seconds: z.number().positive().max(86_400).default(1),
      })
      .nullish(),
    backoff: backoffSchema.nullish(),
  });
  const { queue, ...given } = parseParams(schema, params);
  const now = leader.memory.gates.limitsOf(queue);
  const rate =
    given.rate == null
      ? given.rate
      : { count: given.rate.count, perMs: given.rate.seconds * 1_000 };
  // Omitted fields stay; null removes a limit.
  const limits = {
    paused: given.paused ?? now.paused,
    concurrency: given.concurrency === undefined ? now.concurrency : given.concurrency,
    rate: rate === undefined ? now.rate : rate,
    backoff: given.backoff === undefined ? now.backoff : given.backoff,
  };
  await inTime(putLimits(leader, queue, limits));
  return { queue, ...limits };
}

function unknownTask(id: number): QueueError {
  return new QueueError("NOT_FOUND", `there is no task ${id}`);
}
