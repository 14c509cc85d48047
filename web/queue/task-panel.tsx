/** One task: what it is, its history as a time line, live, and the buttons that apply to its state. */

import { useEffect, useState } from "preact/hooks";
import { formatMs } from "../../src/core/run/results/format.ts";
import type { Task, TaskEvent } from "../../src/queue/api/types.ts";
import { call } from "./api.ts";

interface Words {
  readonly kind: string;
  readonly text: string;
}

interface Props {
  readonly id: string;
  readonly follow: (
    id: string,
    signal: AbortSignal,
    onMessage: (event: string, data: unknown) => void,
  ) => Promise<void>;
}

/** The task and its history, kept up to date by following it. */
function useTask({ id, follow }: Props) {
  const [task, setTask] = useState<Task>();
  const [events, setEvents] = useState<readonly TaskEvent[]>([]);
  const [words, setWords] = useState<Words>();
  const [problem, setProblem] = useState<string>();
  const [round, setRound] = useState(0);

  useEffect(() => {
    const abort = new AbortController();
    const load = (): Promise<void> => call<Task>("get_task", { task_id: id }).then(setTask);
    setEvents([]);
    void load().catch((error: Error) => setProblem(error.message));
    follow(id, abort.signal, (event, data) => {
      if (event === "transition") {
        setEvents((known) => [...known, data as TaskEvent]);
        void load();
      } else if (event === "end") {
        setTask(data as Task);
        setWords(undefined);
      } else {
        setWords({ kind: event, text: JSON.stringify((data as { message: unknown }).message) });
      }
    }).catch((error: Error) => {
      if (!abort.signal.aborted) setProblem(error.message);
    });
    return () => abort.abort();
  }, [id, follow, round]);

  return {
    task,
    setTask,
    events,
    words,
    problem,
    setProblem,
    followAnew: () => setRound(round + 1),
  };
}

export function TaskPanel(props: Props) {
  const { id } = props;
  const { task, setTask, events, words, problem, setProblem, followAnew } = useTask(props);
  const act = (method: string): void => {
    call<Task>(method, { task_id: id }).then(
      (changed) => {
        setTask(changed);
        if (method === "requeue_task") followAnew();
      },
      (error: Error) => setProblem(error.message),
    );
  };
  if (task === undefined) return <section>{problem ?? "Loading …"}</section>;
  const live = task.state === "QUEUED" || task.state === "RUNNING";
  return (
    <section data-panel={task.id}>
      <h2>Task {task.id}</h2>
      <Facts task={task} words={live ? words : undefined} />
      {problem !== undefined && <p class="FAILED">{problem}</p>}
      <div class="bar">
        {live && (
          <button type="button" class="act danger" onClick={() => act("cancel_task")}>
            Cancel task
          </button>
        )}
        {(task.state === "FAILED" || task.state === "CANCELED") && (
          <button type="button" class="act" onClick={() => act("requeue_task")}>
            Send back to the queue
          </button>
        )}
      </div>
      <TimeLine events={events} />
    </section>
  );
}

function Facts({ task, words }: { readonly task: Task; readonly words: Words | undefined }) {
  return (
    <dl>
      <dt>state</dt>
      <dd class={`state ${task.state}`}>{task.state}</dd>
      <dt>executor</dt>
      <dd>{task.executor}</dd>
      <dt>attempt</dt>
      <dd>
        {task.attempt_id} of {task.max_attempts + task.attempts_forgiven}
      </dd>
      {task.waiting_reason !== undefined && task.state === "QUEUED" && (
        <>
          <dt>waits</dt>
          <dd>{task.waiting_reason}</dd>
        </>
      )}
      <Payload name="input" value={task.input} />
      <Payload name="result" value={task.result} />
      {task.error !== null && (
        <>
          <dt>error</dt>
          <dd class="FAILED">{task.error.message}</dd>
        </>
      )}
      {words !== undefined && (
        <>
          <dt>{words.kind}</dt>
          <dd class="mono">{words.text}</dd>
        </>
      )}
    </dl>
  );
}

function Payload({ name, value }: { readonly name: string; readonly value: unknown }) {
  if (value === null || value === undefined) return null;
  return (
    <>
      <dt>{name}</dt>
      <dd>
        <pre class="mono">{JSON.stringify(value)}</pre>
      </dd>
    </>
  );
}

function TimeLine({ events }: { readonly events: readonly TaskEvent[] }) {
  return (
    <ol class="line">
      {events.map((event, index) => (
        <li key={event.event_id} class={event.new_state ?? ""}>
          <div>
            <b>{event.event_type.replaceAll("_", " ")}</b> {move(event)}
          </div>
          <div class="dim">
            {new Date(event.timestamp).toLocaleTimeString("en-GB")}
            {since(events[index - 1], event)}
            {event.node_id === null ? "" : ` · ${event.node_id}`}
            {event.attempt_id === null ? "" : ` · attempt ${event.attempt_id}`}
          </div>
        </li>
      ))}
    </ol>
  );
}

function move(event: TaskEvent): string {
  return event.old_state === null || event.old_state === event.new_state
    ? ""
    : `${event.old_state} → ${event.new_state}`;
}

function since(before: TaskEvent | undefined, event: TaskEvent): string {
  if (before === undefined) return "";
  return ` · +${formatMs(Date.parse(event.timestamp) - Date.parse(before.timestamp))}`;
}
