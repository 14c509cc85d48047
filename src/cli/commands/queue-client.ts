/** The client half of `hyperscale queue`: each command is one call to a node, as a table or as JSON. */

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Command, InvalidArgumentError, Option } from "commander";
import { formatDuration } from "../../core/base/duration.ts";
import { errorText } from "../../core/base/error-text.ts";
import { clean } from "../../core/base/terminal-text.ts";
import { headedTable } from "../../core/base/text-table.ts";
import { TASK_STATES } from "../../core/queue/states.ts";
import { readTokenFile } from "../../host/control/token.ts";
import { EXIT_FAILURE, EXIT_TASK_FAILED, EXIT_USAGE } from "../../host/exit-codes.ts";
import type {
  FollowMessage,
  QueueClient,
  SubmitRequest,
  Task,
  TaskEvent,
} from "../../queue/index.ts";
import { variables } from "../option-values.ts";
import { complain, jsonText } from "../print.ts";

/** In a node's data directory: the token of a node that was given none. */
export const TOKEN_FILE = "token";
const DEFAULT_TOKEN_FILE = join(".hyperscale", "queue", TOKEN_FILE);

interface Shared {
  readonly url: string;
  readonly tokenFile?: string;
  readonly json?: boolean;
}

export function registerQueueClient(queue: Command): void {
  registerSubmit(queue);
  add(queue, "status", "leader, nodes and counts; with an id, one task", "[id]").action(
    run(async (client, options: Shared, id?: string) => {
      if (id !== undefined) return showTask(await client.get(id), options);
      const status = await client.status();
      if (options.json) return print(status);
      const { leader, nodes, counts } = status;
      line(
        leader === null
          ? "leader   none"
          : `leader   ${leader.node_id} (epoch ${leader.epoch}) ${leader.url}`,
      );
      line(
        `nodes    ${nodes.length} (${nodes.filter((node) => node.status === "healthy").length} healthy)`,
      );
      line(
        `tasks    ${Object.entries(counts)
          .map(([state, count]) => `${state} ${count}`)
          .join("   ")}`,
      );
    }),
  );
  registerList(queue);
  add(queue, "cancel", "cancel a task that has not ended", "<id>")
    .option("--reason <text>", "kept in the task's history")
    .action(
      run(async (client, options: Shared & { reason?: string }, id: string) =>
        showTask(await client.cancel(id, options.reason), options),
      ),
    );
  add(queue, "requeue", "send a FAILED or CANCELED task back to the queue", "<id>").action(
    run(async (client, options: Shared, id: string) => showTask(await client.requeue(id), options)),
  );
  add(
    queue,
    "follow",
    "every transition and message of a task, live, until it ends",
    "<id>",
  ).action(run(async (client, options: Shared, id: string) => follow(client, options, id)));
  add(queue, "events", "the ordered history of a task", "<id>").action(
    run(async (client, options: Shared, id: string) => {
      const events = await client.events(id);
      if (options.json) return print(events);
      line(
        headedTable(
          ["time", "event", "from", "to", "attempt", "node", "epoch", "details"],
          events.map(eventRow),
        ),
      );
    }),
  );
  registerNodes(queue);
  registerSchedules(queue);
}

function registerNodes(queue: Command): void {
  add(queue, "nodes", "the nodes of the cluster", "").action(
    run(async (client, options: Shared) => {
      const { nodes, leader } = await client.status();
      if (options.json) return print(nodes);
      line(
        headedTable(
          ["node", "status", "role", "parallel", "executors", "capabilities", "url"],
          nodes.map((node) => [
            node.node_id,
            node.status,
            node.node_id === leader?.node_id ? "leader" : workingRole(node.role),
            String(node.max_parallel),
            node.executor_types.join(" "),
            Object.entries(node.capabilities)
              .map(([name, value]) => `${name}=${value}`)
              .join(" "),
            node.url ?? "",
          ]),
        ),
      );
    }),
  );
}

