/** Reads of committed state, served by every node. */

import { performance } from "node:perf_hooks";
import { attemptsOf } from "../../core/queue/attempts.ts";
import type { CatchUp } from "../../core/queue/catch-up.ts";
import { QUEUE_LIMITS } from "../../core/queue/defaults.ts";
import { NO_LIMITS, type QueueLimits } from "../../core/queue/gates.ts";
import { heartbeatAges, nodeStatus } from "../../core/queue/node-status.ts";
import type { Placement } from "../../core/queue/placement.ts";
import type { Backoff } from "../../core/queue/retry.ts";
import { type EventType, isTerminal, type TaskState } from "../../core/queue/states.ts";
import type {
  LeaderInfo,
  LogLine,
  NodeInfo,
  QueueInfo,
  Schedule,
  Task,
  TaskAttempt,
  TaskCounts,
  TaskEvent,
  TaskFailure,
  TaskFile,
} from "../api/types.ts";
import { type Database, type Row, sqlArray } from "./database.ts";

interface TaskFilter {
  readonly before?: number | undefined;
  readonly states?: readonly TaskState[] | undefined;
  readonly executor?: string | undefined;
  readonly node?: string | undefined;
  readonly schedule?: string | undefined;
  readonly queue?: string | undefined;
  readonly search?: string | undefined;
  readonly limit: number;
}

/** A count is cached for this many times as long as it took. */
const COUNTS_KEPT_TIMES = 10;
const COUNTS_KEPT_MS_MIN = 100;
const MISSING_TOLD_MAX = 10;

/** Tasks by state, unfinished ones by queue, and leased ones by node. */
interface Tally {
  readonly counts: TaskCounts;
  readonly live: ReadonlyMap<string, { readonly QUEUED: number; readonly RUNNING: number }>;
  readonly leases: ReadonlyMap<string, number>;
}

export interface LeaderRow extends LeaderInfo {
  readonly run: string;
  readonly alive: boolean;
}

export class Reader {
  readonly #database: Database;
  readonly #heartbeatMs: number;
  #tally: { readonly until: number; readonly value: Promise<Tally> } | undefined;

  constructor(database: Database, heartbeatMs: number) {
    this.#database = database;
    this.#heartbeatMs = heartbeatMs;
  }

  async tasks(ids: readonly number[]): Promise<readonly Task[]> {
    const rows = await this.#database.query("task-get", [sqlArray(ids)]);
    const byId = new Map(rows.map((row) => [Number(row["id"]), taskOf(row)]));
    return ids.flatMap((id) => byId.get(id) ?? []);
  }

  /** The first few of these ids that no task has. */
  async missing(ids: readonly number[]): Promise<readonly number[]> {
    const rows = await this.#database.query("tasks-missing", [sqlArray(ids), MISSING_TOLD_MAX]);
    return rows.map((row) => Number(row["id"]));
  }

  /** Newest first, as in a list: without large payloads. */
  async list(filter: TaskFilter): Promise<readonly Task[]> {
    return this.briefs(await this.ids(filter));
  }

  /** These tasks, as in a list. */
  async briefs(ids: readonly number[]): Promise<readonly Task[]> {
    if (ids.length === 0) return [];
    const { listedBytesMax } = QUEUE_LIMITS;
    const rows = await this.#database.query("task-brief", [sqlArray(ids), listedBytesMax]);
    return rows.map(taskOf);
  }

  /** The ids of such a list. */
  async ids(filter: TaskFilter): Promise<readonly number[]> {
    return (await this.#pageOf(filter)).map((row) => Number(row["id"]));
  }

  #pageOf(filter: TaskFilter): Promise<readonly Row[]> {
    const { before, states, executor, node, schedule, queue, search, limit } = filter;
    const wanted = states === undefined ? null : sqlArray(states);
    const others = [executor, node, schedule, queue];
    const filters = [before ?? null, wanted, ...others.map((one) => one ?? null)];
    if (search !== undefined) {
      const pattern = `%${search.replace(/[\\%_]/g, "\\$&")}%`;
      const { searchedTasksMax } = QUEUE_LIMITS;
      const found = [...filters, pattern, search, searchedTasksMax, limit];
      return this.#database.query("list-search", found);
    }
    const narrow = states !== undefined && others.every((one) => one === undefined);
    if (narrow && states.every((state) => !isTerminal(state)))
      return this.#database.query("list-live", [wanted, before ?? null, limit]);
    if (narrow && states.every((state) => state === "FAILED" || state === "CANCELLED"))
      return this.#database.query("list-dead", [wanted, before ?? null, limit]);
    return this.#database.query("list-any", [...filters, limit]);
  }

