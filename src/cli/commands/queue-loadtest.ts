/** Load tests as tasks: `queue loadtest` submits one, `queue report` downloads its files. */

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { QueueError } from "../../core/queue/errors.ts";
import type { QueueClient, TaskFile } from "../../queue/index.ts";
import { openPage } from "../open-page.ts";
import { variables } from "../option-values.ts";
import { complain } from "../print.ts";
import { add, line, parseWhen, parseWhole, print, run, type Shared } from "./queue-command.ts";
import { type ScheduleFlags, scheduleOptions, withScheduleFlags } from "./queue-schedules.ts";
import { follow, showTask } from "./queue-show.ts";

interface LoadtestFlags extends Shared, ScheduleFlags {
  readonly env?: readonly (readonly [string, string])[];
  readonly cluster?: true;
  readonly acceptFailure?: true;
  readonly key?: string;
  readonly priority?: number;
  readonly runAfter?: string | number;
  readonly maxAttempts?: number;
  readonly schedule?: string;
  readonly cron?: string;
  readonly wait?: true;
}

interface ReportFlags extends Shared {
  readonly out: string;
  readonly schedule?: string;
  readonly limit: number;
  readonly open?: true;
}

const REPORT = "report.html";

export function registerLoadtests(queue: Command): void {
  const what =
    "run a workflow file, or load a URL, as a task; what follows -- are options of `hyperscale run`";
  withScheduleFlags(add(queue, "loadtest", what, "<target> [options...]"))
    .option("-e, --env <name=value>", "a variable of the file's code; repeatable", variables)
    .option("--cluster", "on the cluster that the node knows, instead of on the node")
    .option("--accept-failure", "a failed threshold does not fail the task")
    .option("--key <key>", "idempotency key: the same key and content is one task")
    .option("--priority <n>", "higher runs first (default: 0)", parseWhole)
    .option("--run-after <when>", "ISO time, or seconds from now", parseWhen)
    .option("--max-attempts <n>", "attempts before it fails (default: 3)", parseWhole)
    .option("--schedule <id>", "do not run it now but by --cron, under this name")
    .option("--cron <cron>", "five fields")
    .option("--wait", "follow it to its end; exit 3 when it does not succeed")
    .action(run(submitOrSchedule));
  add(queue, "report", "fetch what load tests left with their tasks: summary and report", "[id]")
    .option("--out <dir>", "where to put it, one folder per task", "results")
    .option("--schedule <id>", "of the newest tasks of a schedule, for `hyperscale trends`")
    .option("--limit <n>", "of a schedule: how many", parseWhole, 20)
    .option("--open", "open the report")
    .action(run(fetchReports));
}

async function submitOrSchedule(
  client: QueueClient,
  flags: LoadtestFlags,
  target: string,
  args: readonly string[],
): Promise<unknown> {
  const { loadtestRequest } = await import("../../queue/index.ts");
  const request = await loadtestRequest(client, target, {
    ...(args.length === 0 ? {} : { args }),
    ...(flags.env === undefined ? {} : { env: Object.fromEntries(flags.env) }),
    ...(flags.cluster === true ? { cluster: true } : {}),
    ...(flags.acceptFailure === true ? { onFailedThreshold: "succeed" } : {}),
    onWarning: complain,
    idempotency_key: flags.key,
    priority: flags.priority,
    run_after: flags.runAfter,
    max_attempts: flags.maxAttempts,
  });
  if (flags.schedule !== undefined || flags.cron !== undefined) {
    if (flags.schedule === undefined || flags.cron === undefined)
      throw new QueueError("INVALID_PARAMS", "--schedule and --cron go together");
    await client.putSchedule(flags.schedule, flags.cron, request, scheduleOptions(flags));
    if (flags.json) return print({ schedule_id: flags.schedule, cron: flags.cron });
    return line(`schedule ${flags.schedule}: ${flags.cron}`);
  }
  if (Object.keys(scheduleOptions(flags)).length > 0)
    throw new QueueError("INVALID_PARAMS", "--time-zone and --catch-up are of a --schedule");
  const task = await client.submit(request);
  return flags.wait === true ? follow(client, flags, task.id) : showTask(task, flags);
}

async function fetchReports(client: QueueClient, flags: ReportFlags, id?: string): Promise<void> {
  const ids = id === undefined ? await tasksOf(client, flags) : [id];
  const written: string[] = [];
  for (const one of ids) written.push(...(await fetchFiles(client, one, flags.out)));
  if (written.length === 0)
    throw new QueueError(
      "NOT_FOUND",
      id === undefined ? "these tasks have no files" : `task ${id} has no files`,
    );
  if (flags.json) print({ files: written });
  else for (const file of written) line(file);
  const report = written.find((file) => file.endsWith(REPORT));
  if (flags.open === true && report !== undefined) await openPage(report);
}

async function tasksOf(client: QueueClient, flags: ReportFlags): Promise<readonly string[]> {
  if (flags.schedule === undefined)
    throw new QueueError("INVALID_PARAMS", "name a task, or a schedule with --schedule");
  const tasks = await client.list({ schedule: flags.schedule, limit: flags.limit });
  // The newest is written last: `trends` orders runs by that.
  return tasks.map((task) => task.id).reverse();
}

async function fetchFiles(
  client: QueueClient,
  id: string,
  out: string,
): Promise<readonly string[]> {
  const files: readonly TaskFile[] = await client.files(id);
  const folder = join(out, `task-${id}`);
  if (files.length > 0) mkdirSync(folder, { recursive: true });
  const written: string[] = [];
  for (const file of files) {
    const path = join(folder, file.name);
    writeFileSync(path, await client.load(file));
    written.push(path);
  }
  return written;
}