/** `auto` is what a node was told, not what it is. */
function workingRole(role: string): string {
  return role === "auto" ? "worker" : role;
}

function registerSubmit(queue: Command): void {
  add(queue, "submit", "submit a task; input is JSON, @file or - for stdin", "<executor> [input]")
    .option("--key <key>", "idempotency key: the same key and content is one task")
    .option("--unique <key>", "at most one live task with this key")
    .option("--priority <n>", "higher runs first (default: 0)", parseWhole)
    .option("--run-after <when>", "ISO time, or seconds from now", parseWhen)
    .option("--max-attempts <n>", "attempts before it fails (default: 3)", parseWhole)
    .option(
      "--placement <json>",
      'placement constraints, e.g. \'{"requires_capabilities":{"gpu":"nvidia"}}\'',
      parseJson,
    )
    .option("--depends-on <id...>", "tasks that must succeed first")
    .option(
      "-e, --env <name=value>",
      "of a loadtest: an environment variable of the file's code; may be given again",
      variables,
    )
    .option("--wait", "follow it to its end; exit 3 when it does not succeed")
    .action(
      run(
        async (
          client,
          options: Shared & Record<string, unknown>,
          executor: string,
          input?: string,
        ) => {
          const request: Record<string, unknown> = {
            executor,
            input: withVariables(executor, readInput(input), options["env"] as Variables),
          };
          const names = {
            key: "idempotency_key",
            unique: "unique_key",
            priority: "priority",
            runAfter: "run_after",
            maxAttempts: "max_attempts",
            placement: "placement_constraints",
            dependsOn: "depends_on",
          };
          for (const [option, field] of Object.entries(names)) {
            if (options[option] !== undefined) request[field] = options[option];
          }
          const task = await client.submit(request as SubmitRequest);
          if (task.created === false)
            complain(`note: the key belongs to task ${task.id}; nothing was added`);
          if (task.waiting_reason?.startsWith("no "))
            complain(`note: ${clean(task.waiting_reason)}`);
          if (options["wait"] !== true) return showTask(task, options);
          return follow(client, options, task.id);
        },
      ),
    );
}

type Variables = readonly (readonly [string, string])[] | undefined;

/** `-e` is short for `env` in the input of a load test, and wins over it. */
function withVariables(executor: string, input: unknown, given: Variables): unknown {
  if (given === undefined) return input;
  if (executor !== "loadtest")
    throw new Error(`-e sets variables of a loadtest; "${executor}" gets what is in its input`);
  const { env, ...rest } = Object(input) as { readonly env?: object };
  return { ...rest, env: { ...env, ...Object.fromEntries(given) } };
}

function registerList(queue: Command): void {
  add(queue, "list", "tasks, newest first", "")
    .addOption(new Option("--state <state...>", "only these states").choices(TASK_STATES))
    .option("--executor <name>", "only of this executor")
    .option("--node <id>", "only last assigned to this node")
    .option("--search <text>", "in id, executor, key or input")
    .option("--before <id>", "only older ones: the next page")
    .option("--limit <n>", "how many (default: 20)", parseWhole)
    .action(
      run(async (client, options: Shared & Record<string, unknown>) => {
        const filter: Record<string, unknown> = { limit: options["limit"] ?? 20 };
        if (options["state"] !== undefined) filter["states"] = options["state"];
        for (const name of ["executor", "node", "search", "before"]) {
          if (options[name] !== undefined) filter[name] = options[name];
        }
        const tasks = await client.list(filter);
        if (options.json) return print(tasks);
        if (tasks.length === 0) return line("no tasks");
        line(
          headedTable(
            ["id", "executor", "state", "attempt", "node", "created", "took", "result or error"],
            tasks.map((task) => [
              task.id,
              task.executor,
              task.state,
              `${task.attempt_id}/${attemptsAllowed(task)}`,
              task.last_assigned_node ?? "",
              shortTime(task.created_at),
              took(task),
              brief(task),
            ]),
          ),
        );
      }),
    );
}

