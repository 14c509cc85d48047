/**
 * Administrative operations of the leader besides submitting and cancelling: limits of queues, requeues, and removal.
 */

import { performance } from "node:perf_hooks";
import { QUEUE_LIMITS } from "../../core/queue/defaults.ts";
import type { QueueLimits } from "../../core/queue/gates.ts";
import type { TaskState } from "../../core/queue/states.ts";
import { sqlArray } from "../store/database.ts";
import type { Leader } from "./leader.ts";
import { readyTask } from "./memory.ts";

/** Sets limits of a named queue, from now on. */
export async function putLimits(leader: Leader, queue: string, limits: QueueLimits): Promise<void> {
  const { paused, concurrency, rate, backoff } = limits;
  await leader.writer.write("control", "queue-put", [
    ...[queue, paused, concurrency, rate?.count ?? null, rate?.perMs ?? null],
    backoff === null ? null : JSON.stringify(backoff),
  ]);
  leader.memory.gates.set(queue, limits, performance.now());
  leader.dispatch();
}

/** Removes finished tasks from the database; returns how many. */
export async function removeTasks(leader: Leader, ids: readonly number[]): Promise<number> {
  const { row } = await leader.writer.write("control", "remove", [sqlArray(ids)]);
  return Number(row["changed"]);
}

/**
 * Requeues dead letters with fresh attempts, and with each the tasks that were cancelled because it did not succeed.
 * Returns which of `ids` were requeued.
 */
export async function reviveTasks(
  leader: Leader,
  ids: readonly number[],
): Promise<readonly number[]> {
  const batchMax = QUEUE_LIMITS.commitTasksMax;
  const revived = await reviveOnly(leader, ids);
  for (let of = revived; of.length > 0; ) {
    const parameters = [sqlArray(of), batchMax];
    const rows = await leader.writer.read("dependents-cancelled", parameters, "grant");
    const back = await reviveOnly(
      leader,
      rows.map((row) => Number(row["id"])),
    );
    // A full batch may have left some out, which are requested again; requeued ones are no longer cancelled.
    of = rows.length === batchMax && back.length > 0 ? [...of, ...back] : back;
  }
  return revived;
}

async function reviveOnly(leader: Leader, ids: readonly number[]): Promise<readonly number[]> {
  if (ids.length === 0) return [];
  const { row, repeated } = await leader.writer.write("grant", "revive", [sqlArray(ids)]);
  const revived = row["revived"] as readonly Record<string, unknown>[];
  for (const one of revived) {
    const task = readyTask(one, QUEUE_LIMITS.inlineInputBytesMax);
    if (one["ready"] === true) leader.memory.lanes.add(String(one["lane"]), task);
    leader.memory.moved({
      taskId: task.id,
      eventType: "requeued",
      from: one["old_state"] as TaskState,
      to: "QUEUED",
      nodeId: null,
      attempt: task.attempt,
    });
  }
  if (repeated || revived.some((one) => one["ready"] !== true)) leader.pollAgain();
  leader.dispatch();
  return revived.map((one) => Number(one["id"]));
}
