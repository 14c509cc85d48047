/**
 * States of the workflows of the jobs that this manager leads, under the names of AD-33b.
 *
 *     pending ──▶ running ──▶ completed | failed
 *        └───────────┴──▶ cancelling ──▶ cancelled
 *
 * The state is derived from the job's log, which alone decides. The other states of AD-33b do not occur: a placement
 * takes effect when it is committed, so there is nothing between dispatched and running, and a lost share is reassigned
 * under another token while its workflow continues.
 */

import type { ManagerContext } from "./context.ts";
import { workflowStatus } from "./job-history.ts";
import type { RunState } from "./run-state.ts";

const WORKFLOW_STATES = [
  ...["pending", "dispatched", "running", "completed", "aggregated"],
  ...["failed", "failed_canceling_deps", "failed_ready", "cancelling", "cancelled"],
] as const;
type WorkflowState = "pending" | "running" | "completed" | "failed" | "cancelling" | "cancelled";

export interface WorkflowStatesView {
  readonly counts: ReadonlyMap<string, number>;
  /** By "from to". */
  readonly transitions: ReadonlyMap<string, number>;
}

/** Interval of reported counts while there are any. */
const STATS_MS = 60_000;

interface Known {
  state: WorkflowState;
  since: number;
}

export class WorkflowStates {
  readonly #context: ManagerContext;
  /** Workflows of the jobs led here, by job and workflow. */
  readonly #jobs = new Map<string, Map<string, Known>>();
  /** At most one entry for each pair of states. */
  readonly #transitions = new Map<string, number>();
  #reportedAt = Number.NEGATIVE_INFINITY;

  constructor(context: ManagerContext) {
    this.#context = context;
  }

  get view(): WorkflowStatesView {
    const counts = new Map<string, number>(WORKFLOW_STATES.map((state) => [state, 0]));
    for (const workflows of this.#jobs.values())
      for (const { state } of workflows.values()) counts.set(state, (counts.get(state) ?? 0) + 1);
    return { counts, transitions: this.#transitions };
  }

  /** Starts without counting: earlier transitions were counted by others. */
  begin(job: string, run: RunState): void {
    const since = this.#context.now;
    const known = namesOf(run).map((name) => [name, { state: stateOf(run, name), since }] as const);
    this.#jobs.set(job, new Map(known));
  }

  forget(job: string): void {
    this.#jobs.delete(job);
  }

  /** Updates the states after a decision. */
  update(job: string, run: RunState): void {
    const workflows = this.#jobs.get(job);
    if (workflows === undefined) return;
    for (const workflow of namesOf(run)) {
      // A leader from the beginning starts before the job's first entry is there.
      const known = workflows.get(workflow) ?? { state: "pending", since: this.#context.now };
      workflows.set(workflow, known);
      const to = stateOf(run, workflow);
      if (to !== known.state) this.#moved({ job, workflow, to, reason: reasonOf(run) }, known);
    }
  }

  #moved(
    {
      job,
      reason,
      to,
      workflow,
    }: Readonly<Record<"job" | "workflow" | "reason", string>> & {
      readonly to: WorkflowState;
    },
    known: Known,
  ): void {
    const { now } = this.#context;
    const change = `${known.state} ${to}`;
    this.#transitions.set(change, (this.#transitions.get(change) ?? 0) + 1);
    this.#context.log("info", "WorkflowStateTransition", {
      ...{ workflow_id: workflow, job_id: job, from_state: known.state, to_state: to, reason },
      transition_duration_ms: Math.round(now - known.since),
    });
    known.state = to;
    known.since = now;
  }

  onTick(): void {
    const { now } = this.#context;
    if (this.#jobs.size === 0 || now < this.#reportedAt + STATS_MS) return;
    this.#reportedAt = now;
    const counts = [...this.view.counts].map(([state, count]) => [`${state}_count`, count]);
    this.#context.log("info", "WorkflowStateStats", Object.fromEntries(counts));
  }
}

function namesOf(run: RunState): readonly string[] {
  return (run.submission?.manifests ?? []).map(({ name }) => name);
}

function stateOf(run: RunState, workflow: string): WorkflowState {
  const status = workflowStatus(run, workflow);
  if (status === "completed" || status === "failed") return status;
  if (run.end?.status === "CANCELLED") return "cancelled";
  if (run.end !== null) return "failed";
  if (run.cancelled !== null) return "cancelling";
  return status === "waiting" ? "pending" : "running";
}

function reasonOf(run: RunState): string {
  return run.end?.reason ?? run.cancelled ?? "";
}