function registerSchedules(queue: Command): void {
  const schedule = queue
    .command("schedule")
    .description("tasks by the clock: one enqueue per tick over the cluster");
  add(
    schedule,
    "put",
    "make or change a schedule; cron has five fields, in UTC",
    "<id> <cron> <executor> [input]",
  )
    .option("--unique <key>", "skip a tick while the last one's task is live")
    .action(
      run(
        async (
          client,
          options: Shared & { unique?: string },
          id: string,
          cron: string,
          executor: string,
          input?: string,
        ) => {
          const task = {
            executor,
            input: readInput(input),
            ...(options.unique === undefined ? {} : { unique_key: options.unique }),
          };
          await client.putSchedule(id, cron, task);
          if (options.json) print({ schedule_id: id, cron });
          else line(`schedule ${id}: ${cron}`);
        },
      ),
    );
  add(schedule, "remove", "remove a schedule", "<id>").action(
    run(async (client, options: Shared, id: string) => {
      await client.removeSchedule(id);
      if (options.json) print({ schedule_id: id });
      else line(`schedule ${id} removed`);
    }),
  );
  add(schedule, "list", "all schedules", "").action(
    run(async (client, options: Shared) => {
      const schedules = await client.schedules();
      if (options.json) return print(schedules);
      if (schedules.length === 0) return line("no schedules");
      line(
        headedTable(
          ["schedule", "cron", "next", "last", "last task"],
          schedules.map((one) => [
            one.schedule_id,
            one.cron,
            one.next_tick,
            one.last_tick ?? "",
            one.last_task ?? "",
          ]),
        ),
      );
    }),
  );
}

function add(parent: Command, name: string, description: string, args: string): Command {
  return parent
    .command(args === "" ? name : `${name} ${args}`)
    .description(description)
    .addOption(
      new Option("--url <url>", "any node of the queue")
        .default("http://127.0.0.1:7600")
        .env("HYPERSCALE_QUEUE_URL"),
    )
    .addOption(
      new Option(
        "--token-file <file>",
        `file with the bearer token (default: ${DEFAULT_TOKEN_FILE}, if it is there)`,
      ).env("HYPERSCALE_QUEUE_TOKEN_FILE"),
    )
    .option("--json", "print JSON");
}

function tokenOf({ tokenFile }: Shared): string | undefined {
  if (tokenFile !== undefined) return readTokenFile(tokenFile);
  return existsSync(DEFAULT_TOKEN_FILE) ? readTokenFile(DEFAULT_TOKEN_FILE) : undefined;
}

type Action = (client: QueueClient, options: never, ...args: never[]) => Promise<unknown>;

/** Opens the client, runs the command, turns errors into one line and an exit code. */
function run(action: Action) {
  return async (...given: unknown[]): Promise<void> => {
    const args = given.slice(0, -2);
    const options = given.at(-2) as Shared;
    const { QueueClient, QueueError } = await import("../../queue/index.ts");
    let client: QueueClient | undefined;
    try {
      client = new QueueClient(options.url, {
        token: tokenOf(options),
      });
      const code = await (action as (...all: unknown[]) => Promise<unknown>)(
        client,
        options,
        ...args,
      );
      if (typeof code === "number") process.exitCode = code;
    } catch (error) {
      const known = error instanceof QueueError ? error : undefined;
      const message = errorText(error);
      if (options.json) print({ error: { code: known?.code ?? "INTERNAL", message } });
      complain(`hyperscale queue: ${clean(message)}`);
      process.exitCode =
        known === undefined || known.code === "INVALID_PARAMS" ? EXIT_USAGE : EXIT_FAILURE;
    } finally {
      client?.close();
    }
  };
}

