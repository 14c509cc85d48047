/** Where everything is: the address holds the whole state of the page, so that it can be sent to somebody. */

const VIEWS = ["overview", "tasks", "task", "queues", "schedules", "nodes"] as const;
export type View = (typeof VIEWS)[number];

/** What a list of tasks is narrowed by, as the API and the address call it. */
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
