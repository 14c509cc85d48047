/** `hyperscale queue submit-graph`: tasks of a file that depend on each other, stored together or not at all. */

import type { Command } from "commander";
import { headedTable } from "../../core/base/text-table.ts";
import { EXIT_TASK_FAILED } from "../../host/exit-codes.ts";
import type { GraphSubmit, QueueClient, TaskState } from "../../queue/index.ts";
import { complain } from "../print.ts";
import { add, line, print, readInput, run, type Shared } from "./queue-command.ts";
import { brief } from "./queue-show.ts";

/** Tasks awaited at once. */
const WAITS_AT_ONCE = 20;

interface GraphFlags extends Shared {
  readonly key?: string;
  readonly wait?: boolean;
}

export function registerGraph(queue: Command): void {
  add(
    queue,
    "submit-graph",
    'submit tasks that name each other in depends_on, all or none: {"NAME": TASK, …} as JSON',
    "<file>",
  )
    .option("--key <key>", "idempotency key: the same key and content is one graph")
    .option("--wait", "wait for all of them; exit 3 when one does not succeed")
    .action(
      run(async (client, options: GraphFlags, file: string) => {
        const tasks = readInput(file === "-" ? file : `@${file}`);
        const key = options.key === undefined ? {} : { idempotency_key: options.key };
        const graph = await client.submitGraph(tasks as Record<string, GraphSubmit>, key);
        if (!graph.created)
          complain("note: the key belongs to this earlier graph; nothing was added");
        if (options.wait === true) return showEnds(client, graph.tasks, options);
        if (options.json) return print(graph);
        const rows = Object.entries(graph.tasks).map(([name, { id }]) => [name, id]);
        line(headedTable(["name", "id"], rows));
      }),
    );
}

type References = Readonly<Record<string, { readonly id: string }>>;

interface End {
  readonly id: string;
  readonly state: TaskState;
  readonly error: string | null;
  readonly text: string;
}

/** Outcome of each; inputs and results are left out. */
async function showEnds(client: QueueClient, tasks: References, { json }: Shared): Promise<number> {
  const ends = new Map<string, End | undefined>(
    Object.keys(tasks).map((name) => [name, undefined]),
  );
  const next = Object.entries(tasks).values();
  const waiting = Array.from({ length: WAITS_AT_ONCE }, async () => {
    for (const [name, { id }] of next) {
      const task = await client.wait(id);
      const error = task.error?.message ?? null;
      ends.set(name, { id, state: task.state, error, text: brief(task) });
    }
  });
  await Promise.all(waiting);
  const rows = [...ends].flatMap(([name, end]) => (end === undefined ? [] : [{ name, ...end }]));
  if (json) print(rows.map(({ text: _, ...row }) => row));
  else {
    const columns = ["name", "id", "state", "result or error"];
    line(
      headedTable(
        columns,
        rows.map(({ name, id, state, text }) => [name, id, state, text]),
      ),
    );
  }
  return rows.every(({ state }) => state === "SUCCEEDED") ? 0 : EXIT_TASK_FAILED;
}
