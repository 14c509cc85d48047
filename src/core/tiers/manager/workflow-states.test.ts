import { expect, it } from "vitest";
import { World } from "./testing/world.ts";

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

it("a workflow is pending, runs and is completed, each told and counted once", () => {
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

it("one that is cancelled says why; a new leader goes on from what is, and counts nothing again", () => {
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
