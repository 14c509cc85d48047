/** Frame of all views, and their common state: whether the node answers, and which one leads. */

import { useEffect, useState } from "preact/hooks";
import { formatMs } from "../../src/core/load/results/format.ts";
import type { ClusterStatus } from "../../src/queue/api/types.ts";
import { FragmentContext, useFragmentState } from "../shared/fragment.ts";
import { Frame, type FrameSection } from "../shared/frame.tsx";
import { Alert } from "../shared/parts.tsx";
import { ThemeContext, useThemeChoice } from "../shared/theme.ts";
import { place, type View, viewOf } from "./address.ts";
import { call, setToken } from "./api.ts";
import { ConfirmDialog, DeedsContext, OutcomeLine, useDeedsState } from "./confirm.tsx";
import { type Polled, useBeat, useLink, usePolled } from "./live.ts";
import { NodesView } from "./nodes.tsx";
import { Overview } from "./overview.tsx";
import { Moment } from "./parts.tsx";
import { QueuesView } from "./queues.tsx";
import { SchedulesView } from "./schedules.tsx";
import { TaskView } from "./task.tsx";
import { TasksView } from "./tasks.tsx";

const STATUS_EVERY_MS = 1_000;
/** A single late answer is not reported. */
const SILENCE_TOLD_MS = 1_500;

export function QueuePage() {
  const [theme, choice, choose] = useThemeChoice();
  const fragment = useFragmentState();
  const { deeds, asked, outcome, close } = useDeedsState();
  const { locked, silentSinceMs } = useLink();
  const status = usePolled("status", STATUS_EVERY_MS, () =>
    call<ClusterStatus>("cluster_status", {}),
  );
  const view = viewOf(fragment.section);
  const taskId = fragment.get("id") ?? "";
  useTitle(view === "task" ? `Task ${taskId}` : TITLES[view]);
  return (
    <ThemeContext.Provider value={theme}>
      <FragmentContext.Provider value={fragment}>
        <DeedsContext.Provider value={deeds}>
          <Frame
            sections={sectionsOf(status.value)}
            current={view === "task" ? "tasks" : view}
            theme={{ choice, choose }}
            bar={<Leadership status={status.value} silent={silentSinceMs !== null} />}
          >
            <Silence />
            {locked ? (
              <Unlock again={status.again} />
            ) : (
              <div class={silentSinceMs === null ? "view" : "view silent"}>
                <Troubles status={status} />
                {view === "overview" && <Overview status={status.value} />}
                {view === "tasks" && <TasksView status={status.value} />}
                {view === "task" && <TaskView key={taskId} id={taskId} />}
                {view === "queues" && <QueuesView />}
                {view === "schedules" && <SchedulesView />}
                {view === "nodes" && <NodesView status={status.value} />}
              </div>
            )}
            <OutcomeLine outcome={outcome} />
            {asked !== null && <ConfirmDialog deed={asked} close={close} perform={deeds.perform} />}
          </Frame>
        </DeedsContext.Provider>
      </FragmentContext.Provider>
    </ThemeContext.Provider>
  );
}

const TITLES: Readonly<Record<View, string>> = {
  overview: "Overview",
  tasks: "Tasks",
  task: "Task",
  queues: "Queues",
  schedules: "Schedules",
  nodes: "Nodes",
};

function sectionsOf(status: ClusterStatus | undefined): FrameSection[] {
  const failed = status?.counts.FAILED ?? 0;
  const lost = status?.nodes.filter((node) => node.status !== "healthy").length ?? 0;
  const marks: Partial<Record<View, string>> = {
    ...(failed > 0 ? { tasks: `✗ ${failed}` } : {}),
    ...(lost > 0 ? { nodes: `✗ ${lost}` } : {}),
  };
  return (["overview", "tasks", "queues", "schedules", "nodes"] as const).map((id) => {
    const mark = marks[id];
    return { id, title: TITLES[id], href: place(id), ...(mark === undefined ? {} : { mark }) };
  });
}

function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · Hyperscale queue`;
  }, [title]);
}

interface LeadershipProps {
  readonly status: ClusterStatus | undefined;
  readonly silent: boolean;
}

function Leadership({ status, silent }: LeadershipProps) {
  if (silent) return <span class="leadership bad-text">no answer</span>;
  if (status === undefined) return <span class="leadership quiet">connecting …</span>;
  const { leader } = status;
  if (leader === null) return <span class="leadership bad-text">no node leads</span>;
  return (
    <span class="leadership quiet">
      led by <b>{leader.node_id}</b>, epoch {leader.epoch}
    </span>
  );
}

/** A live region that is always present, so that screen readers announce when the connection is lost and restored. */
function Silence() {
  const { answeredAtMs, silentSinceMs } = useLink();
  useBeat(1_000);
  const silentMs = silentSinceMs === null ? 0 : Date.now() - (answeredAtMs ?? silentSinceMs);
  return (
    <div role="status">
      {silentMs > SILENCE_TOLD_MS && (
        <Alert tone="bad" title="This node does not answer">
          <p>
            No answer for {formatMs(Math.round(silentMs / 1_000) * 1_000, 2)}.{" "}
            {answeredAtMs === null ? (
              "It has not answered yet."
            ) : (
              <>
                What is shown here is as of <Moment at={answeredAtMs} />.
              </>
            )}{" "}
            The page asks on and shows what is new as soon as there is an answer.
          </p>
        </Alert>
      )}
    </div>
  );
}

function Troubles({ status }: { readonly status: Polled<ClusterStatus> }) {
  if (status.problem !== undefined) {
    return (
      <Alert tone="bad" title="The node answers, but cannot say how the queue is">
        <p>{status.problem}</p>
      </Alert>
    );
  }
  if (status.value === undefined || status.value.leader !== null) return null;
  return (
    <Alert tone="warn" title="No node leads">
      <p>What runs goes on. Nothing new starts and nothing can be submitted until a node leads.</p>
    </Alert>
  );
}

function Unlock({ again }: { readonly again: () => void }) {
  const [value, setValue] = useState("");
  return (
    <form
      class="card unlock"
      onSubmit={(event) => {
        event.preventDefault();
        setToken(value.trim());
        again();
      }}
    >
      <h1 class="page-title">Enter the access token</h1>
      <p class="quiet">
        A node prints it with its address, and writes it to the file <code>token</code> in its data
        directory. It is kept in this tab until the tab is closed.
      </p>
      <label>
        Token
        <input
          type="password"
          autocomplete="off"
          value={value}
          onInput={(event) => setValue(event.currentTarget.value)}
        />
      </label>
      <button type="submit" class="button">
        Open
      </button>
    </form>
  );
}
