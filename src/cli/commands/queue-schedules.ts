/** `queue schedule …`: tasks by the clock. */

import { type Command, Option } from "commander";
import { headedTable } from "../../core/base/text-table.ts";
import { CATCH_UPS, type CatchUp } from "../../core/queue/catch-up.ts";
import type { Schedule, ScheduleOptions } from "../../queue/index.ts";
import { add, line, parseWhole, print, readInput, run, type Shared } from "./queue-command.ts";
import { showTask } from "./queue-show.ts";

export interface ScheduleFlags {
  readonly timeZone?: string;
  readonly catchUp?: CatchUp;
  readonly catchUpMax?: number;
}

interface PutFlags extends Shared, ScheduleFlags {
  readonly unique?: string;
}

export function registerSchedules(queue: Command): void {
  const schedule = queue
    .command("schedule")
    .description("tasks by the clock: one enqueue per tick over the cluster");
  registerPut(schedule);
  add(schedule, "remove", "remove a schedule", "<id>").action(
    run(async (client, options: Shared, id: string) => {
      await client.removeSchedule(id);
      if (options.json) print({ schedule_id: id });
      else line(`schedule ${id} removed`);
    }),
  );
  for (const [name, paused] of [
    ["pause", true],
    ["resume", false],
  ] as const) {
    const what = paused ? "no ticks until it is resumed" : "go on with the next tick from now";
    add(schedule, name, what, "<id>").action(
      run(async (client, options: Shared, id: string) => {
        await client.pauseSchedule(id, paused);
        if (options.json) print({ schedule_id: id, paused });
        else line(`schedule ${id} ${paused ? "is paused" : "goes on"}`);
      }),
    );
  }
  add(schedule, "run", "submit a schedule's task now, beside its ticks", "<id>").action(
    run(async (client, options: Shared, id: string) => {
      showTask(await client.runSchedule(id), options);
    }),
  );
  add(schedule, "list", "all schedules", "").action(
    run(async (client, options: Shared) => {
      const schedules = await client.schedules();
      if (options.json) return print(schedules);
      if (schedules.length === 0) return line("no schedules");
      const heads = ["schedule", "cron", "zone", "missed", "next", "last", "last task"];
      line(headedTable(heads, schedules.map(rowOf)));
    }),
  );
}

function registerPut(schedule: Command): void {
  const what = "make or change a schedule; cron has five fields";
  withScheduleFlags(add(schedule, "put", what, "<id> <cron> <executor> [input]"))
    .option("--unique <key>", "skip a tick while the last one's task is live")
    .action(
      run(
        async (
          client,
          flags: PutFlags,
          id: string,
          cron: string,
          executor: string,
          input?: string,
        ) => {
          const unique = flags.unique === undefined ? {} : { unique_key: flags.unique };
          const task = { executor, input: readInput(input), ...unique };
          await client.putSchedule(id, cron, task, scheduleOptions(flags));
          if (flags.json) print({ schedule_id: id, cron });
          else line(`schedule ${id}: ${cron}`);
        },
      ),
    );
}

/** Flags of a schedule besides its cron. */
export function withScheduleFlags(command: Command): Command {
  return command
    .option("--time-zone <name>", "whose clocks decide, e.g. Europe/Berlin (default: UTC)")
    .addOption(
      new Option("--catch-up <policy>", "which missed ticks are made up (default: last)").choices(
        CATCH_UPS,
      ),
    )
    .option("--catch-up-max <n>", "of all missed ticks, the newest (default: 100)", parseWhole);
}

export function scheduleOptions({ timeZone, catchUp, catchUpMax }: ScheduleFlags): ScheduleOptions {
  return {
    ...(timeZone === undefined ? {} : { time_zone: timeZone }),
    ...(catchUp === undefined ? {} : { catch_up: catchUp }),
    ...(catchUpMax === undefined ? {} : { catch_up_max: catchUpMax }),
  };
}

function rowOf(one: Schedule): string[] {
  const next = one.paused ? "paused" : one.next_tick;
  const last = [one.last_tick ?? "", one.last_task ?? ""];
  return [one.schedule_id, one.cron, one.time_zone, one.catch_up, next, ...last];
}
