/** Methods for schedules: tasks by the clock. */

import { z } from "zod";
import { CATCH_UPS } from "../core/queue/catch-up.ts";
import { QUEUE_LIMITS } from "../core/queue/defaults.ts";
import { QueueError } from "../core/queue/errors.ts";
import { parseParams, parseSubmit, storable, submitSchema } from "./api/submit-request.ts";
import { inTime } from "./in-time.ts";
import type { LeaderMethod } from "./worker-api.ts";

const named = z.object({
  schedule_id: storable("the id").min(1).max(QUEUE_LIMITS.executorLengthMax),
});

export const scheduleMethods: Readonly<Record<string, LeaderMethod>> = {
  async put_schedule(leader, params) {
    const schema = z.strictObject({
      ...named.shape,
      cron: z.string().max(200),
      /** Name in the IANA database; its clocks decide. */
      time_zone: z.string().min(1).max(100).default("UTC"),
      /** Policy for missed ticks. */
      catch_up: z.enum(CATCH_UPS).default("last"),
      catch_up_max: z.int().min(1).max(QUEUE_LIMITS.catchUpMax).default(QUEUE_LIMITS.catchUpMax),
      task: submitSchema,
    });
    const { schedule_id, cron, time_zone, catch_up, catch_up_max, task } = parseParams(
      schema,
      params,
    );
    if ((task.idempotency_key ?? undefined) !== undefined || (task.depends_on ?? []).length > 0) {
      throw new QueueError(
        "INVALID_PARAMS",
        "a scheduled task has neither idempotency_key nor depends_on; unique_key works",
      );
    }
    if ((task.run_after ?? undefined) !== undefined)
      throw new QueueError("INVALID_PARAMS", "task.run_after: a scheduled task starts at its tick");
    parseSubmit(task, 1);
    const rule = { cron, timeZone: time_zone, catchUp: catch_up, catchUpMax: catch_up_max };
    await inTime(leader.schedules.put(schedule_id, rule, task));
    return { schedule_id, cron, time_zone, catch_up };
  },
  async remove_schedule(leader, params) {
    const { schedule_id } = parseParams(named, params);
    if (!(await inTime(leader.schedules.remove(schedule_id)))) {
      throw new QueueError("NOT_FOUND", `there is no schedule "${schedule_id}"`);
    }
    return { schedule_id };
  },
  async pause_schedule(leader, params) {
    const { schedule_id, paused } = parseParams(
      named.extend({ paused: z.boolean().default(true) }),
      params,
    );
    await inTime(leader.schedules.pause(schedule_id, paused));
    return { schedule_id, paused };
  },
  async run_schedule(leader, params) {
    const { schedule_id } = parseParams(named, params);
    const id = await inTime(leader.schedules.runNow(schedule_id));
    if (id === null)
      throw new QueueError("CONFLICT", "the unique_key of its task is taken by one that is live");
    return { schedule_id, task_id: String(id) };
  },
};
