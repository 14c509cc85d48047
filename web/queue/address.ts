/** Addresses of the page: the URL holds the whole state, so that a link can be shared. */

const VIEWS = ["overview", "tasks", "task", "queues", "schedules", "nodes"] as const;
export type View = (typeof VIEWS)[number];

/** Filters of a task list, named as in the API and in the address. */
const FILTERS = ["state", "executor", "queue", "node", "schedule", "search"] as const;
export type Filter = Readonly<Partial<Record<(typeof FILTERS)[number], string>>>;

export function viewOf(section: string): View {
  return VIEWS.find((one) => one === section) ?? "overview";
}

export function place(view: View, params: Readonly<Record<string, string | undefined>> = {}) {
  const given = Object.entries(params).flatMap(([name, value]) =>
    value === undefined || value === "" ? [] : [[name, value]],
  );
  const query = new URLSearchParams(given);
  query.sort();
  return `#${view}${query.size === 0 ? "" : `?${query}`}`;
}

export function filterOf(get: (key: string) => string | null): Filter {
  return Object.fromEntries(
    FILTERS.flatMap((name) => {
      const value = get(name);
      return value === null || value === "" ? [] : [[name, value]];
    }),
  );
}
