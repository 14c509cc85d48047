/** Parts of the queue's page: states, times, texts of tasks. */

import type { ComponentChildren } from "preact";
import { formatMs } from "../../src/core/load/results/format.ts";
import type { TaskState } from "../../src/core/queue/states.ts";
import type { Task } from "../../src/queue/api/types.ts";
import { place } from "./address.ts";
import { nodeNow } from "./api.ts";

/** A symbol beside the text: not everybody can tell the colours apart. */
const MARKS: Readonly<Record<TaskState, string>> = {
  QUEUED: "○",
  RUNNING: "▶",
  SUCCEEDED: "✓",
  FAILED: "✗",
  CANCELLED: "–",
};

export function StateChip({ state }: { readonly state: TaskState }) {
  return (
    <span class={`chip state-${state}`}>
      <span aria-hidden="true">{MARKS[state]}</span> {state.toLowerCase()}
    </span>
  );
}

/** Time of day, with the date where it is another day. */
export function Moment({ at }: { readonly at: string | number | null }) {
  if (at === null) return <span class="quiet">–</span>;
  const date = new Date(at);
  const clock = date.toLocaleTimeString("en-GB");
  const sameDay = date.toDateString() === new Date(nodeNow()).toDateString();
  const day = date.toLocaleDateString("en-GB", { day: "numeric", month: "short" });
  return (
    <time dateTime={date.toISOString()} title={date.toISOString()}>
      {sameDay ? clock : `${day} ${clock.slice(0, 5)}`}
    </time>
  );
}

/** Duration between two times, or until now; two digits are enough for running tasks. */
export function spanText(from: string | null, to: string | null): string {
  if (from === null) return "–";
  const ms = (to === null ? nodeNow() : Date.parse(to)) - Date.parse(from);
  return to === null ? formatMs(Math.max(0, Math.round(ms / 1_000) * 1_000), 2) : formatMs(ms);
}

/** Latest duration of a task: of its wait or of its execution. */
export function timeText(task: Task): string {
  if (task.state === "QUEUED") return `waits ${spanText(task.created_at, null)}`;
  if (task.state === "RUNNING") return `runs ${spanText(task.started_at, null)}`;
  return task.started_at === null ? "–" : spanText(task.started_at, task.finished_at);
}

export function TaskLink({ id, children }: { id: string; children?: ComponentChildren }) {
  return <a href={place("task", { id })}>{children ?? id}</a>;
}
