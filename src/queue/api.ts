/**
 * The methods of a node. Reads are served by every node from committed state; writes belong to the
 * leader: another node passes them on, an observer refuses and names the leader. (TQ-5, TQ-40)
 */

import { z } from "zod";
import { QUEUE_LIMITS } from "../core/queue/defaults.ts";
import { encodePayload } from "../core/queue/payload.ts";
import { explainPlacement } from "../core/queue/placement.ts";
import { TASK_STATES } from "../core/queue/states.ts";
import { QueueError } from "./errors.ts";
import type { Leader } from "./leader.ts";
import type { LeaderRow, Reader } from "./reader.ts";
import type { RpcCall } from "./rpc.ts";
import { invalid, parseSubmit, submitSchema, taskId } from "./submit-request.ts";
import type { ClusterStatus, Grant, Report, Task, TaskCounts } from "./types.ts";

export interface CallContext {
  /** The call was passed on by another node and must not be passed on again. */
  readonly forwarded: boolean;
  /** Whether the caller has gone: what was leased to it meanwhile goes back. */
  readonly gone: () => boolean;
}

/** What the methods need of the node they run on. */
export interface ApiHost {
  readonly reader: Reader;
  readonly maxAttempts: number;
  readonly readOnly: boolean;
  leader(): Leader | undefined;
  leaderRow(): Promise<LeaderRow | null>;
  counts(): Promise<TaskCounts>;
  forward(call: RpcCall): Promise<unknown>;
}

const nodeId = z.string().min(1).max(QUEUE_LIMITS.executorLengthMax);
const run = z.uuid().default("00000000-0000-0000-0000-000000000000");
const wait = z.number().min(0).max(QUEUE_LIMITS.claimWaitMsMax).default(0);
const limit = (most: number, usual: number) => z.int().min(1).max(most).default(usual);
const oneTask = z
  .object({
    id: taskId.optional(),
    task_id: taskId.optional(),
    reason: z.string().max(1_000).optional(),
  })
  .transform((params, context) => {
    const id = params.id ?? params.task_id;
    if (id === undefined) context.addIssue({ code: "custom", message: "task_id is missing" });
    return { id: id ?? 0, reason: params.reason };
  });
const lease = z.object({ task_id: z.coerce.string().regex(/^\d{1,15}$/), lease_token: z.uuid() });
const leases = z
  .object({
    node_id: nodeId.default("unknown"),
    leases: z.array(lease).max(QUEUE_LIMITS.claimTasksMax).optional(),
  })
  .and(lease.partial())
  .transform((params, context) => {
    const { task_id, lease_token } = params;
    const single =
      task_id !== undefined && lease_token !== undefined ? [{ task_id, lease_token }] : undefined;
    const list = params.leases ?? single;
    if (list === undefined)
      context.addIssue({
        code: "custom",
        message: "task_id and lease_token, or leases, are missing",
      });
    return { node_id: params.node_id, leases: list ?? [], single: params.leases === undefined };
  });
const failure = z.union([
  z.string().transform((message) => ({ message })),
  z.looseObject({
    message: z.string(),
    name: z.string().optional(),
    retryable: z.boolean().optional(),
  }),
]);
const report = lease.extend({
  attempt_id: z.int().min(1).default(1),
  status: z.enum(["completed", "failed"]).optional(),
  result: z.unknown().optional(),
  result_json: z.string().nullish(),
  error: failure.nullish(),
  elapsed_ms: z.number().min(0).default(0),
  start_noted: z.boolean().default(false),
});

type Method = (params: unknown, context: CallContext) => Promise<unknown>;

export class QueueApi {
  readonly #host: ApiHost;
  readonly #reads: Readonly<Record<string, Method>>;
  readonly #writes: Readonly<
    Record<string, (leader: Leader, params: unknown, context: CallContext) => Promise<unknown>>
  >;

