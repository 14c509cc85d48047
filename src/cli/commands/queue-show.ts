/** Tasks and their events, as lines for people or as JSON. */

import { formatDuration } from "../../core/base/duration.ts";
import { digestOf, verdictText } from "../../core/load/results/digest.ts";
import { attemptText } from "../../core/queue/attempts.ts";
import { EXIT_TASK_FAILED } from "../../host/exit-codes.ts";
import type { FollowMessage, LogLine, QueueClient, Task, TaskEvent } from "../../queue/index.ts";
import { areFigures, figuresLine } from "../../ui/figures-line.ts";
import { line, print, type Shared } from "./queue-command.ts";

export async function follow(client: QueueClient, options: Shared, id: string): Promise<number> {
  let lastEvent = 0;
  let lastLine = { attempt_id: 0, line: 0 };
  const ended = await client.wait(id, undefined, (message) => {
    // After a gap history and log are repeated from the beginning.
    if (message.event === "transition") {
      const { event_id: event } = message.data as TaskEvent;
      if (event <= lastEvent) return;
      lastEvent = event;
    } else if (message.event === "log") {
      const { attempt_id, line: number } = message.data as LogLine;
      const isNew = attempt_id - lastLine.attempt_id || number - lastLine.line;
      if (isNew <= 0) return;
      lastLine = { attempt_id, line: number };
    }
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
    return `${message.event.padEnd(12)} ${wordsOf(words)}`;
  }
  const [time, type, from, to, attempt, node] = eventRow(message.data as TaskEvent);
  const move = from === to || from === "" ? to : `${from} -> ${to}`;
  return `${time}  ${type?.padEnd(12)} ${move?.padEnd(22)} attempt ${attempt}  ${node}`;
}

/** Text of an execution's report: a line, metrics of a load test, or any value. */
export function wordsOf(value: unknown): string {
  if (typeof value === "string") return value;
  return areFigures(value) ? figuresLine(value) : JSON.stringify(value);
}

export function eventRow(event: TaskEvent): readonly string[] {
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

export function showTask(task: Task, options: Shared): void {
  if (options.json) {
    print(task);
    return;
  }
  const rows: readonly (readonly [string, string])[] = [
    ["task", task.id],
    ["executor", task.executor],
    ["state", task.state],
    ["attempt", attemptText(task)],
    ["node", task.last_assigned_node ?? ""],
    ["created", task.created_at],
    ["started", task.started_at ?? ""],
    ["finished", task.finished_at ?? ""],
    ["waits", task.waiting_reason ?? ""],
    ["input", JSON.stringify(task.input)],
    ...resultRows(task),
    ["error", task.error?.message ?? ""],
  ];
  for (const [name, value] of rows) if (value !== "") line(`${name.padEnd(9)} ${value}`);
}

/** A load test as in its report; any other result as JSON. `--json` has all of either. */
function resultRows({ id, result }: Task): readonly (readonly [string, string])[] {
  const digest = digestOf(result);
  if (digest === null) return [["result", result === null ? "" : JSON.stringify(result)]];
  const { files } = Object(result) as { readonly files?: readonly string[] };
  return [
    ["verdict", verdictText(digest)],
    ["doubt", digest.doubt ?? ""],
    ...digest.reasons.map((reason) => ["reason", reason] as const),
    ...digest.figures,
    [
      "files",
      files === undefined
        ? ""
        : `${files.join(", ")} (fetch them with: hyperscale queue report ${id})`,
    ],
  ];
}

export function took(task: Task): string {
  if (task.started_at === null) return "";
  const end = task.finished_at ?? (task.state === "RUNNING" ? new Date().toISOString() : null);
  return end === null
    ? ""
    : formatDuration(Math.max(0, Date.parse(end) - Date.parse(task.started_at)));
}

export function brief(task: Task): string {
  if (task.state === "QUEUED" && task.error === null) return shortened(task.waiting_reason ?? "");
  const result = task.result === null ? "" : JSON.stringify(task.result);
  const text = task.error?.message ?? (task.omitted?.includes("result") ? "(large)" : result);
  return shortened(text);
}

function shortened(text: string): string {
  return text.length > 50 ? `${text.slice(0, 49)}…` : text;
}

export function shortTime(iso: string): string {
  return iso.slice(0, 19).replace("T", " ");
}
