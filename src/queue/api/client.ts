/**
 * Typed client. Talks to any node; writes are forwarded to the leader.
 *
 *     const queue = new QueueClient("http://127.0.0.1:7600");
 *     const task = await queue.submit({ executor: "http", input: { url: "https://example.org" } });
 *     const done = await queue.wait(task.id);
 */

import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { QueueError } from "../../core/queue/errors.ts";
import { isTerminal, type TaskState } from "../../core/queue/states.ts";
import { readLines, readReply } from "../../host/control/client.ts";
import type {
  Definition,
  Definitions,
  TaskReference,
  TypedGraph,
  TypedGraphSubmit,
  TypedSubmit,
  TypedTask,
} from "./definitions.ts";
import { loadFile, storeFile } from "./files.ts";
import { RemoteFiles } from "./remote-files.ts";
import { RpcClients } from "./rpc-clients.ts";
import { checkInput } from "./standard-schema.ts";
import type {
  ClusterStatus,
  LogLine,
  QueueActivity,
  QueueInfo,
  QueueLimitsInfo,
  Schedule,
  Task,
  TaskAttempt,
  TaskEvent,
  TaskFile,
} from "./types.ts";

/** How long a waiting client tolerates an unresponsive node, and how often it polls. */
const UNAVAILABLE_MS_MAX = 60_000;
const AWAY_LOOK_MS = 250;

export interface QueueClientOptions<Known extends Definitions = Definitions> {
  /** Executors of the tasks: provide names and types, and check inputs before they are sent. */
  readonly executors?: Known;
  readonly token?: string | undefined;
  /** PEM: certificate authorities for `https://` addresses, in place of the default ones. */
  readonly ca?: string | undefined;
}

export interface TaskListFilter {
  readonly state?: TaskState;
  readonly states?: readonly TaskState[];
  readonly executor?: string;
  readonly node?: string;
  readonly schedule?: string;
  readonly queue?: string;
  /** Text in id, executor, keys, input or error. */
  readonly search?: string;
  /** Only tasks with smaller ids, for paging. */
  readonly before?: string;
  readonly limit?: number;
}

export type BulkFilter = Omit<TaskListFilter, "limit">;

interface BulkStep {
  readonly changed: number;
  readonly next: string | null;
}

export interface FollowMessage {
  readonly event: "transition" | "progress" | "log" | "end";
  readonly data: unknown;
}

export type ScheduleOptions = Partial<Pick<Schedule, "time_zone" | "catch_up" | "catch_up_max">>;

type MessageListener = (message: FollowMessage) => void;

export type SubmitOutcome =
  | { readonly id: string; readonly created: boolean }
  | { readonly error: { readonly name: string; readonly message: string } };

export class QueueClient<Known extends Definitions = Definitions> {
  readonly #known: Readonly<Record<string, Definition>>;
  readonly #rpc: RpcClients;
  readonly #files: RemoteFiles;

