/** `queue show` and `queue logs`: executions of a task, and their logs. */

import type { Command } from "commander";
import { formatDuration } from "../../core/base/duration.ts";
import type { TaskAttempt } from "../../queue/index.ts";
import { add, line, parseWhole, print, run, type Shared } from "./queue-command.ts";
import { shortTime, showTask, wordsOf } from "./queue-show.ts";

export function registerAttempts(queue: Command): void {
  add(
    queue,
    "show",
    "a task with all its attempts: where each ran, its error and stack",
    "<id>",
  ).action(
    run(async (client, options: Shared, id: string) => {
      const [task, attempts] = await Promise.all([client.get(id), client.attempts(id)]);
      if (options.json) return print({ ...task, attempts });
      showTask(task, options);
      for (const attempt of attempts) showAttempt(attempt);
    }),
  );
  add(queue, "logs", "the lines that the executions of a task logged, and are kept", "<id>")
    .option("--attempt <n>", "only of this attempt", parseWhole)
    .action(
      run(async (client, options: Shared & { attempt?: number }, id: string) => {
        for await (const one of client.logs(id, options.attempt)) {
          if (options.json) print(one);
          else line(`${shortTime(one.timestamp)}  ${one.attempt_id}  ${one.text}`);
        }
      }),
    );
}

function showAttempt(attempt: TaskAttempt): void {
  const { attempt_id, outcome, node_id, started_at, ended_at, error, progress } = attempt;
  const begun = started_at ?? attempt.assigned_at;
  const tookMs = ended_at === null ? null : Date.parse(ended_at) - Date.parse(begun);
  const took = tookMs === null ? "" : ` after ${formatDuration(Math.max(0, tookMs))}`;
  const lines = attempt.log_lines === 1 ? "1 line" : `${attempt.log_lines} lines`;
  line("");
  line(
    `attempt ${attempt_id}: ${outcome}${took} on ${node_id ?? "?"}, ${shortTime(begun)}, ${lines}`,
  );
  if (progress !== null) line(`  progress ${wordsOf(progress)}`);
  if (error === null) return;
  const stack = error.stack ?? `${error.name ?? "Error"}: ${error.message}`;
  for (const text of stack.split("\n")) line(`  ${text}`);
  if (error.cause !== undefined) line(`  caused by ${error.cause}`);
}
