/** One task: its input, what it waits for, its attempts with their errors, its log, files and history. */

import { useState } from "preact/hooks";
import { digestOf } from "../../src/core/load/results/digest.ts";
import { formatBytes, formatCount, formatMs } from "../../src/core/load/results/format.ts";
import { attemptText } from "../../src/core/queue/attempts.ts";
import type {
  Task,
  TaskAttempt,
  TaskEvent,
  TaskFailure,
  TaskFile,
} from "../../src/queue/api/types.ts";
import { areFigures } from "../../src/ui/figures-line.ts";
import { Alert, Facts, Folded, Section } from "../shared/parts.tsx";
import { Table } from "../shared/table.tsx";
import { place } from "./address.ts";
import { call, download } from "./api.ts";
import { AttemptLog } from "./attempt-log.tsx";
import { useDeeds } from "./confirm.tsx";
import { useBeat } from "./live.ts";
import { LiveFigures, LoadtestResult, VerdictChip } from "./loadtest.tsx";
import { Moment, StateChip, spanText, TaskLink } from "./parts.tsx";
import { useTask } from "./use-task.ts";

/** Characters of a payload shown before the reader expands it. */
const PAYLOAD_CHARACTERS_MAX = 4_000;

export function TaskView({ id }: { readonly id: string }) {
  const { task, attempts, events, progress, files, problem, followAnew } = useTask(id);
  useBeat(1_000);
  if (task === undefined) return <p class="empty">{problem ?? `Loading task ${id} …`}</p>;
  return (
    <div data-panel={task.id}>
      <p>
        <a href={place("tasks")}>Tasks</a> <span class="quiet">/ {task.id}</span>
      </p>
      <div class="task-head">
        <h1 class="page-title">
          {task.executor} <span class="quiet">task {task.id}</span>
        </h1>
        <StateChip state={task.state} />
        <VerdictChip result={task.result} />
        <Actions task={task} followAnew={followAnew} />
      </div>
      {problem !== undefined && <p class="bad-text">{problem}</p>}
      <div class="card">
        <TaskFacts task={task} />
      </div>
      {task.state === "QUEUED" && task.waiting_reason !== undefined && (
        <Alert tone="plain" title="Why it waits">
          <p>{task.waiting_reason}</p>
          {task.waits_for !== undefined && (
            <p>
              {task.waits_for.map((other) => (
                <span key={other}>
                  <TaskLink id={other} />{" "}
                </span>
              ))}
            </p>
          )}
        </Alert>
      )}
      {task.error !== null && <ErrorBox error={task.error} state={task.state} />}
      <LoadtestResult result={task.result} />
      {digestOf(task.result) === null && (
        <Progress value={progress ?? attempts.at(-1)?.progress ?? null} isOver={isOver(task)} />
      )}
      <Attempts attempts={attempts} id={task.id} />
      <AttemptLog id={task.id} attempts={attempts} />
      <Section id="payloads" title="Input and result">
        <Payload name="Input" value={task.input} />
        {task.result !== null && <Result value={task.result} />}
      </Section>
      <Files id={task.id} files={files} />
      <History events={events} />
    </div>
  );
}

function Actions({ task, followAnew }: { readonly task: Task; readonly followAnew: () => void }) {
  const { ask, perform } = useDeeds();
  const live = task.state === "QUEUED" || task.state === "RUNNING";
  const { id } = task;
  const requeue = async (): Promise<string> => {
    await call("requeue_task", { task_id: id });
    followAnew();
    return `Task ${id} is back in the queue.`;
  };
  const cancel = async (): Promise<string> => {
    await call("cancel_task", { task_id: id });
    return `Task ${id} is cancelled.`;
  };
  const remove = async (): Promise<string> => {
    const { changed } = await call<{ changed: number }>("delete_tasks", { ids: [id] });
    if (changed === 0) return `Task ${id} is kept: a task that has not ended depends on it.`;
    location.hash = place("tasks");
    return `Task ${id} is deleted.`;
  };
  const sure = (question: string, button: string, work: () => Promise<string>): void =>
    ask({ question, button, danger: true, perform: work });
  return (
    <span class="row-buttons">
      {live && (
        <button
          type="button"
          class="button danger"
          onClick={() =>
            sure(
              `Cancel task ${id}? ${task.state === "RUNNING" ? "Its execution is aborted." : ""}`,
              "Cancel it",
              cancel,
            )
          }
        >
          Cancel task
        </button>
      )}
      {(task.state === "FAILED" || task.state === "CANCELLED") && (
        <button type="button" class="button" onClick={() => perform(requeue)}>
          Retry
        </button>
      )}
      {!live && (
        <button
          type="button"
          class="button danger"
          onClick={() => sure(`Delete task ${id} with its history?`, "Delete it", remove)}
        >
          Delete
        </button>
      )}
    </span>
  );
}

