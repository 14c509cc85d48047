/** Client half of `hyperscale queue`: each command is one call to a node, as a table or as JSON. */

import { type Command, Option } from "commander";
import { clean } from "../../core/base/terminal-text.ts";
import { headedTable } from "../../core/base/text-table.ts";
import { attemptText } from "../../core/queue/attempts.ts";
import { TASK_STATES } from "../../core/queue/states.ts";
import type { SubmitRequest } from "../../queue/index.ts";
import { variables } from "../option-values.ts";
import { complain } from "../print.ts";
import { registerAttempts } from "./queue-attempts.ts";
import { registerBulk } from "./queue-bulk.ts";
import {
  add,
  line,
  parseBackoff,
  parseJson,
  parseSeconds,
  parseWhen,
  parseWhole,
  print,
  readInput,
  run,
  type Shared,
} from "./queue-command.ts";
import { registerGraph } from "./queue-graph.ts";
import { registerLimits } from "./queue-limits.ts";
import { registerLoadtests } from "./queue-loadtest.ts";
import { registerSchedules } from "./queue-schedules.ts";
import { brief, eventRow, follow, shortTime, showTask, took } from "./queue-show.ts";

export function registerQueueClient(queue: Command): void {
  registerSubmit(queue);
  registerGraph(queue);
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
  registerBulk(queue);
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
  registerAttempts(queue);
  registerNodes(queue);
  registerSchedules(queue);
  registerLoadtests(queue);
  registerLimits(queue);
}

function registerNodes(queue: Command): void {
  add(queue, "nodes", "the nodes of the cluster", "").action(
    run(async (client, options: Shared) => {
      const { nodes, leader, leases } = await client.status();
      if (options.json)
        return print(nodes.map((node) => ({ ...node, leases: leases[node.node_id] ?? 0 })));
      line(
        headedTable(
          ["node", "status", "role", "parallel", "leases", "executors", "capabilities", "url"],
          nodes.map((node) => [
            node.node_id,
            node.status,
            node.node_id === leader?.node_id ? "leader" : workingRole(node.role),
            String(node.max_parallel),
            String(leases[node.node_id] ?? 0),
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

/** `auto` is the assigned role, not the current one. */
function workingRole(role: string): string {
  return role === "auto" ? "worker" : role;
}

function registerSubmit(queue: Command): void {
  add(queue, "submit", "submit a task; input is JSON, @file or - for stdin", "<executor> [input]")
    .option("--key <key>", "idempotency key: the same key and content is one task")
    .option("--unique <key>", "at most one live task with this key")
    .option("--queue <name>", "a named queue, whose limits hold for it")
    .option("--priority <n>", "higher runs first (default: 0)", parseWhole)
    .option("--run-after <when>", "ISO time, or seconds from now", parseWhen)
    .option("--max-attempts <n>", "attempts before it fails (default: 3)", parseWhole)
    .option("--backoff <rule>", "waits after failures: linear,base=5s,cap=2m", parseBackoff)
    .option(
      "--placement <json>",
      'placement constraints, e.g. \'{"requires_capabilities":{"gpu":"nvidia"}}\'',
      parseJson,
    )
    .option(
      "--attempt-timeout <duration>",
      "that one execution may take (2s, 5m; a number is seconds)",
      parseSeconds,
    )
    .option(
      "--timeout <duration>",
      "after which it is cancelled unless it has ended (likewise)",
      parseSeconds,
    )
    .option("--depends-on <id...>", "tasks that must succeed first")
    .option(
      "-e, --env <name=value>",
      "of a loadtest: an environment variable of the file's code; repeatable",
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
            queue: "queue",
            priority: "priority",
            runAfter: "run_after",
            maxAttempts: "max_attempts",
            backoff: "backoff",
            placement: "placement_constraints",
            dependsOn: "depends_on",
            attemptTimeout: "attempt_timeout",
            timeout: "timeout",
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

/** `-e` is short for `env` in the input of a load test, and takes precedence. */
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
    .option("--queue <name>", "only of this queue")
    .option("--search <text>", "in id, executor, keys, input or error")
    .option("--before <id>", "only older ones: the next page")
    .option("--limit <n>", "how many (default: 20)", parseWhole)
    .action(
      run(async (client, options: Shared & Record<string, unknown>) => {
        const filter: Record<string, unknown> = { limit: options["limit"] ?? 20 };
        if (options["state"] !== undefined) filter["states"] = options["state"];
        for (const name of ["executor", "node", "queue", "search", "before"]) {
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
              attemptText(task),
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
