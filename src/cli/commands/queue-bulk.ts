/** `queue cancel`, `requeue` and `delete`: one task by its id, or all that match a filter. */

import { type Command, Option } from "commander";
import { QueueError } from "../../core/queue/errors.ts";
import { TASK_STATES } from "../../core/queue/states.ts";
import type { BulkFilter, QueueClient, Task } from "../../queue/index.ts";
import { add, line, print, run, type Shared } from "./queue-command.ts";
import { showTask } from "./queue-show.ts";

interface BulkFlags extends Shared {
  readonly all?: true;
  readonly state?: readonly (typeof TASK_STATES)[number][];
  readonly executor?: string;
  readonly node?: string;
  readonly schedule?: string;
  readonly queue?: string;
  readonly search?: string;
  readonly reason?: string;
}

interface BulkCommand {
  readonly name: string;
  readonly description: string;
  readonly done: string;
  /** Undefined when nothing of the task is left to show. */
  readonly one: (client: QueueClient, id: string, flags: BulkFlags) => Promise<Task | undefined>;
  readonly many: (client: QueueClient, filter: BulkFilter, flags: BulkFlags) => Promise<number>;
}

const COMMANDS: readonly BulkCommand[] = [
  {
    name: "cancel",
    description: "cancel a task that has not ended, or all that fit",
    done: "cancelled",
    one: (client, id, { reason }) => client.cancel(id, reason),
    many: (client, filter, { reason }) => client.cancelAll(filter, reason),
  },
  {
    name: "requeue",
    description: "send a FAILED or CANCELLED task back to the queue, or all that fit",
    done: "sent back",
    one: (client, id) => client.requeue(id),
    many: (client, filter) => client.requeueAll(filter),
  },
  {
    name: "delete",
    description: "remove a task that has ended, or all that fit",
    done: "removed",
    one: async (client, id) => {
      await client.delete(id);
      return undefined;
    },
    many: (client, filter) => client.deleteAll(filter),
  },
];

export function registerBulk(queue: Command): void {
  for (const one of COMMANDS) {
    const command = add(queue, one.name, one.description, "[id]")
      .option("--all", "all that fit the filters below")
      .addOption(new Option("--state <state...>", "only these states").choices(TASK_STATES))
      .option("--executor <name>", "only of this executor")
      .option("--node <id>", "only last assigned to this node")
      .option("--schedule <id>", "only of this schedule")
      .option("--queue <name>", "only of this queue")
      .option("--search <text>", "in id, executor, keys, input or error");
    if (one.name === "cancel") command.option("--reason <text>", "kept in the task's history");
    command.action(run((client, flags: BulkFlags, id?: string) => perform(client, one, flags, id)));
  }
}

async function perform(
  client: QueueClient,
  command: BulkCommand,
  flags: BulkFlags,
  id: string | undefined,
): Promise<void> {
  if (id !== undefined) {
    const task = await command.one(client, id, flags);
    return task === undefined ? showChanged(command, 1, flags) : showTask(task, flags);
  }
  if (flags.all !== true)
    throw new QueueError("INVALID_PARAMS", "name a task, or give --all and filters");
  const { state, executor, node, schedule, queue, search } = flags;
  const filter: BulkFilter = {
    ...(state === undefined ? {} : { states: state }),
    ...(executor === undefined ? {} : { executor }),
    ...(node === undefined ? {} : { node }),
    ...(schedule === undefined ? {} : { schedule }),
    ...(queue === undefined ? {} : { queue }),
    ...(search === undefined ? {} : { search }),
  };
  showChanged(command, await command.many(client, filter, flags), flags);
}

function showChanged(command: BulkCommand, changed: number, flags: BulkFlags): void {
  if (flags.json) print({ changed });
  else line(`${changed} ${changed === 1 ? "task" : "tasks"} ${command.done}`);
}