  async events(taskId: number, after: number, limit: number): Promise<readonly TaskEvent[]> {
    const rows = await this.#database.query("task-events", [taskId, after, limit]);
    return rows.map((row) => ({
      event_id: Number(row["event_id"]),
      task_id: String(row["task_id"]),
      event_type: row["event_type"] as EventType,
      old_state: row["old_state"] as TaskState | null,
      new_state: row["new_state"] as TaskState | null,
      node_id: row["node_id"] as string | null,
      attempt_id: row["attempt_id"] as number | null,
      epoch: Number(row["epoch"]),
      timestamp: time(row["timestamp"]) ?? "",
      details: row["details"] ?? null,
    }));
  }

  /** Executions of a task, with their errors. */
  async attempts(taskId: number): Promise<readonly TaskAttempt[]> {
    const events = await this.events(taskId, 0, QUEUE_LIMITS.historyEventsMax);
    const words = await this.#database.query("task-words", [taskId]);
    const byAttempt = new Map(words.map((row) => [Number(row["attempt_id"]), row]));
    return attemptsOf(events).map((attempt) => {
      const said = byAttempt.get(attempt.attempt_id);
      return {
        ...attempt,
        error: attempt.error as TaskFailure | null,
        progress: said?.["progress"] ?? null,
        log_lines: Number(said?.["lines"] ?? 0),
      };
    });
  }

  /** Log lines of a task's executions, in order, after a given one. */
  async logLines(
    taskId: number,
    after: Pick<LogLine, "attempt_id" | "line">,
    limit: number,
    attempt: number | null = null,
  ): Promise<readonly LogLine[]> {
    const place = [taskId, after.attempt_id, after.line, attempt, limit];
    const rows = await this.#database.query("task-log", place);
    return rows.map((row) => ({
      attempt_id: Number(row["attempt_id"]),
      line: Number(row["line"]),
      timestamp: time(row["at"]) ?? "",
      text: String(row["text"]),
    }));
  }

  /** The clock of leases, times and schedules. (TQ-13) */
  async now(): Promise<number> {
    const [row] = await this.#database.query("clock", []);
    return Number(row?.["now_ms"]);
  }

  /** Files attached to a task; of one name, or all. */
  async files(taskId: number, name?: string): Promise<readonly TaskFile[]> {
    const rows = await this.#database.query("task-files", [taskId, name ?? null]);
    return rows.map((row) => ({
      name: String(row["name"]),
      hash: String(row["hash"]),
      bytes: Number(row["bytes"]),
      chunks: Number(row["chunks"]),
      attempt_id: Number(row["attempt_id"]),
      media_type: String(row["media_type"]),
    }));
  }

  async fileChunk(hash: string, chunk: number): Promise<Buffer> {
    const [row] = await this.#database.query("file-chunk-get", [hash, chunk]);
    return Buffer.from(String(row?.["data"] ?? ""), "base64");
  }

