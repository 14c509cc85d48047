/** Reads of committed state, served by every node. */

import { heartbeatAges, nodeStatus } from "../../core/queue/node-status.ts";
import type { Placement } from "../../core/queue/placement.ts";
import type { EventType, TaskState } from "../../core/queue/states.ts";
import type {
  LeaderInfo,
  NodeInfo,
  Schedule,
  Task,
  TaskCounts,
  TaskEvent,
  TaskFailure,
} from "../api/types.ts";
import { type Database, type Row, sqlArray } from "./database.ts";

export interface TaskFilter {
  readonly before?: number | undefined;
  readonly states?: readonly TaskState[] | undefined;
  readonly executor?: string | undefined;
  readonly node?: string | undefined;
  readonly search?: string | undefined;
  readonly limit: number;
}

export interface LeaderRow extends LeaderInfo {
  readonly run: string;
  readonly alive: boolean;
}

export class Reader {
  readonly #database: Database;
  readonly #heartbeatMs: number;

  constructor(database: Database, heartbeatMs: number) {
    this.#database = database;
    this.#heartbeatMs = heartbeatMs;
  }

  async tasks(ids: readonly number[]): Promise<readonly Task[]> {
    const rows = await this.#database.query("task-get", [sqlArray(ids)]);
    const byId = new Map(rows.map((row) => [Number(row["id"]), taskOf(row)]));
    return ids.flatMap((id) => byId.get(id) ?? []);
  }

  async list(filter: TaskFilter): Promise<readonly Task[]> {
    const { before, states, executor, node, search, limit } = filter;
    const narrow =
      before === undefined && executor === undefined && node === undefined && search === undefined;
    const live = states?.every((state) => state === "QUEUED" || state === "RUNNING") ?? false;
    const unsuccessful =
      states?.every((state) => state === "FAILED" || state === "CANCELED") ?? false;
    const rows =
      narrow && (live || unsuccessful) && states !== undefined
        ? await this.#database.query(live ? "task-list-live" : "task-list-dead", [
            sqlArray(states),
            limit,
          ])
        : await this.#database.query("task-list", [
            before ?? null,
            states === undefined ? null : sqlArray(states),
            executor ?? null,
            node ?? null,
            search ?? null,
            limit,
          ]);
    return rows.map(taskOf);
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
    const counts: TaskCounts = { QUEUED: 0, RUNNING: 0, SUCCEEDED: 0, FAILED: 0, CANCELED: 0 };
    for (const row of await this.#database.query("counts", [])) {
      counts[row["state"] as TaskState] += Number(row["count"]);
    }
    return counts;
  }

  async schedules(): Promise<readonly Schedule[]> {
    const rows = await this.#database.query("schedule-list", []);
    return rows.map((row) => ({
      schedule_id: String(row["schedule_id"]),
      cron: String(row["cron"]),
      task: row["template"],
      next_tick: time(row["next_tick"]) ?? "",
      last_tick: time(row["last_tick"]),
      last_task: row["last_task"] === null ? null : String(row["last_task"]),
    }));
  }
}

function taskOf(row: Row): Task {
  const text = (name: string): string | null => (row[name] as string | null) ?? null;
  return {
    id: String(row["id"]),
    executor: String(row["executor"]),
    state: row["state"] as TaskState,
    attempt_id: Number(row["attempt_id"]),
    max_attempts: Number(row["max_attempts"]),
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
    created_at: time(row["created_at"]) ?? "",
    started_at: time(row["started_at"]),
    finished_at: time(row["finished_at"]),
  };
}

function time(value: unknown): string | null {
  return value instanceof Date ? value.toISOString() : null;
}
