/** What people ask of the leader beside submitting and cancelling: limits of queues, and the removal of tasks. */

import { performance } from "node:perf_hooks";
import type { QueueLimits } from "../../core/queue/gates.ts";
import { sqlArray } from "../store/database.ts";
import type { Leader } from "./leader.ts";

/** Limits of a named queue, from now on. */
export async function putLimits(leader: Leader, queue: string, limits: QueueLimits): Promise<void> {
  const { paused, concurrency, rate, backoff } = limits;
  await leader.writer.write("control", "queue-put", [
    ...[queue, paused, concurrency, rate?.count ?? null, rate?.perMs ?? null],
    backoff === null ? null : JSON.stringify(backoff),
  ]);
  leader.memory.gates.set(queue, limits, performance.now());
  leader.dispatch();
}

/** Takes ended tasks out of the database; returns how many. */
export async function removeTasks(leader: Leader, ids: readonly number[]): Promise<number> {
  const { row } = await leader.writer.write("control", "remove", [sqlArray(ids)]);
  return Number(row["changed"]);
}
