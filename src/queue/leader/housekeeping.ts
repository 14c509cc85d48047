/**
 * Periodic duties of a leader: requeues expired leases, makes due tasks ready, settles dependents, ticks schedules,
 * ages silent nodes, prunes old tasks, and polls lanes, because the database and not the memory is the source of truth.
 *
 * Each duty is repeatable and runs alone; one that fails is logged and runs again at its next time.
 */

import { performance } from "node:perf_hooks";
import { errorText } from "../../core/base/error-text.ts";
import { QUEUE_LIMITS } from "../../core/queue/defaults.ts";
import { heartbeatAges } from "../../core/queue/node-status.ts";
import type { QueueSettings } from "../../core/queue/settings.ts";
import type { Work } from "../../host/background.ts";
import type { Log, LogFields } from "../../host/ports/log.ts";
import { sqlArray } from "../store/database.ts";
import type { FencedWriter } from "../store/fenced-writer.ts";
import { type FinishWriter, isExpired } from "./finish-writer.ts";
import { type LeaderMemory, readyTask, STOOD_STILL_MS } from "./memory.ts";
import type { Schedules } from "./schedules.ts";

/** Tick of the leader's clock; a lost lease is noticed within this. */
const TICK_MS = 200;
const SCHEDULE_LOOK_MS = 1_000;
const PRUNE_EVERY_MS = 60_000;
const LOWEST_ID = Number.MIN_SAFE_INTEGER;
/** Between batches while there is more to prune. */
const PRUNE_AGAIN_MS = 250;

interface HousekeepingOptions {
  readonly writer: FencedWriter;
  readonly memory: LeaderMemory;
  readonly settings: QueueSettings;
  readonly log: Log;
  readonly schedules: Schedules;
  readonly results: FinishWriter;
  readonly onReady: () => void;
  /** These nodes let a lease expire: their earlier requests no longer count as offers to work. */
  readonly onSilent: (nodeIds: ReadonlySet<string>) => void;
  /** The time limit of these tasks has passed. */
  readonly onOverdue: (ids: readonly number[]) => Promise<void>;
}

type Duty =
  | "expire"
  | "promote"
  | "resolve"
  | "poll"
  | "schedules"
  | "nodes"
  | "heartbeats"
  | "overdue"
  | "prune";

export class Housekeeping {
  readonly #options: HousekeepingOptions;
  readonly #dueAt = new Map<Duty, number>();
  readonly #running = new Set<Duty>();
  #started = false;
  #next: Work | undefined;
  #tickedAt = performance.now();
  #toResolve: Set<number> | "all" = "all";
  /** Progress of the walk over old tasks. */
  #prunedTo = LOWEST_ID;
  #beats: { nodeId: string; run: string; resolve: (known: boolean) => void }[] = [];

  constructor(options: HousekeepingOptions) {
    this.#options = options;
  }

  start(): void {
    for (const duty of [
      "expire",
      "promote",
      "resolve",
      "poll",
      "schedules",
      "nodes",
      "overdue",
      "prune",
    ] as const) {
      this.#dueAt.set(duty, performance.now());
    }
    this.#started = true;
    this.#tickedAt = performance.now();
    this.#tick();
  }

