/** Bulk actions: on selected tasks, or on all that match the filters. */

import { formatCount } from "../../src/core/load/results/format.ts";
import type { Filter } from "./address.ts";
import { call } from "./api.ts";
import { useDeeds } from "./confirm.tsx";

interface Props {
  readonly filter: Filter;
  readonly selected: ReadonlySet<string>;
  readonly clear: () => void;
  readonly done: () => void;
}

interface Action {
  readonly method: "cancel_tasks" | "requeue_tasks" | "delete_tasks";
  readonly verb: string;
  readonly done: string;
  readonly danger: boolean;
  /** Tasks it changes. */
  readonly which: string;
  readonly states: readonly string[];
}

const ACTIONS: readonly Action[] = [
  {
    method: "requeue_tasks",
    verb: "Retry",
    done: "queued again",
    danger: false,
    which: "failed and cancelled",
    states: ["FAILED", "CANCELLED"],
  },
  {
    method: "cancel_tasks",
    verb: "Cancel",
    done: "cancelled",
    danger: true,
    which: "queued and running",
    states: ["QUEUED", "RUNNING"],
  },
  {
    method: "delete_tasks",
    verb: "Delete",
    done: "deleted",
    danger: true,
    which: "ended",
    states: ["SUCCEEDED", "FAILED", "CANCELLED"],
  },
];

export function BulkBar({ filter, selected, clear, done }: Props) {
  const { ask } = useDeeds();
  const some = selected.size > 0;
  const fits = ({ states }: Action) => filter.state === undefined || states.includes(filter.state);
  const actions = ACTIONS.filter(fits);
  const narrowed = Object.keys(filter).length > 0;
  const begin = (action: Action): void => {
    const count = formatCount(selected.size);
    const target = some
      ? `the ${action.which} ones of ${count} chosen ${selected.size === 1 ? "task" : "tasks"}`
      : `all ${action.which} tasks${narrowed ? ` with ${filterText(filter)}` : ""}`;
    ask({
      question: `${action.verb} ${target}?`,
      button: action.verb,
      danger: action.danger,
      perform: async () => {
        const changed = some
          ? await changeNamed(action, [...selected])
          : await changeAll(action, filter);
        done();
        return `${formatCount(changed)} ${changed === 1 ? "task" : "tasks"} ${action.done}.`;
      },
    });
  };
  return (
    <div class="bulk">
      <span class={some ? undefined : "quiet"}>
        {some ? `${formatCount(selected.size)} chosen` : "All matching"}:
      </span>
      {actions.map((action) => (
        <button
          key={action.method}
          type="button"
          class={action.danger ? "button danger" : "button"}
          onClick={() => begin(action)}
        >
          {action.verb} <span class="hidden">{some ? "the chosen tasks" : "all that fit"}</span>
        </button>
      ))}
      {some && (
        <button type="button" class="button" onClick={clear}>
          Choose none
        </button>
      )}
    </div>
  );
}

function filterText(filter: Filter): string {
  return Object.entries(filter)
    .map(([name, value]) => `${name} “${name === "state" ? value.toLowerCase() : value}”`)
    .join(", ");
}

async function changeNamed({ method }: Action, ids: readonly string[]): Promise<number> {
  return (await call<{ changed: number }>(method, { ids })).changed;
}

/** One call changes a bounded number; the next continues after it. */
async function changeAll({ method }: Action, filter: Filter): Promise<number> {
  let changed = 0;
  for (let before: string | null | undefined; before !== null; ) {
    const at = before === undefined ? {} : { before };
    const step = await call<{ changed: number; next: string | null }>(method, { ...filter, ...at });
    changed += step.changed;
    before = step.next;
  }
  return changed;
}
