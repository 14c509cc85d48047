/** Schedules: time zones, pauses, runs by hand and ticks that were missed. */

import { describe, expect, it } from "vitest";
import type { QueueClient, Schedule } from "../../../src/queue/index.ts";
import { needs } from "../../needs.ts";
import { calmSettings, eventually, queueBench } from "./fixtures.ts";
import { NO_POSTGRES, TestPostgres } from "./server.ts";
import { onBothStores } from "./stores.ts";

const MINUTE_MS = 60_000;

onBothStores("schedules", (open) => {
  const echo = (input: unknown): unknown => input;
  const task = { executor: "echo", input: "by the clock" };

  async function scheduleOf(client: QueueClient, id: string): Promise<Schedule> {
    const found = (await client.schedules()).find(({ schedule_id }) => schedule_id === id);
    if (found === undefined) throw new Error(`no schedule ${id}`);
    return found;
  }

  it("follow the clocks of their zone, and reject unknown zones", async () => {
    const client = await open({ echo });
    await client.putSchedule("tea", "0 17 * * *", task, { time_zone: "Asia/Tokyo" });
    const { next_tick, time_zone } = await scheduleOf(client, "tea");
    expect(time_zone).toBe("Asia/Tokyo");
    expect(next_tick.slice(11)).toBe("08:00:00.000Z");
    await client.putSchedule("tea", "0 17 * * *", task, { time_zone: "Asia/Kolkata" });
    expect((await scheduleOf(client, "tea")).next_tick.slice(11)).toBe("11:30:00.000Z");
    const wrong = client.putSchedule("tea", "0 17 * * *", task, { time_zone: "Mars/Olympus" });
    await expect(wrong).rejects.toThrow(/time_zone: "Mars\/Olympus" is no zone/);
  });

  it("run by hand under their id, also while they are paused, and continue from now", async () => {
    const client = await open({ echo });
    await client.putSchedule("yearly", "0 0 1 1 *", { ...task, unique_key: "one" });
    await client.pauseSchedule("yearly");
    expect(await scheduleOf(client, "yearly")).toMatchObject({ paused: true, last_task: null });
    const run = await client.runSchedule("yearly");
    expect(run).toMatchObject({ schedule_id: "yearly", executor: "echo" });
    expect(await client.wait(run.id)).toMatchObject({ state: "SUCCEEDED", result: task.input });
    const { last_task, last_tick, next_tick } = await scheduleOf(client, "yearly");
    expect({ last_task, last_tick }).toEqual({ last_task: run.id, last_tick: null });
    await client.pauseSchedule("yearly", false);
    expect(await scheduleOf(client, "yearly")).toMatchObject({ paused: false, next_tick });
    await expect(client.runSchedule("none")).rejects.toThrow(/no schedule "none"/);
    await expect(client.pauseSchedule("none")).rejects.toThrow(/no schedule "none"/);
    await client.putSchedule("held", "0 0 1 1 *", { executor: "nobody", unique_key: "held" });
    await client.runSchedule("held");
    await expect(client.runSchedule("held")).rejects.toThrow(/unique_key/);
  });
});

describe("ticks that were missed", needs(TestPostgres.available(), NO_POSTGRES), () => {
  const bench = queueBench();

  it("are caught up as the schedule defines, oldest first, each once", async () => {
    const database = await bench.database();
    const client = bench.client(await bench.node({ database, settings: calmSettings }));
    // The last tick was half an hour ago: none of them is merely late.
    const cron = `${(new Date().getUTCMinutes() + 30) % 60} * * * *`;
    const task = { executor: "nobody" };
    const policies = {
      none: { catch_up: "none" },
      last: {},
      all: { catch_up: "all" },
      two: { catch_up: "all", catch_up_max: 2 },
    } as const;
    for (const [id, options] of Object.entries(policies))
      await client.putSchedule(id, cron, task, options);
    const [before] = await client.schedules();
    const nextMs = Date.parse(before?.next_tick ?? "");
    await bench.query(
      database,
      "update task_schedules set next_tick = next_tick - interval '5 hours'",
    );
    await eventually("all moved on", async () =>
      (await client.schedules()).every(({ next_tick }) => Date.parse(next_tick) === nextMs),
    );
    const hoursAgo = async (schedule: string): Promise<number[]> => {
      const tasks = [...(await client.list({ schedule }))].reverse();
      const created = await Promise.all(tasks.map(({ id }) => client.events(id)));
      return created.map(([event]) => {
        const { tick } = (event?.details ?? {}) as { readonly tick?: string };
        return (nextMs - Date.parse(tick ?? "")) / (60 * MINUTE_MS);
      });
    };
    expect(await hoursAgo("none")).toEqual([]);
    expect(await hoursAgo("last")).toEqual([1]);
    expect(await hoursAgo("all")).toEqual([5, 4, 3, 2, 1]);
    expect(await hoursAgo("two")).toEqual([2, 1]);
  });
});