function TaskFacts({ task }: { readonly task: Task }) {
  const { queue, schedule_id: schedule, last_assigned_node: node } = task;
  const began = task.started_at ?? (task.state === "QUEUED" ? null : task.finished_at);
  return (
    <Facts
      facts={[
        ["attempt", attemptText(task)],
        ["queue", <a href={place("tasks", { queue })}>{queue}</a>],
        ["priority", formatCount(task.priority)],
        ["created", <Moment at={task.created_at} />],
        ["waited", spanText(task.created_at, began)],
        ...(task.started_at === null
          ? []
          : ([["ran", spanText(task.started_at, task.finished_at)]] as const)),
        ...(task.finished_at === null
          ? []
          : ([["ended", <Moment at={task.finished_at} />]] as const)),
        ...(task.run_after === null || task.state !== "QUEUED"
          ? []
          : ([["not before", <Moment at={task.run_after} />]] as const)),
        ...(node === null
          ? []
          : ([["node", <a href={place("tasks", { node })}>{node}</a>]] as const)),
        ...(schedule === null
          ? []
          : ([["schedule", <a href={place("tasks", { schedule })}>{schedule}</a>]] as const)),
        ...(task.idempotency_key === null ? [] : ([["key", task.idempotency_key]] as const)),
        ...(task.unique_key === null ? [] : ([["unique key", task.unique_key]] as const)),
        ...(task.attempt_timeout_ms === null
          ? []
          : ([["limit of an attempt", formatMs(task.attempt_timeout_ms)]] as const)),
        ...(task.deadline === null ? [] : ([["deadline", <Moment at={task.deadline} />]] as const)),
        ...(task.placement_constraints === null
          ? []
          : ([["placement", <code>{JSON.stringify(task.placement_constraints)}</code>]] as const)),
      ]}
    />
  );
}

interface ErrorProps {
  readonly error: TaskFailure;
  readonly state: Task["state"];
}

function ErrorBox({ error, state }: ErrorProps) {
  const over = state === "FAILED";
  const title = over ? "Error" : state === "CANCELLED" ? "Why it was cancelled" : "Last error";
  return (
    <Alert tone={over ? "bad" : "plain"} title={title}>
      <ErrorText error={error} />
    </Alert>
  );
}

function ErrorText({ error }: { readonly error: TaskFailure }) {
  const { cause, message, name, stack } = error;
  return (
    <>
      <p class="said">
        {name !== undefined && name !== "Error" && <b>{name}: </b>}
        {message}
      </p>
      {cause !== undefined && <p class="said quiet">because of {cause}</p>}
      {stack !== undefined && (
        <Folded title="Stack">
          <pre>{stack}</pre>
        </Folded>
      )}
    </>
  );
}

interface AttemptsProps {
  readonly attempts: readonly TaskAttempt[];
  readonly id: string;
}

function Attempts({ attempts, id }: AttemptsProps) {
  return (
    <Section id="attempts" title="Attempts">
      {attempts.length === 0 ? (
        <p class="empty">No worker has had it yet.</p>
      ) : (
        <Table
          caption="Attempts, newest first"
          stacked
          columns={[
            { title: "Attempt" },
            { title: "Outcome" },
            { title: "Node" },
            { title: "Began" },
            { title: "Took", numeric: true },
            { title: "Log", numeric: true },
            { title: "Error" },
          ]}
          rows={attempts.toReversed().map((one) => ({
            key: String(one.attempt_id),
            cells: [
              { text: `attempt ${one.attempt_id}` },
              { text: one.outcome },
              { text: one.node_id ?? "" },
              { text: <Moment at={one.started_at ?? one.assigned_at} /> },
              { text: spanText(one.started_at ?? one.assigned_at, one.ended_at) },
              { text: <LogLink attempt={one} id={id} /> },
              { text: one.error === null ? null : <ErrorText error={one.error} /> },
            ],
          }))}
        />
      )}
    </Section>
  );
}