  stop(): void {
    this.#started = false;
    this.#next?.cancel();
    for (const beat of this.#beats.splice(0)) beat.resolve(false);
  }

  promoteWithin(delayMs: number): void {
    const at = performance.now() + delayMs;
    this.#dueAt.set("promote", Math.min(at, this.#dueAt.get("promote") ?? at));
    this.#arm();
  }

  resolveSoon(ids: readonly number[]): void {
    if (this.#toResolve !== "all") for (const id of ids) this.#toResolve.add(id);
    this.#dueAt.set("resolve", 0);
    this.#arm();
  }

  resolveAllSoon(): void {
    this.#toResolve = "all";
    this.resolveSoon([]);
  }

  pollLanesSoon(): void {
    this.#dueAt.set("poll", 0);
    this.#arm();
  }

  /** Heartbeats of all nodes are written together. */
  heartbeat(nodeId: string, run: string): Promise<boolean> {
    return new Promise((resolve) => {
      this.#beats.push({ nodeId, run, resolve });
      this.#dueAt.set("heartbeats", performance.now() + TICK_MS / 4);
    });
  }

  #arm(): void {
    if (!this.#started) return;
    this.#next?.cancel();
    const now = performance.now();
    const next = Math.min(...this.#dueAt.values()) - now;
    const waitMs = Math.max(1, Math.min(TICK_MS, next));
    const { background } = this.#options.writer;
    this.#next = background.after("housekeeping", waitMs, () => this.#tick());
  }

  #tick(): void {
    const now = performance.now();
    const lateMs = now - this.#tickedAt - TICK_MS;
    this.#tickedAt = now;
    if (lateMs > STOOD_STILL_MS) this.#options.memory.excuse(lateMs);
    for (const [duty, at] of this.#dueAt) {
      if (at > now || this.#running.has(duty)) continue;
      this.#dueAt.delete(duty);
      this.#running.add(duty);
      this.#options.writer.background.run(`duty ${duty}`, () => this.#perform(duty));
    }
    this.#arm();
  }

  async #perform(duty: Duty): Promise<void> {
    let againMs: number | undefined;
    try {
      againMs = await this.#duties[duty]();
    } catch (error) {
      if (this.#options.writer.ended) return;
      this.#options.log.event("error", "leader.duty_failed", {
        duty,
        reason: errorText(error),
      });
      againMs = SCHEDULE_LOOK_MS;
    } finally {
      this.#running.delete(duty);
    }
    if (againMs === undefined) return;
    const at = performance.now() + againMs;
    this.#dueAt.set(duty, Math.min(at, this.#dueAt.get(duty) ?? at));
  }

  /** Each returns when to run again, or undefined to run on request only. */
  readonly #duties: Readonly<Record<Duty, () => Promise<number | undefined>>> = {
    expire: () => this.#expire(),
    promote: () => this.#promote(),
    resolve: () => this.#resolve(),
    poll: () => this.#poll(),
    schedules: () => this.#schedules(),
    nodes: () => this.#ageNodes(),
    heartbeats: () => this.#writeHeartbeats(),
    overdue: () => this.#overdue(),
    prune: () => this.#prune(),
  };