async function follow(client: QueueClient, options: Shared, id: string): Promise<number> {
  let lastEvent = 0;
  const ended = await client.wait(id, undefined, (message) => {
    // After a gap the history comes again from its beginning.
    const { event_id: event } = message.data as { readonly event_id?: number };
    if (event !== undefined && event <= lastEvent) return;
    lastEvent = event ?? lastEvent;
    if (options.json) print(message);
    else line(followLine(message));
  });
  if (options.json) print({ event: "end", data: ended });
  else showTask(ended, options);
  return ended.state === "SUCCEEDED" ? 0 : EXIT_TASK_FAILED;
}

function followLine(message: FollowMessage): string {
  if (message.event !== "transition") {
    const { message: words } = message.data as { readonly message: unknown };
    return `${message.event.padEnd(12)} ${typeof words === "string" ? words : JSON.stringify(words)}`;
  }
  const [time, type, from, to, attempt, node] = eventRow(message.data as TaskEvent);
  const move = from === to || from === "" ? to : `${from} -> ${to}`;
  return `${time}  ${type?.padEnd(12)} ${move?.padEnd(22)} attempt ${attempt}  ${node}`;
}

function eventRow(event: TaskEvent): readonly string[] {
  return [
    event.timestamp.slice(11, 23),
    event.event_type,
    event.old_state ?? "",
    event.new_state ?? "",
    String(event.attempt_id ?? ""),
    event.node_id ?? "",
    String(event.epoch),
    event.details === null ? "" : JSON.stringify(event.details).slice(0, 80),
  ];
}

function showTask(task: Task, options: Shared): void {
  if (options.json) {
    print(task);
    return;
  }
  const rows: [string, string][] = [
    ["task", task.id],
    ["executor", task.executor],
    ["state", task.state],
    ["attempt", `${task.attempt_id} of ${attemptsAllowed(task)}`],
    ["node", task.last_assigned_node ?? ""],
    ["created", task.created_at],
    ["started", task.started_at ?? ""],
    ["finished", task.finished_at ?? ""],
    ["waits", task.waiting_reason ?? ""],
    ["input", JSON.stringify(task.input)],
    ["result", task.result === null ? "" : JSON.stringify(task.result)],
    ["error", task.error?.message ?? ""],
  ];
  for (const [name, value] of rows) if (value !== "") line(`${name.padEnd(9)} ${value}`);
}

/** The highest number an attempt can have: those that do not count are on top. */
function attemptsAllowed(task: Task): number {
  return task.max_attempts + task.attempts_forgiven;
}

function took(task: Task): string {
  if (task.started_at === null) return "";
  const end = task.finished_at ?? (task.state === "RUNNING" ? new Date().toISOString() : null);
  return end === null
    ? ""
    : formatDuration(Math.max(0, Date.parse(end) - Date.parse(task.started_at)));
}

function brief(task: Task): string {
  const result = task.result === null ? "" : JSON.stringify(task.result);
  const text = task.error?.message ?? (task.omitted?.includes("result") ? "(large)" : result);
  return text.length > 50 ? `${text.slice(0, 49)}…` : text;
}

function shortTime(iso: string): string {
  return iso.slice(0, 19).replace("T", " ");
}

function readInput(text: string | undefined): unknown {
  if (text === undefined) return null;
  const json =
    text === "-"
      ? readFileSync(0, "utf8")
      : text.startsWith("@")
        ? readFileSync(text.slice(1), "utf8")
        : text;
  try {
    return JSON.parse(json);
  } catch (error) {
    throw new Error(`the input is not JSON: ${errorText(error)}`);
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new InvalidArgumentError(`not JSON: ${errorText(error)}`);
  }
}

function parseWhole(text: string): number {
  if (!/^-?\d{1,9}$/.test(text)) throw new InvalidArgumentError("write a whole number");
  return Number(text);
}

function parseWhen(text: string): string | number {
  return /^\d+(\.\d+)?$/.test(text) ? Number(text) : text;
}

function print(value: unknown): void {
  process.stdout.write(`${jsonText(value)}\n`);
}

function line(text: string): void {
  // Names, results and errors are other people's words: no escape code of theirs reaches the terminal.
  for (const part of text.split("\n")) process.stdout.write(`${clean(part)}\n`);
}