function LogLink({ attempt, id }: { readonly attempt: TaskAttempt; readonly id: string }) {
  const { attempt_id: number, log_lines: lines } = attempt;
  if (lines === 0) return <span class="quiet">–</span>;
  return (
    <a href={place("task", { id, attempt: String(number) })}>
      {formatCount(lines)} {lines === 1 ? "line" : "lines"}
    </a>
  );
}

function isOver({ state }: Task): boolean {
  return state !== "QUEUED" && state !== "RUNNING";
}

/** Latest progress that the execution reported: for a load test its metrics, every second. */
function Progress({ value, isOver }: { readonly value: unknown; readonly isOver: boolean }) {
  if (value === null || value === undefined) return null;
  return (
    <Section id="progress" title={isOver ? "Last progress" : "Progress"}>
      {areFigures(value) ? (
        <LiveFigures figures={value} />
      ) : (
        <Payload name="Latest progress" value={value} />
      )}
    </Section>
  );
}

/** A load test shows its verdict and metrics: the whole summary is folded. */
function Result({ value }: { readonly value: unknown }) {
  if (digestOf(value) === null) return <Payload name="Result" value={value} />;
  return (
    <Folded title="Result as JSON">
      <Payload name="Result" value={value} />
    </Folded>
  );
}

function Payload({ name, value }: { readonly name: string; readonly value: unknown }) {
  const [whole, setWhole] = useState(false);
  const text = JSON.stringify(value, null, 2) ?? "null";
  const cut = !whole && text.length > PAYLOAD_CHARACTERS_MAX;
  return (
    <figure class="payload">
      <figcaption>
        {name} <span class="quiet">{formatBytes(new Blob([text]).size)}</span>
        <button
          type="button"
          class="plain-button"
          onClick={() => void navigator.clipboard?.writeText(text)}
        >
          copy<span class="hidden"> {name}</span>
        </button>
      </figcaption>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard. */}
      <pre class="card" tabIndex={0}>
        {cut ? text.slice(0, PAYLOAD_CHARACTERS_MAX) : text}
      </pre>
      {cut && (
        <button type="button" class="plain-button" onClick={() => setWhole(true)}>
          show all {formatCount(text.length)} characters
        </button>
      )}
    </figure>
  );
}

function Files({ id, files }: { readonly id: string; readonly files: readonly TaskFile[] }) {
  const { perform } = useDeeds();
  if (files.length === 0) return null;
  return (
    <Section id="files" title="Files">
      <Table
        caption="Files that attempts left"
        columns={[
          { title: "File" },
          { title: "Size", numeric: true },
          { title: "Of attempt", numeric: true },
        ]}
        rows={files.map((file) => ({
          key: file.name,
          cells: [
            {
              text: (
                <button
                  type="button"
                  class="step-name"
                  onClick={() =>
                    perform(async () => {
                      await download(id, file.name);
                      return `${file.name} is in your downloads.`;
                    })
                  }
                >
                  {file.name}
                </button>
              ),
            },
            { text: formatBytes(file.bytes) },
            { text: file.attempt_id },
          ],
        }))}
      />
    </Section>
  );
}

function History({ events }: { readonly events: readonly TaskEvent[] }) {
  return (
    <Section id="history" title="History">
      <ol class="line">
        {events.map((event, at) => (
          <li key={event.event_id} class={`state-${event.new_state ?? ""}`}>
            <div>
              <b>{event.event_type.replaceAll("_", " ")}</b> {moveText(event)}
            </div>
            <div class="quiet">
              <Moment at={event.timestamp} />
              {sinceText(events[at - 1], event)}
              {event.node_id === null ? "" : ` · ${event.node_id}`}
              {event.attempt_id === null ? "" : ` · attempt ${event.attempt_id}`}
              {` · epoch ${event.epoch}`}
            </div>
            <Cause details={event.details} />
          </li>
        ))}
      </ol>
    </Section>
  );
}

/** A final event holds the error itself, a retried attempt holds it beside its reason. */
function Cause({ details }: { readonly details: unknown }) {
  const { error, message } = Object(details) as { error?: TaskFailure; message?: unknown };
  const text = error?.message ?? message;
  return typeof text === "string" ? <div class="said bad-text">{text}</div> : null;
}

function moveText(event: TaskEvent): string {
  return event.old_state === null || event.old_state === event.new_state
    ? ""
    : `${event.old_state} → ${event.new_state}`;
}

function sinceText(before: TaskEvent | undefined, event: TaskEvent): string {
  if (before === undefined) return "";
  return ` · +${formatMs(Date.parse(event.timestamp) - Date.parse(before.timestamp))}`;
}