  async #expire(): Promise<number> {
    const { memory, results, settings, log } = this.#options;
    const now = performance.now();
    const expired = [...memory.leases.values()]
      .filter((lease) => isExpired(lease, now))
      .slice(0, QUEUE_LIMITS.commitTasksMax);
    if (expired.length > 0) {
      this.#options.onSilent(new Set(expired.map(({ nodeId }) => nodeId)));
      const moved = await results.requeue(
        expired.map((lease) => ({
          task_id: String(lease.taskId),
          lease_token: lease.token,
          reason: "expired",
          delayMs: 0,
          error: JSON.stringify({ message: `node ${lease.nodeId} did not renew its lease` }),
        })),
      );
      const gone = new Set(moved.map(({ id }) => id));
      for (const lease of expired) {
        if (gone.has(lease.taskId)) memory.revoke(lease.token);
        // The task has changed meanwhile.
        else memory.dropLease(lease.token);
      }
      log.event("warn", "leases.expired", {
        count: moved.length,
        nodes: [...new Set(expired.map(({ nodeId }) => nodeId))].slice(0, 10),
      });
    }
    return Math.min(TICK_MS, settings.leaseCleanupMs);
  }

  async #promote(): Promise<number> {
    const { writer, settings } = this.#options;
    const { row, repeated } = await writer.write("grant", "promote", [QUEUE_LIMITS.commitTasksMax]);
    this.#addReady(row["ready"] as readonly Record<string, unknown>[]);
    if (repeated) this.pollLanesSoon();
    const next = row["next_ms"];
    return next === null
      ? settings.pollIntervalMs
      : Math.max(1, Math.min(Number(next), settings.pollIntervalMs));
  }

  async #resolve(): Promise<number | undefined> {
    const { writer, memory, settings } = this.#options;
    if (!memory.dependenciesOpen) return settings.pollIntervalMs;
    const ids = this.#toResolve;
    this.#toResolve = new Set();
    const { row, repeated } = await writer.write("grant", "resolve", [
      ids === "all" ? null : sqlArray([...ids]),
    ]);
    this.#addReady(row["ready"] as readonly Record<string, unknown>[]);
    const cancelled = (row["cancelled"] as readonly number[]).map(Number);
    for (const id of cancelled) {
      memory.moved({
        taskId: id,
        eventType: "cancelled",
        from: "QUEUED",
        to: "CANCELLED",
        nodeId: null,
        attempt: 1,
      });
    }
    if (repeated) this.pollLanesSoon();
    // Newly cancelled tasks may have dependents of their own.
    if (cancelled.length > 0) this.resolveSoon(cancelled);
    else if (this.#toResolve.size === 0) this.#toResolve = "all";
    return settings.pollIntervalMs;
  }

  async #poll(): Promise<number> {
    const { writer, memory, settings, onReady } = this.#options;
    for (const row of await writer.read("lanes", [])) {
      const lane = String(row["lane"]);
      const priority = Number(row["priority"]);
      if (!memory.lanes.has(lane, priority)) memory.lanes.reopen(lane, priority);
    }
    onReady();
    return settings.pollIntervalMs;
  }

  async #schedules(): Promise<number> {
    await this.#options.schedules.tick();
    return SCHEDULE_LOOK_MS;
  }

  async #ageNodes(): Promise<number> {
    const { writer, settings, log, memory } = this.#options;
    const ages = heartbeatAges(settings.heartbeatMs);
    const { row } = await writer.write("control", "node-age", [
      ages.staleMs,
      ages.deadMs,
      ages.forgetMs,
    ]);
    for (const aged of row["aged"] as readonly LogFields[]) {
      log.event("warn", "node.aged", aged);
      if (aged["status"] === "dead") memory.nodes.delete(String(aged["node_id"]));
    }
    return settings.heartbeatMs;
  }

  async #writeHeartbeats(): Promise<undefined> {
    const beats = this.#beats.splice(0);
    if (beats.length === 0) return undefined;
    try {
      const { row } = await this.#options.writer.write("control", "node-heartbeat", [
        sqlArray(beats.map(({ nodeId }) => nodeId)),
        sqlArray(beats.map(({ run }) => run)),
      ]);
      const known = new Set(row["known"] as readonly string[]);
      for (const beat of beats) beat.resolve(known.has(beat.nodeId));
    } catch (error) {
      for (const beat of beats) beat.resolve(false);
      throw error;
    }
    return undefined;
  }

  async #overdue(): Promise<number> {
    const rows = await this.#options.writer.read("overdue", [QUEUE_LIMITS.commitTasksMax]);
    if (rows.length > 0) await this.#options.onOverdue(rows.map((row) => Number(row["id"])));
    return SCHEDULE_LOOK_MS;
  }

  async #prune(): Promise<number> {
    const { writer, settings } = this.#options;
    const kept = [settings.retentionMs, settings.retentionFailedMs, settings.retentionCancelledMs];
    const { row } = await writer.write("control", "prune", [
      ...kept,
      QUEUE_LIMITS.pruneTasksMax,
      this.#prunedTo,
    ]);
    const more = row["more"] === true;
    if (!more) await writer.write("control", "files-prune", [Math.max(...kept)]);
    this.#prunedTo = more ? Number(row["last"]) : LOWEST_ID;
    return more ? PRUNE_AGAIN_MS : PRUNE_EVERY_MS;
  }

  #addReady(rows: readonly Record<string, unknown>[]): void {
    for (const row of rows) {
      this.#options.memory.lanes.add(
        String(row["lane"]),
        readyTask(row, QUEUE_LIMITS.inlineInputBytesMax),
      );
    }
    if (rows.length > 0) this.#options.onReady();
  }
}