  /** Accepts one node, or several of which any that listens is enough. */
  constructor(url: string | readonly string[], options: QueueClientOptions<Known> = {}) {
    this.#known = options.executors ?? {};
    this.#rpc = new RpcClients(typeof url === "string" ? [url] : url, {
      token: options.token,
      ca: options.ca,
    });
    this.#files = new RemoteFiles(this.#rpc);
  }

  /** Calls any method of the API by name. */
  call(method: string, params: unknown): Promise<unknown> {
    return this.#rpc.call(method, params);
  }

  async submit<Request extends TypedSubmit<Known>>(
    task: Request,
  ): Promise<TypedTask<Known, Request["executor"]>> {
    await this.#check([task]);
    const answer = await this.#rpc.call("submit_task", task);
    return answer as TypedTask<Known, Request["executor"]>;
  }

  /** Submits many tasks; each is answered separately, in order. */
  async submitMany(tasks: readonly TypedSubmit<Known>[]): Promise<readonly SubmitOutcome[]> {
    await this.#check(tasks);
    const answer = await this.#rpc.call("submit_tasks", { tasks });
    return (answer as { readonly tasks: readonly SubmitOutcome[] }).tasks;
  }

  /**
   * Submits tasks that name each other in `depends_on`, stored together or not at all. Each gets the results of those
   * it depends on.
   */
  async submitGraph<
    Tasks extends { readonly [Name in keyof Tasks]: TypedGraphSubmit<Known, keyof Tasks & string> },
  >(
    tasks: Tasks,
    options: { readonly idempotency_key?: string } = {},
  ): Promise<TypedGraph<Known, Tasks>> {
    await this.#check(Object.values<{ executor: string; input?: unknown }>(tasks));
    const answer = await this.#rpc.call("submit_graph", { tasks, ...options });
    const { tasks: ids, created } = answer as {
      readonly tasks: Readonly<Record<string, string>>;
      readonly created: boolean;
    };
    const references = Object.entries(ids).map(([name, id]) => [name, { id }] as const);
    return { tasks: Object.fromEntries(references), created } as TypedGraph<Known, Tasks>;
  }

  /** Rejects what the executors would reject, as far as they are known here. */
  async #check(tasks: readonly { executor: string; input?: unknown }[]): Promise<void> {
    for (const { executor, input } of tasks) {
      const schema = Object.hasOwn(this.#known, executor)
        ? this.#known[executor]?.input
        : undefined;
      if (schema === undefined) continue;
      const checked = await checkInput(schema, input);
      if (!checked.ok) throw new QueueError("INVALID_PARAMS", `${executor}: ${checked.problem}`);
    }
  }

  async get(id: string): Promise<Task> {
    return (await this.#rpc.call("get_task", { task_id: id })) as Task;
  }

  async list(filter: TaskListFilter = {}): Promise<readonly Task[]> {
    return (await this.#rpc.call("list_tasks", filter)) as readonly Task[];
  }

  async cancel(id: string, reason?: string): Promise<Task> {
    return (await this.#rpc.call("cancel_task", {
      task_id: id,
      ...(reason === undefined ? {} : { reason }),
    })) as Task;
  }

  /** Sends a FAILED task back to the queue with fresh attempts. */
  async requeue(id: string): Promise<Task> {
    return (await this.#rpc.call("requeue_task", { task_id: id })) as Task;
  }

  /** Removes a finished task with its history; fails with the reason for one that must be kept. */
  async delete(id: string): Promise<void> {
    const { changed } = (await this.#rpc.call("delete_tasks", { ids: [id] })) as BulkStep;
    if (changed > 0) return;
    const { state } = await this.get(id);
    const why = isTerminal(state) ? "a task that has not ended depends on it" : `it is ${state}`;
    throw new QueueError("CONFLICT", `task ${id} is not removed: ${why}`);
  }

  /** Cancels all unfinished tasks that match the filter; returns how many. */
  cancelAll(filter: BulkFilter, reason?: string): Promise<number> {
    return this.#bulk("cancel_tasks", { ...filter, ...(reason === undefined ? {} : { reason }) });
  }

  /** Sends all matching FAILED and CANCELLED tasks back to the queue. */
  requeueAll(filter: BulkFilter): Promise<number> {
    return this.#bulk("requeue_tasks", filter);
  }

  /** Removes all finished tasks that match the filter. */
  deleteAll(filter: BulkFilter): Promise<number> {
    return this.#bulk("delete_tasks", filter);
  }

  /** One call changes a bounded number: the next continues after it. */
  async #bulk(method: string, filter: BulkFilter): Promise<number> {
    let changed = 0;
    let before = filter.before;
    for (;;) {
      const at = before === undefined ? {} : { before };
      const answer = await this.#rpc.call(method, { ...filter, ...at });
      const step = answer as BulkStep;
      changed += step.changed;
      if (step.next === null) return changed;
      before = step.next;
    }
  }

  async events(id: string): Promise<readonly TaskEvent[]> {
    return (await this.#rpc.call("task_events", { task_id: id })) as readonly TaskEvent[];
  }

  /** Returns the executions of a task: where, how long, with which error. */
  async attempts(id: string): Promise<readonly TaskAttempt[]> {
    return (await this.#rpc.call("task_attempts", { task_id: id })) as readonly TaskAttempt[];
  }

  /** Yields the lines that executions of a task logged, oldest first; of one attempt, or of all. */
  async *logs(id: string, attempt?: number): AsyncGenerator<LogLine> {
    let after: Pick<LogLine, "attempt_id" | "line"> = { attempt_id: 0, line: 0 };
    for (;;) {
      const params = { task_id: id, after, ...(attempt === undefined ? {} : { attempt }) };
      const lines = (await this.#rpc.call("task_log", params)) as readonly LogLine[];
      yield* lines;
      const last = lines.at(-1);
      if (last === undefined) return;
      after = { attempt_id: last.attempt_id, line: last.line };
    }
  }

  async status(): Promise<ClusterStatus> {
    return (await this.#rpc.call("cluster_status", {})) as ClusterStatus;
  }

  /** Returns throughput, waiting times and depth over time, as recorded by the leader. */
  async activity(span: "hour" | "day" = "hour"): Promise<QueueActivity> {
    return (await this.#rpc.call("queue_activity", { span })) as QueueActivity;
  }

  /** Creates or changes a schedule; by default in UTC, with only the last missed tick caught up. */
  async putSchedule(
    id: string,
    cron: string,
    task: TypedSubmit<Known>,
    options: ScheduleOptions = {},
  ): Promise<void> {
    await this.#check([task]);
    await this.#rpc.call("put_schedule", { schedule_id: id, cron, task, ...options });
  }

  /** Pauses ticks; those missed during the pause are not caught up. */
  async pauseSchedule(id: string, paused = true): Promise<void> {
    await this.#rpc.call("pause_schedule", { schedule_id: id, paused });
  }

  /** Submits its task now, in addition to its ticks, with the schedule's id. */
  async runSchedule(id: string): Promise<Task> {
    const answer = await this.#rpc.call("run_schedule", { schedule_id: id });
    return this.get((answer as { readonly task_id: string }).task_id);
  }

  async removeSchedule(id: string): Promise<void> {
    await this.#rpc.call("remove_schedule", { schedule_id: id });
  }

  /** Sets limits of a named queue; omitted fields stay, null removes a limit. */
  async limitQueue(queue: string, limits: Partial<QueueLimitsInfo>): Promise<void> {
    await this.#rpc.call("put_queue", { queue, ...limits });
  }

  /** Returns the queues that have limits or live tasks, and the unnamed one. */
  async queues(): Promise<readonly QueueInfo[]> {
    return (await this.#rpc.call("list_queues", {})) as readonly QueueInfo[];
  }

  async schedules(): Promise<readonly Schedule[]> {
    return (await this.#rpc.call("list_schedules", {})) as readonly Schedule[];
  }

  /** Stores a file for tasks that refer to it by the returned hash; an existing one is not sent again. */
  store(content: Uint8Array): Promise<string> {
    return storeFile(this.#files, content);
  }

  /** Lists the files that executions attached to a task. */
  async files(id: string): Promise<readonly TaskFile[]> {
    return (await this.#rpc.call("task_files", { task_id: id })) as readonly TaskFile[];
  }

  /** Returns the content of a file attached to a task. */
  load(file: TaskFile): Promise<Uint8Array> {
    return loadFile(this.#files, file.hash);
  }

  /** Yields every transition and message of a task from its beginning to its end. */
  async *follow(id: string, signal?: AbortSignal): AsyncGenerator<FollowMessage> {
    const response = await this.#rpc.open(`/tasks/${encodeURIComponent(id)}/follow`, signal);
    if (response.statusCode !== 200) {
      const { text } = await readReply(response);
      throw new QueueError(
        "NOT_FOUND",
        refusalText(text) ?? `cannot follow task ${id}: ${response.statusCode}`,
      );
    }
    let event: string | undefined;
    for await (const line of readLines(response)) {
      if (line.startsWith("event: ")) event = line.slice("event: ".length);
      if (!line.startsWith("data: ") || event === undefined) continue;
      const data: unknown = JSON.parse(line.slice("data: ".length));
      yield { event: event as FollowMessage["event"], data };
    }
  }

  /**
   * Waits for the final state, across leader changes and while the node is unavailable for up to a minute. `onMessage`
   * receives what `follow` yields; after a gap, from the beginning. Accepts a submitted task instead of its id: its
   * result has the type of its executor.
   */
  wait(task: string, signal?: AbortSignal, onMessage?: MessageListener): Promise<Task>;
  wait<Result>(
    task: TaskReference<Result>,
    signal?: AbortSignal,
    onMessage?: MessageListener,
  ): Promise<Omit<Task, "result"> & { readonly result: Result }>;
  wait<Kind extends Pick<Task, "id">>(
    task: Kind,
    signal?: AbortSignal,
    onMessage?: MessageListener,
  ): Promise<Kind>;
  wait(
    task: string | Pick<Task, "id">,
    signal?: AbortSignal,
    onMessage: MessageListener = () => undefined,
  ): Promise<Task> {
    return this.#wait(typeof task === "string" ? task : task.id, signal, onMessage);
  }

  async #wait(
    id: string,
    signal: AbortSignal | undefined,
    onMessage: MessageListener,
  ): Promise<Task> {
    let lastSeenAt = performance.now();
    for (;;) {
      try {
        const task = await this.get(id);
        lastSeenAt = performance.now();
        if (isTerminal(task.state)) return task;
        for await (const message of this.follow(id, signal)) {
          lastSeenAt = performance.now();
          if (message.event === "end") return message.data as Task;
          onMessage(message);
        }
      } catch (error) {
        signal?.throwIfAborted();
        const isUnavailable = !(error instanceof QueueError) || error.retryable;
        if (!isUnavailable || performance.now() - lastSeenAt > UNAVAILABLE_MS_MAX) throw error;
        await sleep(AWAY_LOOK_MS);
      }
    }
  }

  close(): void {
    this.#rpc.close();
  }
}

function refusalText(text: string): string | undefined {
  try {
    const body = JSON.parse(text) as { readonly error?: { readonly message?: string } };
    return body.error?.message;
  } catch {
    return undefined;
  }
}
