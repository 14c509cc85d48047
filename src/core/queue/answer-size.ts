/** Sizes of answers, estimated before a call is run: a batch of small calls can request more than a node can hold. */

import { QUEUE_LIMITS } from "./defaults.ts";

/** A task in a list: input, result and error up to `listedBytesMax` each, and its other fields. */
const LISTED_TASK_BYTES = 3 * QUEUE_LIMITS.listedBytesMax + 1_536;
/** Typical size of an event with its details, a line of a log, a node, a schedule. */
const ENTRY_BYTES = 512;
/** Typical size of a whole task. Larger ones are counted when they were read. */
const TASK_BYTES = 2_048;
const LIST_BYTES = 16_384;
const TASKS_LISTED = 50;

/** Methods whose answers contain stored data. All others answer with little more than their request. */
const SIZES: Readonly<Record<string, (limit: number | undefined) => number>> = {
  list_tasks: (limit = TASKS_LISTED) => limit * LISTED_TASK_BYTES,
  get_task: () => TASK_BYTES,
  cancel_task: () => TASK_BYTES,
  requeue_task: () => TASK_BYTES,
  task_events: (limit = QUEUE_LIMITS.eventsListedMax) => limit * ENTRY_BYTES,
  task_attempts: () => LIST_BYTES,
  task_log: (limit = QUEUE_LIMITS.logLinesListedMax) => limit * ENTRY_BYTES,
  task_files: () => LIST_BYTES,
  cluster_status: () => LIST_BYTES,
  queue_activity: () => LIST_BYTES,
  list_queues: () => LIST_BYTES,
  list_schedules: () => LIST_BYTES,
};

/** Expected bytes of the answer to a call; 0 for a method that reads nothing stored. */
export function expectedAnswerBytes(method: unknown, params: unknown): number {
  if (typeof method !== "string" || !Object.hasOwn(SIZES, method)) return 0;
  const [first] = Array.isArray(params) ? params : [params];
  const limit = Number(Object(first)["limit"] ?? Number.NaN);
  return SIZES[method]?.(limit > 0 ? limit : undefined) ?? 0;
}
