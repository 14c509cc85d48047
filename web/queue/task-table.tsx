/** A page of tasks: a row each, a card each on a phone. The arrow keys move between tasks. */

import { attemptText } from "../../src/core/queue/attempts.ts";
import type { Task } from "../../src/queue/api/types.ts";
import { Table } from "../shared/table.tsx";
import { place } from "./address.ts";
import { useBeat } from "./live.ts";
import { Moment, StateChip, TaskLink, timeText } from "./parts.tsx";

interface Props {
  readonly tasks: readonly Task[];
  readonly selected: ReadonlySet<string>;
  readonly select: (ids: ReadonlySet<string>) => void;
}

const COLUMNS = [
  { title: "Task" },
  { title: "State" },
  { title: "Attempt", numeric: true },
  { title: "Time", numeric: true },
  { title: "Reason, error or result" },
  { title: "Node", wideOnly: true },
  { title: "Created" },
];

export function TaskTable({ tasks, selected, select }: Props) {
  // Ages of waiting and running tasks change.
  useBeat(1_000);
  const toggle = (id: string): void => {
    const next = new Set(selected);
    if (!next.delete(id)) next.add(id);
    select(next);
  };
  const all = tasks.every(({ id }) => selected.has(id));
  return (
    <>
      <label class="select-all">
        <input
          type="checkbox"
          checked={all}
          onChange={() => select(all ? new Set() : new Set(tasks.map(({ id }) => id)))}
        />
        all of this page
      </label>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the keys move between links that work without them. */}
      <div class="task-table" onKeyDown={moveByKey}>
        <Table
          caption="Tasks, newest first"
          stacked
          columns={COLUMNS}
          rows={tasks.map((task) => ({
            key: task.id,
            marked: selected.has(task.id),
            cells: [
              { text: <Name {...{ task, selected, toggle }} /> },
              { text: <StateChip state={task.state} /> },
              { text: attemptText(task) },
              { text: timeText(task) },
              { text: <Outcome task={task} /> },
              { text: task.last_assigned_node ?? "" },
              { text: <Moment at={task.created_at} /> },
            ],
          }))}
        />
      </div>
    </>
  );
}

interface NameProps {
  readonly task: Task;
  readonly selected: ReadonlySet<string>;
  readonly toggle: (id: string) => void;
}

function Name({ task, selected, toggle }: NameProps) {
  const { id, executor, queue } = task;
  return (
    <span class="task-name" data-task={id}>
      <input
        type="checkbox"
        aria-label={`Select task ${id}`}
        checked={selected.has(id)}
        onChange={() => toggle(id)}
      />
      <span>
        <TaskLink id={id}>
          {id} {executor}
        </TaskLink>
        {queue !== "default" && (
          <a class="tag" href={place("tasks", { queue })}>
            {queue}
          </a>
        )}
      </span>
    </span>
  );
}

function Outcome({ task }: { readonly task: Task }) {
  const { error, omitted, result, state, waiting_reason } = task;
  // Shows the error of an earlier attempt, too, while the next one waits or runs.
  if (error !== null)
    return <span class={state === "FAILED" ? "cut bad-text" : "cut"}>{error.message}</span>;
  if (waiting_reason !== undefined) return <span class="cut quiet">{waiting_reason}</span>;
  if (state !== "SUCCEEDED") return null;
  if (omitted?.includes("result") === true) return <span class="quiet">a large result</span>;
  return result === null ? null : <code class="cut">{JSON.stringify(result)}</code>;
}

function moveByKey(event: KeyboardEvent & { readonly currentTarget: HTMLElement }): void {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const links = [...event.currentTarget.querySelectorAll<HTMLElement>("tbody th a:first-child")];
  const at = links.findIndex((link) => link.closest("tr")?.contains(document.activeElement));
  if (step === undefined || at < 0) return;
  event.preventDefault();
  links[Math.min(Math.max(at + step, 0), links.length - 1)]?.focus();
}
