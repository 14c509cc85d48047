/** Bulk operations by filter: cancel, requeue or remove, a bounded number per call. */

import { z } from "zod";
import { QUEUE_LIMITS } from "../core/queue/defaults.ts";
import { isTerminal, TASK_STATES, type TaskState } from "../core/queue/states.ts";
import { parseParams, queueName, storable, taskId } from "./api/submit-request.ts";
import { removeTasks, reviveTasks } from "./leader/administration.ts";
import type { Leader } from "./leader/leader.ts";
import type { Reader } from "./store/reader.ts";
import type { LeaderMethod } from "./worker-api.ts";

const state = z.enum(TASK_STATES);

/** As in list_tasks. */
export const taskFilter = z.strictObject({
  state: state.optional(),
  states: z.array(state).min(1).optional(),
  executor: storable("the name").optional(),
  node: storable("the name").optional(),
  schedule: storable("the name").optional(),
  queue: queueName.optional(),
  search: storable("the text").max(200).optional(),
  before: taskId.optional(),
});

export const reason = storable("the reason").max(1_000).optional();
const ids = z.array(taskId).min(1).max(QUEUE_LIMITS.listTasksMax);
/** Tasks by id, or all that match a filter. */
const named = z.strictObject({ ids, reason });
const filtered = taskFilter.extend({ reason });
type Bulk = z.output<typeof named> | z.output<typeof filtered>;

interface BulkAction {
  readonly applies: (state: TaskState) => boolean;
  /** Returns how many it changed. */
  readonly perform: (leader: Leader, ids: readonly number[], filter: Bulk) => Promise<number>;
}

const ACTIONS: Readonly<Record<string, BulkAction>> = {
  cancel_tasks: {
    applies: (one) => !isTerminal(one),
    perform: async (leader, ids, { reason }) =>
      (await leader.cancel(ids, reason ?? "cancelled by request")).length,
  },
  requeue_tasks: {
    applies: (one) => one === "FAILED" || one === "CANCELLED",
    perform: async (leader, ids) => (await reviveTasks(leader, ids)).length,
  },
  delete_tasks: { applies: isTerminal, perform: removeTasks },
};

function parseBulk(params: unknown): Bulk {
  const byName = typeof params === "object" && params !== null && "ids" in params;
  return byName ? parseParams(named, params) : parseParams(filtered, params);
}

interface Found {
  readonly ids: readonly number[];
  /** The next call continues below this id, also past tasks that could not be changed. */
  readonly next: string | null;
}

async function taskIds(
  reader: Reader,
  asked: Bulk,
  applies: BulkAction["applies"],
): Promise<Found> {
  if ("ids" in asked) {
    const tasks = (await reader.briefs(asked.ids)).filter((task) => applies(task.state));
    return { ids: tasks.map(({ id }) => Number(id)), next: null };
  }
  const wanted = asked.states ?? (asked.state === undefined ? TASK_STATES : [asked.state]);
  const states = wanted.filter(applies);
  if (states.length === 0) return { ids: [], next: null };
  const limit = QUEUE_LIMITS.listTasksMax;
  const found = await reader.ids({ ...asked, states, limit });
  return { ids: found, next: found.length < limit ? null : String(found.at(-1)) };
}

export function bulkMethods(reader: Reader): Readonly<Record<string, LeaderMethod>> {
  const method =
    ({ applies, perform }: BulkAction): LeaderMethod =>
    async (leader, params) => {
      const asked = parseBulk(params);
      const { ids: found, next } = await taskIds(reader, asked, applies);
      const changed = found.length === 0 ? 0 : await perform(leader, found, asked);
      return { changed, next };
    };
  return Object.fromEntries(
    Object.entries(ACTIONS).map(([name, action]) => [name, method(action)]),
  );
}