  constructor(host: ApiHost) {
    this.#host = host;
    this.#reads = {
      get_task: (params) => this.#getTask(parse(oneTask, params).id),
      list_tasks: (params) => this.#listTasks(params),
      task_events: (params) => this.#taskEvents(params),
      cluster_status: () => this.clusterStatus(),
      list_schedules: () => host.reader.schedules(),
    };
    this.#writes = {
      submit_task: (leader, params) => this.#submit(leader, params),
      submit_tasks: (leader, params) => this.#submitMany(leader, params),
      cancel_task: (leader, params) => this.#cancel(leader, params),
      requeue_task: (leader, params) => this.#requeue(leader, params),
      put_schedule: putSchedule,
      remove_schedule: removeSchedule,
      ...workerMethods,
    };
  }

  async handle(call: RpcCall, context: CallContext): Promise<unknown> {
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
    return this.#host.forward(call);
  }

  async clusterStatus(): Promise<ClusterStatus> {
    const [leader, nodes, counts] = await Promise.all([
      this.#host.leaderRow(),
      this.#host.reader.nodes(),
      this.#host.counts(),
    ]);
    if (leader === null || !leader.alive) return { leader: null, nodes, counts };
    const { node_id, epoch, expires_at, url } = leader;
    return { leader: { node_id, epoch, expires_at, url }, nodes, counts };
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
    return task.state === "QUEUED"
      ? { ...task, waiting_reason: await this.#waitingReason(task) }
      : task;
  }

  async #waitingReason(task: Task): Promise<string> {
    if (task.waiting_on > 0)
      return `waits on ${task.waiting_on} other task${task.waiting_on === 1 ? "" : "s"}`;
    if (task.run_after !== null && Date.parse(task.run_after) > Date.now())
      return `waits until ${task.run_after}`;
    const [nodes, leader] = await Promise.all([this.#host.reader.nodes(), this.#host.leaderRow()]);
    if (leader?.alive !== true) return "no node leads: the queue moves on when one does";
    const able = nodes.filter((node) => node.status !== "dead");
    return explainPlacement(
      task.executor,
      task.placement_constraints,
      able.map((node) => ({
        nodeId: node.node_id,
        executors: node.executor_types,
        capabilities: node.capabilities,
      })),
    );
  }

  async #listTasks(params: unknown): Promise<unknown> {
    const state = z.enum(TASK_STATES);
    const filter = parse(
      z.strictObject({
        state: state.optional(),
        states: z.array(state).min(1).optional(),
        executor: z.string().optional(),
        node: z.string().optional(),
        search: z.string().max(200).optional(),
        before: taskId.optional(),
        limit: limit(QUEUE_LIMITS.listTasksMax, 50),
      }),
      params,
    );
    const states = filter.states ?? (filter.state === undefined ? undefined : [filter.state]);
    return this.#host.reader.list({ ...filter, states });
  }

  async #taskEvents(params: unknown): Promise<unknown> {
    const schema = z.object({
      after: z.int().min(0).default(0),
      limit: limit(QUEUE_LIMITS.eventsListedMax, QUEUE_LIMITS.eventsListedMax),
    });
    const { id } = parse(oneTask, params);
    const { after, limit: most } = parse(schema, params);
    const events = await this.#host.reader.events(id, after, most);
    if (events.length === 0 && (await this.#host.reader.tasks([id])).length === 0)
      throw unknownTask(id);
    return events;
  }

  async #submit(leader: Leader, params: unknown): Promise<Task> {
    const task = parseSubmit(params, this.#host.maxAttempts);
    await this.#checkDependencies(task.dependsOn);
    const [answer] = await inTime(leader.submit([task]));
    if (answer === undefined) throw new QueueError("INTERNAL", "the submit was not answered");
    if ("refused" in answer) throw answer.refused;
    return this.#getTask(answer.id);
  }

  async #submitMany(leader: Leader, params: unknown): Promise<unknown> {
    const { tasks } = parse(
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

  async #checkDependencies(ids: readonly number[]): Promise<void> {
    if (ids.length === 0) return;
    const unique = [...new Set(ids)];
    const found = new Set((await this.#host.reader.tasks(unique)).map((task) => Number(task.id)));
    const missing = unique.filter((id) => !found.has(id));
    if (missing.length > 0) {
      throw new QueueError(
        "NOT_FOUND",
        `depends_on names tasks that do not exist: ${missing.slice(0, 10).join(", ")}`,
      );
    }
  }

  async #cancel(leader: Leader, params: unknown): Promise<Task> {
    const { id, reason } = parse(oneTask, params);
    if ((await this.#host.reader.tasks([id])).length === 0) throw unknownTask(id);
    await inTime(leader.cancel([id], reason ?? "cancelled by request"));
    return this.#getTask(id);
  }

  async #requeue(leader: Leader, params: unknown): Promise<Task> {
    const { id } = parse(oneTask, params);
    const [task] = await this.#host.reader.tasks([id]);
    if (task === undefined) throw unknownTask(id);
    const revived = await inTime(leader.revive([id]));
    if (revived.length === 0) {
      const why =
        task.state === "FAILED"
          ? "another task with its unique_key is live"
          : `it is ${task.state}`;
      throw new QueueError(
        "CONFLICT",
        `task ${id} cannot be requeued: ${why}; only FAILED tasks can`,
      );
    }
    return this.#getTask(id);
  }
}

async function putSchedule(leader: Leader, params: unknown): Promise<unknown> {
  const schema = z.strictObject({
    schedule_id: nodeId,
    cron: z.string().max(200),
    task: submitSchema,
  });
  const { schedule_id, cron, task } = parse(schema, params);
  if ((task.idempotency_key ?? undefined) !== undefined || (task.depends_on ?? []).length > 0) {
    throw new QueueError(
      "INVALID_PARAMS",
      "a scheduled task has neither idempotency_key nor depends_on; unique_key works",
    );
  }
  parseSubmit(task, 1);
  await inTime(leader.putSchedule(schedule_id, cron, task));
  return { schedule_id, cron };
}

async function removeSchedule(leader: Leader, params: unknown): Promise<unknown> {
  const { schedule_id } = parse(z.object({ schedule_id: nodeId }), params);
  if (!(await inTime(leader.removeSchedule(schedule_id)))) {
    throw new QueueError("NOT_FOUND", `there is no schedule "${schedule_id}"`);
  }
  return { schedule_id };
}

/** What workers of other processes call; open to workers in other languages too. */
const workerMethods: Readonly<
  Record<string, (leader: Leader, params: unknown, context: CallContext) => Promise<unknown>>
> = {
  async register_node(leader, params) {
    const schema = z.object({
      node_id: nodeId,
      run,
      role: z.string().max(32).default("worker"),
      url: z.string().max(2_048).nullable().default(null),
      executor_types: z.array(nodeId).max(1_000),
      capabilities: z.record(z.string(), z.unknown()).default({}),
      max_parallel: z.int().min(0).max(QUEUE_LIMITS.maxParallelMax).default(1),
    });
    const node = parse(schema, params);
    await leader.register(node);
    return { node_id: node.node_id, epoch: leader.epoch };
  },
  async heartbeat(leader, params) {
    const node = parse(z.object({ node_id: nodeId, run }), params);
    return { known: await leader.heartbeat(node.node_id, node.run) };
  },
  async drain_node(leader, params) {
    const node = parse(z.object({ node_id: nodeId, run }), params);
    await leader.drain(node.node_id, node.run);
    return { node_id: node.node_id };
  },
  async deregister_node(leader, params) {
    const node = parse(z.object({ node_id: nodeId, run }), params);
    await leader.deregister(node.node_id, node.run);
    return { node_id: node.node_id };
  },
  async find_executable_tasks(leader, params) {
    const ask = parse(
      z.object({ node_id: nodeId, run, limit: limit(QUEUE_LIMITS.claimTasksMax, 10) }),
      params,
    );
    return { task_ids: leader.findExecutable(ask.node_id, ask.run, ask.limit) };
  },
  async acquire_lease(leader, params, context) {
    const schema = z.object({
      node_id: nodeId,
      run,
      task_id: taskId.optional(),
      max: limit(QUEUE_LIMITS.claimTasksMax, 1),
      wait_ms: wait,
      raw: z.boolean().default(false),
    });
    const ask = parse(schema, params);
    const grants =
      ask.task_id === undefined
        ? await leader.acquire({
            nodeId: ask.node_id,
            run: ask.run,
            max: ask.max,
            waitMs: ask.wait_ms,
          })
        : await leader.acquireTask(ask.node_id, ask.run, ask.task_id);
    if (context.gone() && grants.length > 0) {
      await leader.release(ask.node_id, grants);
      return { leases: [] };
    }
    return { leases: ask.raw ? grants : grants.map(withInput) };
  },
  async watch_leases(leader, params) {
    const {
      node_id,
      run: of,
      wait_ms,
    } = parse(z.object({ node_id: nodeId, run, wait_ms: wait }), params);
    return { revoked: await leader.watch(node_id, of, wait_ms) };
  },
  async report_started(leader, params) {
    const { node_id, leases: list } = parse(leases, params);
    await leader.started(node_id, list);
    return {};
  },
  async renew_lease(leader, params) {
    const { node_id, leases: list, single } = parse(leases, params);
    const lost = await leader.renew(node_id, list);
    if (single && lost.length > 0) throw refused("renewed", list[0]?.task_id);
    return { lost };
  },
  async release_lease(leader, params) {
    const { node_id, leases: list } = parse(leases, params);
    await leader.release(node_id, list);
    return {};
  },
  async report_completion(leader, params) {
    const many = z.object({
      node_id: nodeId.default("unknown"),
      reports: z.array(report).max(QUEUE_LIMITS.claimTasksMax),
    });
    const isMany = params !== null && typeof params === "object" && "reports" in params;
    const list = isMany
      ? parse(many, params)
      : { node_id: nodeOf(params), reports: [parse(report, params)] };
    const lost = await leader.report(list.node_id, list.reports.map(asReport));
    if (!isMany && lost.length > 0) throw refused("reported on", list.reports[0]?.task_id);
    return { refused: lost };
  },
  async report_progress(leader, params) {
    const message = lease.extend({ kind: z.enum(["progress", "log"]), message: z.unknown() });
    const schema = z.object({
      node_id: nodeId,
      messages: z.array(message).max(QUEUE_LIMITS.claimTasksMax),
    });
    const { node_id, messages } = parse(schema, params);
    await leader.progress(node_id, messages);
    return {};
  },
  async recover_stale_leases(leader) {
    return { recovered: (await leader.recoverStaleLeases()).map(String) };
  },
};

function withInput({ input, ...grant }: Grant): unknown {
  return { ...grant, input: JSON.parse(input) };
}

function nodeOf(params: unknown): string {
  return parse(z.object({ node_id: nodeId.default("unknown") }), params).node_id;
}

function asReport(value: z.output<typeof report>): Report {
  const { result, result_json, error, ...rest } = value;
  const status = value.status ?? (error === undefined || error === null ? "completed" : "failed");
  const payload = encodePayload(
    result_json === undefined ? result : JSON.parse(result_json ?? "null"),
    "result",
  );
  if (!payload.ok) throw new QueueError("INVALID_PARAMS", payload.problem);
  return {
    ...rest,
    status,
    result: status === "completed" ? payload.text : null,
    error: asFailure(error),
  };
}

function asFailure(error: z.output<typeof failure> | null | undefined): Report["error"] {
  if (error === null || error === undefined) return null;
  const { message } = error;
  const name = "name" in error && typeof error.name === "string" ? { name: error.name } : {};
  const retryable =
    "retryable" in error && typeof error.retryable === "boolean"
      ? { retryable: error.retryable }
      : {};
  return { message, ...name, ...retryable };
}

function parse<Schema extends z.ZodType>(schema: Schema, params: unknown): z.output<Schema> {
  const parsed = schema.safeParse(params);
  if (!parsed.success) throw invalid(parsed.error);
  return parsed.data;
}

function unknownTask(id: number): QueueError {
  return new QueueError("NOT_FOUND", `there is no task ${id}`);
}

function refused(what: string, id: string | undefined): QueueError {
  return new QueueError(
    "LEASE_REFUSED",
    `task ${id} cannot be ${what}: this lease is not the current one`,
  );
}

/** A write that the database does not take for long is answered; it may still take effect later. */
async function inTime<Value>(work: Promise<Value>): Promise<Value> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      const problem =
        "the database does not answer; the write may still take effect. Repeat it with an idempotency_key to be sure";
      reject(new QueueError("UNAVAILABLE", problem));
    }, QUEUE_LIMITS.writeWaitMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
