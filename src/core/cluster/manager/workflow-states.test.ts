import { expect, it } from "vitest";
import { workflowViews } from "./job-history.ts";
import { encodeRunEntry, type RunEntry } from "./run-entries.ts";
import { RunState } from "./run-state.ts";
import { encodeSubmission } from "./submission.ts";
import { contextOf } from "./testing/context.ts";
import { submission, World } from "./testing/world.ts";
import { WorkflowStates } from "./workflow-states.ts";

const LONG_MS = 3_600_000;

function changes(world: World): readonly string[] {
  return world.logs
    .filter((line) => line.startsWith("WorkflowStateTransition "))
    .map((line) => JSON.parse(line.slice(line.indexOf(" "))))
    .map(({ from_state, reason, to_state }) => `${from_state} ${to_state} ${reason}`.trim());
}

function counted(world: World, manager: number): Readonly<Record<string, number>> {
  const counts = [...(world.workflows(manager)?.counts ?? [])];
  return Object.fromEntries(counts.filter(([, count]) => count > 0));
}

it("moves a workflow from pending to running to completed, each reported and counted once", () => {
  const world = new World({ loadMs: 5_000 });
  const job = world.submit();
  world.until(() => world.progress(job)?.status === "RUNNING");
  const leader = world.leaderOf(job);
  expect(counted(world, leader)).toEqual({ running: 1 });
  world.end(job);
  expect(counted(world, leader)).toEqual({ completed: 1 });
  expect(changes(world)).toEqual(["pending running", "running completed"]);
  expect(Object.fromEntries(world.workflows(leader)?.transitions ?? [])).toEqual({
    ...{ "pending running": 1, "running completed": 1 },
  });
  expect(world.logs.some((line) => line.startsWith("WorkflowStateStats {"))).toBe(true);
});

it("records why a workflow is cancelled; a new leader continues from there and counts nothing again", () => {
  const world = new World({ loadMs: LONG_MS, managers: 3 });
  const job = world.submit();
  world.until(() => world.progress(job)?.status === "RUNNING");
  world.replaceLeader(job);
  world.until(() => world.progress(job)?.status === "RUNNING");
  expect(changes(world)).toEqual(["pending running"]);
  world.control(job, { kind: "cancel", reason: "not now" });
  world.until(() => world.progress(job)?.status === "CANCELLED");
  const seen = changes(world);
  expect(seen.slice(0, 2)).toEqual(["pending running", "running cancelling not now"]);
  expect(seen).toHaveLength(3);
  expect(counted(world, world.leaderOf(job))).not.toHaveProperty("running");
});

it("shows all workflows before the first entry, and ends those that waited for a failed setup", () => {
  const [context, run] = [contextOf(), new RunState()];
  const states = new WorkflowStates(context);
  const [workflow] = submission().manifests.map(({ name }) => name);
  if (workflow === undefined) throw new Error("a job has a workflow");
  states.begin("job", run);
  const cores = [0, 1].map((core) => ({ core, worker: "w0", incarnation: 1 }));
  const step = { kind: "step", view: 1, at: 0 } as const;
  const problem = "the executor core that ran the set-up was lost";
  const entries: readonly RunEntry[] = [
    {
      ...{ kind: "begin", createdAt: 0, waitedMs: 0, grants: [] },
      submission: encodeSubmission(submission()),
    },
    { kind: "adopt", view: 1, at: 0 },
    { kind: "open", view: 1, at: 0, cores },
    { kind: "start", view: 1, at: 0 },
    { ...step, step: { kind: "place", workflow, cores: [0, 1] } },
    { kind: "coreLost", view: 1, at: 5, core: 0, what: "gone", awaited: false, figures: null },
    { ...step, at: 6, step: { kind: "report", workflow, error: problem, faults: [] } },
  ];
  for (const entry of entries) {
    const data = encodeRunEntry(entry);
    expect(run.apply({ seq: 0, view: 1, eventId: "e", data }).outcome).not.toBe("rejected");
    states.update("job", run);
  }
  expect([...states.view.transitions.keys()]).toEqual(["pending running", "running failed"]);
  const [view] = workflowViews(run, { phase: "admitted" }, null);
  expect(view?.attempts.map(({ endedAt, status }) => [status, endedAt])).toEqual([
    ["lost", 5],
    ["finished", 6],
  ]);
});
