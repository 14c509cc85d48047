/** Schedules: next tick, submitted task, outcome of the last task. */

import type { Schedule } from "../../src/queue/api/types.ts";
import { Chip } from "../shared/parts.tsx";
import { Table } from "../shared/table.tsx";
import { place } from "./address.ts";
import { call } from "./api.ts";
import { useDeeds } from "./confirm.tsx";
import { usePolled } from "./live.ts";
import { Moment, TaskLink } from "./parts.tsx";

const SCHEDULES_EVERY_MS = 5_000;

export function SchedulesView() {
  const schedules = usePolled("schedules", SCHEDULES_EVERY_MS, () =>
    call<readonly Schedule[]>("list_schedules", {}),
  );
  return (
    <>
      <h1 class="page-title">Schedules</h1>
      {schedules.problem !== undefined && <p class="bad-text">{schedules.problem}</p>}
      {schedules.value === undefined ? (
        <p class="empty">Loading …</p>
      ) : schedules.value.length === 0 ? (
        <p class="empty">
          No schedules. One is made with{" "}
          <code>hyperscale queue schedule put nightly "0 3 * * *" EXECUTOR</code>.
        </p>
      ) : (
        <Table
          caption="Schedules"
          stacked
          columns={[
            { title: "Schedule" },
            { title: "Cron" },
            { title: "Submits" },
            { title: "Next" },
            { title: "Last" },
            { title: "Last task" },
            { title: "Run, pause or remove", hidden: true },
          ]}
          rows={schedules.value.map((one) => ({
            key: one.schedule_id,
            cells: [
              {
                text: <a href={place("tasks", { schedule: one.schedule_id })}>{one.schedule_id}</a>,
              },
              { text: <Times schedule={one} /> },
              { text: executorOf(one) },
              {
                text: one.paused ? <Chip tone="warn">paused</Chip> : <Moment at={one.next_tick} />,
              },
              { text: <Moment at={one.last_tick} /> },
              { text: one.last_task === null ? "–" : <TaskLink id={one.last_task} /> },
              { text: <Actions schedule={one} done={schedules.again} /> },
            ],
          }))}
        />
      )}
    </>
  );
}

function Times({ schedule: { cron, time_zone } }: { readonly schedule: Schedule }) {
  return (
    <span class="wrapped">
      <code>{cron}</code> {time_zone === "UTC" ? "" : time_zone}
    </span>
  );
}

function executorOf({ task }: Schedule): string {
  const { executor } = Object(task) as { readonly executor?: unknown };
  return String(executor ?? "");
}

function Actions({ schedule, done }: { readonly schedule: Schedule; readonly done: () => void }) {
  const { ask, perform } = useDeeds();
  const id = schedule.schedule_id;
  const runNow = async (): Promise<string> => {
    const task = await call<{ task_id: string }>("run_schedule", { schedule_id: id });
    done();
    return `Task ${task.task_id} submitted.`;
  };
  const pause = async (): Promise<string> => {
    const paused = !schedule.paused;
    await call("pause_schedule", { schedule_id: id, paused });
    done();
    return paused ? `${id} is paused: it does not tick.` : `${id} ticks again.`;
  };
  const remove = async (): Promise<string> => {
    await call("remove_schedule", { schedule_id: id });
    done();
    return `${id} removed.`;
  };
  return (
    <span class="row-buttons">
      <button type="button" class="button" onClick={() => perform(runNow)}>
        Run now<span class="hidden"> {id}</span>
      </button>
      <button type="button" class="button" onClick={() => perform(pause)}>
        {schedule.paused ? "Resume" : "Pause"}
        <span class="hidden"> {id}</span>
      </button>
      <button
        type="button"
        class="button danger"
        onClick={() =>
          ask({
            question: `Remove the schedule ${id}? Tasks that it submitted stay.`,
            button: "Remove",
            danger: true,
            perform: remove,
          })
        }
      >
        Remove<span class="hidden"> {id}</span>
      </button>
    </span>
  );
}