  async leader(): Promise<LeaderRow | null> {
    const row = (await this.#database.query("leader-read", []))[0];
    if (row === undefined || row["node_id"] === null) return null;
    return {
      node_id: String(row["node_id"]),
      epoch: Number(row["epoch"]),
      expires_at: time(row["expires_at"]) ?? "",
      url: row["url"] as string | null,
      run: String(row["run"]),
      alive: row["alive"] === true,
    };
  }

  async nodes(): Promise<readonly NodeInfo[]> {
    const rows = await this.#database.query("node-list", []);
    const ages = heartbeatAges(this.#heartbeatMs);
    return rows.map((row) => ({
      node_id: String(row["node_id"]),
      run: String(row["run"]),
      role: String(row["role"]),
      url: row["url"] as string | null,
      executor_types: row["executor_types"] as readonly string[],
      capabilities: row["capabilities"] as Readonly<Record<string, unknown>>,
      max_parallel: Number(row["max_parallel"]),
      status: nodeStatus(Number(row["heartbeat_age_ms"]), ages),
      heartbeat_at: time(row["heartbeat_at"]) ?? "",
      registered_at: time(row["registered_at"]) ?? "",
    }));
  }

  async counts(): Promise<TaskCounts> {
    return (await this.#tallied()).counts;
  }

  /** Leased tasks by node; nodes without any are left out. */
  async leases(): Promise<ReadonlyMap<string, number>> {
    return (await this.#tallied()).leases;
  }

  /** Counted in the database; cached for a time proportional to the cost. */
  #tallied(): Promise<Tally> {
    const begun = performance.now();
    if (this.#tally !== undefined && begun < this.#tally.until) return this.#tally.value;
    const value = this.#count().finally(() => {
      const now = performance.now();
      const keptMs = Math.max(COUNTS_KEPT_MS_MIN, (now - begun) * COUNTS_KEPT_TIMES);
      this.#tally = { until: now + keptMs, value };
    });
    this.#tally = { until: Number.POSITIVE_INFINITY, value };
    return value;
  }

  async #count(): Promise<Tally> {
    const counts: TaskCounts = { QUEUED: 0, RUNNING: 0, SUCCEEDED: 0, FAILED: 0, CANCELLED: 0 };
    const live = new Map<string, { QUEUED: number; RUNNING: number }>();
    const leases = new Map<string, number>();
    for (const row of await this.#database.query("counts", [])) {
      const [state, count] = [row["state"] as TaskState, Number(row["count"])];
      counts[state] += count;
      if (state !== "QUEUED" && state !== "RUNNING") continue;
      const name = String(row["queue"]);
      const ofQueue = live.get(name) ?? { QUEUED: 0, RUNNING: 0 };
      ofQueue[state] += count;
      live.set(name, ofQueue);
      if (state === "QUEUED") continue;
      const node = String(row["node_id"]);
      leases.set(node, (leases.get(node) ?? 0) + count);
    }
    return { counts, live, leases };
  }

  /** Queues with limits, those with live tasks, and the unnamed one. */
  async queues(): Promise<readonly QueueInfo[]> {
    const [rows, { live }] = await Promise.all([
      this.#database.query("queue-list", []),
      this.#tallied(),
    ]);
    const limits = new Map(rows.map((row) => [String(row["queue"]), limitsOf(row)]));
    const names = [...new Set(["default", ...limits.keys(), ...live.keys()])].sort();
    return names.map((queue) => {
      const { paused, concurrency, rate, backoff } = limits.get(queue) ?? NO_LIMITS;
      const perSecond = rate === null ? null : { count: rate.count, seconds: rate.perMs / 1_000 };
      const { QUEUED: queued = 0, RUNNING: running = 0 } = live.get(queue) ?? {};
      return { queue, paused, concurrency, rate: perSecond, backoff, queued, running };
    });
  }

  async schedules(): Promise<readonly Schedule[]> {
    const rows = await this.#database.query("schedule-list", []);
    return rows.map((row) => ({
      schedule_id: String(row["schedule_id"]),
      cron: String(row["cron"]),
      time_zone: String(row["time_zone"]),
      paused: row["paused"] === true,
      catch_up: row["catch_up"] as CatchUp,
      catch_up_max: Number(row["catch_up_max"]),
      task: row["template"],
      next_tick: time(row["next_tick"]) ?? "",
      last_tick: time(row["last_tick"]),
      last_task: row["last_task"] === null ? null : String(row["last_task"]),
    }));
  }
}

/** Reads the limits from a row of queue-list. */
export function limitsOf(row: Row): QueueLimits {
  const count = row["rate_count"] as number | null;
  return {
    paused: row["paused"] === true,
    concurrency: row["concurrency"] as number | null,
    rate: count === null ? null : { count, perMs: Number(row["rate_ms"]) },
    backoff: (row["backoff"] as Backoff | null) ?? null,
  };
}

function taskOf(row: Row): Task {
  const text = (name: string): string | null => (row[name] as string | null) ?? null;
  return {
    id: String(row["id"]),
    executor: String(row["executor"]),
    queue: String(row["queue"]),
    state: row["state"] as TaskState,
    attempt_id: Number(row["attempt_id"]),
    max_attempts: Number(row["max_attempts"]),
    attempts_forgiven: Number(row["attempts_forgiven"]),
    backoff: (row["backoff"] as Backoff | null) ?? null,
    priority: Number(row["priority"]),
    input: row["input"] ?? null,
    result: row["result"] ?? null,
    error: (row["error"] as TaskFailure | null) ?? null,
    idempotency_key: text("idempotency_key"),
    unique_key: text("unique_key"),
    schedule_id: text("schedule_id"),
    placement_constraints: (row["placement_constraints"] as Placement | null) ?? null,
    waiting_on: Number(row["waiting_on"]),
    last_assigned_node: text("last_assigned_node"),
    lease_id: text("lease_id"),
    lease_expires_at: time(row["lease_expires_at"]),
    run_after: time(row["run_after"]),
    attempt_timeout_ms: (row["attempt_timeout_ms"] as number | null) ?? null,
    deadline: time(row["deadline"]),
    created_at: time(row["created_at"]) ?? "",
    started_at: time(row["started_at"]),
    finished_at: time(row["finished_at"]),
    ...optional("omitted", row["omitted"]),
    ...optional("waits_for", row["waits_for"]),
    ...optional("depends_on", row["depends_on"]),
  };
}

function optional(name: "omitted" | "waits_for" | "depends_on", value: unknown): object {
  return value == null || Object.keys(value).length === 0 ? {} : { [name]: value };
}

function time(value: unknown): string | null {
  const isTime = value instanceof Date && !Number.isNaN(value.getTime());
  return isTime ? value.toISOString() : null;
}
