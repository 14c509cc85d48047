/**
 * The queue's page: counts and depth, tasks with search, one task's history as a time line, nodes and
 * leader. It asks the node it came from, over JSON-RPC, and follows the chosen task live.
 */

import { render } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { errorText } from "../../src/core/base/error-text.ts";
import { formatCount } from "../../src/core/run/results/format.ts";
import { ApiError, call, follow, setToken } from "./api.ts";
import { DepthChart, type DepthPoint } from "./depth.tsx";
import "./style.css";
import type { ClusterStatus, Task } from "../../src/queue/api/types.ts";
import { TaskPanel } from "./task-panel.tsx";

const REFRESH_MS = 1_000;
const POINTS_KEPT = 180;
const STATES = ["QUEUED", "RUNNING", "SUCCEEDED", "FAILED", "CANCELED"] as const;

interface Filter {
  readonly search: string;
  readonly state: string | undefined;
}

/** What the node says, asked for again every second. */
function useQueue(filter: Filter) {
  const [status, setStatus] = useState<ClusterStatus>();
  const [tasks, setTasks] = useState<readonly Task[]>([]);
  const [problem, setProblem] = useState<string>();
  const [locked, setLocked] = useState(false);
  const points = useRef<DepthPoint[]>([]);
  const { search, state } = filter;

  useEffect(() => {
    let stopped = false;
    let timer = 0;
    const show = (now: ClusterStatus, list: readonly Task[]): void => {
      const point = { at: Date.now(), queued: now.counts.QUEUED, running: now.counts.RUNNING };
      points.current = [...points.current, point].slice(-POINTS_KEPT);
      setStatus(now);
      setTasks(list);
      setProblem(undefined);
      setLocked(false);
    };
    const refresh = async (): Promise<void> => {
      try {
        const [now, list] = await ask(search, state);
        if (!stopped) show(now, list);
      } catch (error) {
        if (stopped) return;
        setLocked(error instanceof ApiError && error.status === 401);
        setProblem(errorText(error));
      }
      if (!stopped) timer = window.setTimeout(() => void refresh(), REFRESH_MS);
    };
    void refresh();
    return () => {
      stopped = true;
      clearTimeout(timer);
    };
  }, [search, state]);
  return { status, tasks, problem, locked, points: points.current };
}

function ask(search: string, state: string | undefined) {
  const filter = {
    limit: 50,
    ...(search === "" ? {} : { search }),
    ...(state === undefined ? {} : { state }),
  };
  return Promise.all([
    call<ClusterStatus>("cluster_status", {}),
    call<readonly Task[]>("list_tasks", filter),
  ]);
}

function App() {
  const [search, setSearch] = useState("");
  const [state, setState] = useState<string>();
  const [chosen, setChosen] = useState<string>();
  const { status, tasks, problem, locked, points } = useQueue({ search, state });

  if (locked) return <Unlock />;
  return (
    <>
      <header>
        <h1>Hyperscale queue</h1>
        <span class="dim">{leaderText(status)}</span>
      </header>
      {problem !== undefined && <p class="error">{problem}</p>}
      <main>
        <section class="wide">
          <div class="counts">
            {STATES.map((name) => (
              <button
                type="button"
                key={name}
                class={`count ${name}`}
                aria-pressed={state === name}
                onClick={() => setState(state === name ? undefined : name)}
              >
                <b data-count={name}>
                  {status === undefined ? "–" : formatCount(status.counts[name])}
                </b>
                {name.toLowerCase()}
              </button>
            ))}
          </div>
          <DepthChart points={points} />
        </section>
        <section>
          <h2>Tasks{state === undefined ? "" : ` · ${state.toLowerCase()}`}</h2>
          <div class="bar">
            <input
              type="search"
              placeholder="Search id, executor, key or input"
              value={search}
              onInput={(event) => setSearch(event.currentTarget.value)}
            />
          </div>
          <TaskTable tasks={tasks} chosen={chosen} onChoose={setChosen} />
        </section>
        <div class="column">
          {chosen !== undefined && <TaskPanel key={chosen} id={chosen} follow={follow} />}
          <section>
            <h2>Nodes</h2>
            <NodeTable status={status} />
          </section>
        </div>
      </main>
    </>
  );
}

function leaderText(status: ClusterStatus | undefined): string {
  if (status === undefined) return "connecting …";
  if (status.leader === null) return "no node leads";
  return `led by ${status.leader.node_id}, epoch ${status.leader.epoch}`;
}

function TaskTable(props: {
  readonly tasks: readonly Task[];
  readonly chosen: string | undefined;
  readonly onChoose: (id: string) => void;
}) {
  if (props.tasks.length === 0) return <p class="dim">No tasks here.</p>;
  return (
    <table>
      <thead>
        <tr>
          <th>id</th>
          <th>executor</th>
          <th>state</th>
          <th>attempt</th>
          <th>node</th>
          <th>created</th>
        </tr>
      </thead>
      <tbody>
        {props.tasks.map((task) => (
          <tr
            key={task.id}
            data-task={task.id}
            class={task.id === props.chosen ? "pick chosen" : "pick"}
            onClick={() => props.onChoose(task.id)}
          >
            <td class="mono">{task.id}</td>
            <td>{task.executor}</td>
            <td class={`state ${task.state}`}>{task.state}</td>
            <td>
              {task.attempt_id}/{task.max_attempts + task.attempts_forgiven}
            </td>
            <td>{task.last_assigned_node ?? ""}</td>
            <td>{new Date(task.created_at).toLocaleTimeString("en-GB")}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function NodeTable({ status }: { readonly status: ClusterStatus | undefined }) {
  if (status === undefined || status.nodes.length === 0) return <p class="dim">No nodes yet.</p>;
  return (
    <table>
      <thead>
        <tr>
          <th>node</th>
          <th>status</th>
          <th>slots</th>
          <th>executors</th>
        </tr>
      </thead>
      <tbody>
        {status.nodes.map((node) => (
          <tr key={node.node_id}>
            <td>
              {node.node_id}
              {node.node_id === status.leader?.node_id && <span class="dim"> leader</span>}
            </td>
            <td class={`state ${node.status}`}>{node.status}</td>
            <td>{node.max_parallel}</td>
            <td class="dim">{node.executor_types.join(", ")}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Unlock() {
  const [value, setValue] = useState("");
  return (
    <main>
      <section class="wide">
        <h2>This queue asks for its token</h2>
        <form
          class="bar"
          onSubmit={(event) => {
            event.preventDefault();
            setToken(value.trim());
          }}
        >
          <input
            type="password"
            placeholder="Bearer token"
            value={value}
            onInput={(event) => setValue(event.currentTarget.value)}
          />
          <button type="submit" class="act">
            Open
          </button>
        </form>
      </section>
    </main>
  );
}

const root = document.getElementById("app");
if (root !== null) render(<App />, root);
