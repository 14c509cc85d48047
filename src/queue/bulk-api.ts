/** Many tasks at once, by a filter: cancelled, sent back, or removed, a bounded number per call. */

import { z } from "zod";
import { QUEUE_LIMITS } from "../core/queue/defaults.ts";
import { isTerminal, TASK_STATES, type TaskState } from "../core/queue/states.ts";
import { parseParams, taskId } from "./api/submit-request.ts";
import { removeTasks } from "./leader/administration.ts";
import type { Leader } from "./leader/leader.ts";
import type { Reader } from "./store/reader.ts";
import type { LeaderMethod } from "./worker-api.ts";

const state = z.enum(TASK_STATES);

/** As of list_tasks. */
export const taskFilter = z.strictObject({
  state: state.optional(),
  states: z.array(state).min(1).optional(),
  executor: z.string().optional(),
  node: z.string().optional(),
  schedule: z.string().optional(),
  search: z.string().max(200).optional(),
  before: taskId.optional(),
});

const bulk = taskFilter.extend({ reason: z.string().max(1_000).optional() });
type Bulk = z.output<typeof bulk>;

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
    applies: (one) => one === "FAILED" || one === "CANCELED",
    perform: async (leader, ids) => (await leader.revive(ids)).length,
  },
  delete_tasks: { applies: isTerminal, perform: removeTasks },
};

export function bulkMethods(reader: Reader): Readonly<Record<string, LeaderMethod>> {
  const method =
    ({ applies, perform }: BulkAction): LeaderMethod =>
    async (leader, params) => {
      const filter = parseParams(bulk, params);
      const asked = filter.states ?? (filter.state === undefined ? TASK_STATES : [filter.state]);
      const states = asked.filter(applies);
      if (states.length === 0) return { changed: 0, next: null };
      const limit = QUEUE_LIMITS.listTasksMax;
      const ids = await reader.ids({ ...filter, states, limit });
      const changed = ids.length === 0 ? 0 : await perform(leader, ids, filter);
      // The walk goes on below the last id, also past those that could not be changed.
      const next = ids.length < limit ? null : String(ids.at(-1));
      return { changed, next };
    };
  return Object.fromEntries(
    Object.entries(ACTIONS).map(([name, action]) => [name, method(action)]),
  );
}
