/**
 * The leader's schedules: tasks by the clock. One statement advances each tick and submits its task, so that it is
 * submitted once over the cluster.
 */

import { type CatchUp, dueTicks } from "../../core/queue/catch-up.ts";
import { parseCron } from "../../core/queue/cron.ts";
import { QueueError } from "../../core/queue/errors.ts";
import { nextTickIn } from "../../core/queue/zoned-cron.ts";
import type { Log } from "../../host/ports/log.ts";
import { parseSubmit } from "../api/submit-request.ts";
import type { NewTask } from "../api/types.ts";
import type { FencedWriter } from "../store/fenced-writer.ts";
import type { LeaderMemory } from "./memory.ts";
import type { SubmitWriter } from "./submit-writer.ts";
import { offsetsOf } from "./time-zone.ts";

interface SchedulesOptions {
  readonly writer: FencedWriter;
  readonly memory: LeaderMemory;
  readonly submits: SubmitWriter;
  readonly maxAttempts: number;
  readonly log: Log;
  readonly onReady: () => void;
}

interface ScheduleRule {
  readonly cron: string;
  readonly timeZone: string;
  readonly catchUp: CatchUp;
  readonly catchUpMax: number;
}

type Row = Readonly<Record<string, unknown>>;

/** Change of a schedule with a submitted task: from its next tick to the one after. */
interface Move {
  readonly from: string;
  readonly tick: string;
  readonly next: string;
}

export class Schedules {
  readonly #options: SchedulesOptions;

  constructor(options: SchedulesOptions) {
    this.#options = options;
  }

  async put(id: string, rule: ScheduleRule, template: unknown): Promise<void> {
    const next = ticksOf(rule.cron, rule.timeZone);
    const nowMs = await this.#nowMs();
    await this.#options.writer.write("control", "schedule-put", [
      ...[id, rule.cron, JSON.stringify(template), timeText(next(nowMs))],
      ...[rule.timeZone, rule.catchUp, rule.catchUpMax],
    ]);
  }

  async remove(id: string): Promise<boolean> {
    const { row, repeated } = await this.#options.writer.write("control", "schedule-remove", [id]);
    return repeated || Number(row["changed"]) > 0;
  }

  /** Ticks during the pause are not caught up. */
  async pause(id: string, paused: boolean): Promise<void> {
    const row = await this.#find(id);
    const next = ticksOf(String(row["cron"]), String(row["time_zone"]));
    const nowMs = Number(row["now_ms"]);
    await this.#options.writer.write("control", "schedule-pause", [
      ...[id, paused, timeText(next(nowMs))],
    ]);
  }

  /** Submits its task now, in addition to its ticks; returns the task's id, or null while its unique key is in use. */
  async runNow(id: string): Promise<number | null> {
    return this.#submit(await this.#find(id), undefined);
  }

  /** Submits due tasks. */
  async tick(): Promise<void> {
    for (const row of await this.#options.writer.read("schedule-list", []))
      if (row["due"] === true) await this.#tickOne(row);
  }

  async #tickOne(row: Row): Promise<void> {
    const next = ticksOf(String(row["cron"]), String(row["time_zone"]));
    const first = row["next_tick"] as Date;
    const nowMs = Number(row["now_ms"]);
    const span = { firstMs: first.getTime(), nowMs };
    const ticks = dueTicks(next, span, row["catch_up"] as CatchUp, Number(row["catch_up_max"]));
    const then = timeText(next(Math.max(nowMs, span.firstMs)));
    const { writer, log } = this.#options;
    const id = String(row["schedule_id"]);
    if (ticks.length === 0) {
      await writer.write("control", "schedule-skip", [id, first.toISOString(), then]);
      log.event("warn", "schedule.missed", { schedule: id, tick: first.toISOString() });
    }
    let from = first.toISOString();
    for (const [index, at] of ticks.entries()) {
      const following = ticks[index + 1];
      const to = following === undefined ? then : timeText(following);
      await this.#submit(row, { from, tick: timeText(at), next: to });
      from = to;
    }
  }

  async #submit(schedule: Row, move: Move | undefined): Promise<number | null> {
    const { writer, submits, memory, onReady, log } = this.#options;
    const id = String(schedule["schedule_id"]);
    const task = parseSubmit(schedule["template"], this.#options.maxAttempts);
    const [taskId = 0] = await submits.takeIds(1);
    const { row, repeated } = await writer.write("control", "schedule-submit", [
      ...[id, move?.from ?? null, move?.next ?? null, taskId],
      ...taskColumns(task),
      move?.tick ?? null,
    ]);
    if (Number(row["inserted"]) === 0 && !repeated) return null;
    const moved = { taskId, eventType: "created", from: null, to: "QUEUED" } as const;
    memory.moved({ ...moved, nodeId: null, attempt: 1 });
    memory.lanes.reopen(task.lane, task.priority);
    const at = move === undefined ? {} : { tick: move.tick };
    log.event("info", "schedule.ticked", { schedule: id, ...at, task_id: String(taskId) });
    onReady();
    return taskId;
  }

  async #find(id: string): Promise<Row> {
    const rows = await this.#options.writer.read("schedule-list", []);
    const found = rows.find((row) => row["schedule_id"] === id);
    if (found === undefined) throw new QueueError("NOT_FOUND", `there is no schedule "${id}"`);
    return found;
  }

  async #nowMs(): Promise<number> {
    const [clock] = await this.#options.writer.read("clock", []);
    return Number(clock?.["now_ms"]);
  }
}

function ticksOf(cronText: string, timeZone: string): (afterMs: number) => number | undefined {
  const parsed = parseCron(cronText);
  if (!parsed.ok) throw new QueueError("INVALID_PARAMS", parsed.problem);
  const offsetAt = offsetsOf(timeZone);
  return (afterMs) => nextTickIn(parsed.cron, afterMs, offsetAt);
}

function timeText(ms: number | undefined): string {
  return new Date(ms ?? 0).toISOString();
}

function taskColumns(task: NewTask): readonly unknown[] {
  return [
    task.executor,
    task.lane,
    task.priority,
    task.maxAttempts,
    task.input,
    task.uniqueKey ?? null,
    task.placement === null ? null : JSON.stringify(task.placement),
    task.queue,
    task.attemptTimeoutMs ?? null,
    task.timeoutMs ?? null,
    task.backoff === null ? null : JSON.stringify(task.backoff),
  ];
}
