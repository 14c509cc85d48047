/** Tasks, newest first, filtered by the address; paged, with actions on one or many. */

import { useEffect, useState } from "preact/hooks";
import { formatCount } from "../../src/core/load/results/format.ts";
import { TASK_STATES, type TaskState } from "../../src/core/queue/states.ts";
import type { ClusterStatus, QueueInfo, Task } from "../../src/queue/api/types.ts";
import { useFragment } from "../shared/fragment.ts";
import { type Filter, filterOf, place } from "./address.ts";
import { call } from "./api.ts";
import { BulkBar } from "./bulk.tsx";
import { usePolled } from "./live.ts";
import { TaskTable } from "./task-table.tsx";

const TASKS_EVERY_MS = 1_000;
const QUEUES_EVERY_MS = 5_000;
const ROWS_PER_PAGE = 50;
/** Debounces a filter while the reader types. */
const TYPING_PAUSE_MS = 300;

export function TasksView({ status }: { readonly status: ClusterStatus | undefined }) {
  const fragment = useFragment();
  const filter = filterOf(fragment.get);
  const before = fragment.get("before") ?? undefined;
  const page = Number(fragment.get("page") ?? "1");
  const question = { ...filter, ...(before === undefined ? {} : { before }) };
  const key = JSON.stringify(question);
  const tasks = usePolled(key, TASKS_EVERY_MS, () =>
    // One more than shown: whether there is a next page.
    call<readonly Task[]>("list_tasks", { ...question, limit: ROWS_PER_PAGE + 1 }),
  );
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  useEffect(() => setSelected(new Set()), [key]);
  const shown = tasks.value?.slice(0, ROWS_PER_PAGE) ?? [];
  const more = (tasks.value?.length ?? 0) > ROWS_PER_PAGE;
  return (
    <>
      <h1 class="page-title">
        Tasks <span class="quiet">{countText(status, filter, page, shown.length)}</span>
      </h1>
      <StateTabs status={status} filter={filter} />
      <FilterBar status={status} filter={filter} />
      {tasks.problem !== undefined && <p class="bad-text">{tasks.problem}</p>}
      <BulkBar
        {...{ filter, selected }}
        clear={() => setSelected(new Set())}
        done={() => {
          setSelected(new Set());
          tasks.again();
        }}
      />
      <div aria-busy={tasks.old} class={tasks.old ? "waiting" : undefined}>
        {tasks.value === undefined ? (
          <p class="empty">Loading …</p>
        ) : shown.length === 0 ? (
          <p class="empty">
            {Object.keys(question).length === 0 ? "No tasks yet." : "No tasks here."}
          </p>
        ) : (
          <TaskTable tasks={shown} selected={selected} select={setSelected} />
        )}
      </div>
      <Pager
        newest={before === undefined ? undefined : place("tasks", filter)}
        older={
          more
            ? place("tasks", { ...filter, before: shown.at(-1)?.id, page: String(page + 1) })
            : undefined
        }
        page={page}
      />
    </>
  );
}

/** Totals are known by state only; a search covers the newest. */
function countText(
  status: ClusterStatus | undefined,
  { state, ...others }: Filter,
  page: number,
  shown: number,
): string {
  if (shown === 0 || status === undefined) return "";
  const first = (page - 1) * ROWS_PER_PAGE + 1;
  const rows = `${formatCount(first)}–${formatCount(first + shown - 1)}`;
  if (Object.keys(others).length > 0) return rows;
  const { counts } = status;
  const all = TASK_STATES.reduce((sum, one) => sum + counts[one], 0);
  return `${rows} of ${formatCount(state === undefined ? all : (counts[state as TaskState] ?? 0))}`;
}

interface FilterProps {
  readonly status: ClusterStatus | undefined;
  readonly filter: Filter;
}

function StateTabs({ status, filter }: FilterProps) {
  const tabs = [undefined, ...TASK_STATES].map((state) => ({
    state,
    title: state?.toLowerCase() ?? "all",
    count: state === undefined ? undefined : status?.counts[state],
  }));
  return (
    <nav class="tabs" aria-label="States">
      {tabs.map(({ count, state, title }) => (
        <a
          key={title}
          href={place("tasks", { ...filter, state })}
          aria-current={filter.state === state ? "true" : undefined}
        >
          {title}
          {count !== undefined && <span class="rail-mark"> {formatCount(count)}</span>}
        </a>
      ))}
    </nav>
  );
}

function FilterBar({ status, filter }: FilterProps) {
  const { value: queues = [] } = usePolled("queues", QUEUES_EVERY_MS, () =>
    call<readonly QueueInfo[]>("list_queues", {}),
  );
  const nodes = status?.nodes ?? [];
  const executors = [...new Set(nodes.flatMap((node) => node.executor_types))].sort();
  return (
    <search class="filters">
      <TextFilter
        name="search"
        label="Search"
        hint="id, executor, key, input or error"
        {...filter}
      />
      <TextFilter name="executor" label="Executor" choices={executors} {...filter} />
      <TextFilter
        name="queue"
        label="Queue"
        choices={queues.map(({ queue }) => queue)}
        {...filter}
      />
      <TextFilter
        name="node"
        label="Node"
        choices={nodes.map(({ node_id }) => node_id)}
        {...filter}
      />
      {filter.schedule !== undefined && <TextFilter name="schedule" label="Schedule" {...filter} />}
    </search>
  );
}

interface TextFilterProps extends Filter {
  readonly name: "search" | "executor" | "queue" | "node" | "schedule";
  readonly label: string;
  readonly hint?: string;
  readonly choices?: readonly string[];
}

/** Written to the address once the reader pauses; updated when the address changes. */
function TextFilter({ name, label, hint, choices, ...filter }: TextFilterProps) {
  const fragment = useFragment();
  const inAddress = filter[name] ?? "";
  const [text, setText] = useState(inAddress);
  useEffect(() => setText(inAddress), [inAddress]);
  useEffect(() => {
    if (text === inAddress) return;
    const timer = setTimeout(
      () => fragment.set({ [name]: text === "" ? null : text, before: null, page: null }),
      TYPING_PAUSE_MS,
    );
    return () => clearTimeout(timer);
  }, [text]);
  const list = choices === undefined ? undefined : `choices-${name}`;
  return (
    <label class={`filter-${name}`}>
      {label}
      <input
        type="search"
        placeholder={hint}
        list={list}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      {list !== undefined && (
        <datalist id={list}>
          {choices?.map((choice) => (
            <option key={choice} value={choice} />
          ))}
        </datalist>
      )}
    </label>
  );
}

interface PagerProps {
  readonly newest: string | undefined;
  readonly older: string | undefined;
  readonly page: number;
}

/** Tasks arrive at the front all the time, so a page begins below an id and not after a number of rows. */
function Pager({ newest, older, page }: PagerProps) {
  if (newest === undefined && older === undefined) return null;
  return (
    <nav class="pager" aria-label="Pages">
      {newest !== undefined && (
        <a class="button" href={newest}>
          Newest
        </a>
      )}
      {newest !== undefined && (
        <button type="button" class="button" onClick={() => history.back()}>
          Back
        </button>
      )}
      <span class="quiet">page {formatCount(page)}</span>
      {older !== undefined && (
        <a class="button" href={older}>
          Older
        </a>
      )}
    </nav>
  );
}
