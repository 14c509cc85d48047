import { describe, expect, it } from "vitest";
import { GateWorld } from "./testing/world.ts";

const BOTH = ["dc1", "dc2"];

/** The manager and the worker of a datacenter end, as with its power. */
function lose(world: GateWorld, name: string): void {
  world.datacenter(name).kill(0);
  world.datacenter(name).killWorker(0);
}

function bringBack(world: GateWorld, name: string): void {
  world.datacenter(name).start(0);
  world.datacenter(name).worker(0).restart();
}

/** Its part of a job, as the datacenter itself tells it. */
function partIn(world: GateWorld, name: string): readonly (string | null)[] {
  const told = world.datacenter(name).ask({ kind: "jobs", after: null });
  const jobs = told.kind === "jobs" ? told.jobs : [];
  return jobs.flatMap(({ reason, status }) => [status, reason]);
}

function begun(world: GateWorld): string {
  const job = world.submit({}, { datacenters: BOTH });
  world.until(() => world.status(job) === "RUNNING");
  world.run(500);
  return job;
}

/** What its status and result say, whichever gate tells. */
function outcome(world: GateWorld, job: string): unknown {
  const { reason, status, summary } = world.end(job, 200_000);
  return { reason, status, summary };
}

const isBusy = (world: GateWorld): boolean =>
  BOTH.some((name) =>
    [...world.datacenter(name).worker(0).jobs.values()].some(({ cores }) => cores.size > 0),
  );

describe("a datacenter that was given up and comes back when the job is over", () => {
  it.each(BOTH)("is told so, makes no load, and changes nothing of the job: %s", (name) => {
    const world = new GateWorld({ gates: 3, datacenters: BOTH, loadMs: 3_000 });
    const job = begun(world);
    lose(world, name);
    const before = outcome(world, job);
    expect(before).toMatchObject({ status: "PARTIAL", reason: `${name}: lost` });
    const calls = world.calls();
    bringBack(world, name);
    world.run(30_000);
    expect(partIn(world, name)).toEqual(["CANCELLED", "the job is over: PARTIAL"]);
    expect([world.calls(), isBusy(world)]).toEqual([calls, false]);
    expect(outcome(world, job)).toEqual(before);
    const told = world.logs.filter((line) => line.startsWith("job.partOver"));
    expect(told).toHaveLength(3);
    world.run(60_000);
    expect(world.logs.filter((line) => line.startsWith("job.partOver"))).toEqual(told);
  });

  it.each([
    ["the gate that led it is gone", (leader: number) => [leader], []],
    ["all gates were started anew", () => [0, 1, 2], [0, 1, 2]],
  ] as const)("is told so when %s", (_, killed, started) => {
    const world = new GateWorld({ gates: 3, datacenters: BOTH, loadMs: 3_000 });
    const job = begun(world);
    lose(world, "dc2");
    const before = outcome(world, job);
    for (const gate of killed(world.leaderOf(job))) world.kill(gate);
    for (const gate of started) world.start(gate);
    const calls = world.calls();
    bringBack(world, "dc2");
    world.run(30_000);
    expect(partIn(world, "dc2")).toEqual(["CANCELLED", "the job is over: PARTIAL"]);
    expect([world.calls(), isBusy(world)]).toEqual([calls, false]);
    expect(outcome(world, job)).toEqual(before);
  });

  it("is told of a cancel by gates that were started anew since", () => {
    const world = new GateWorld({ gates: 3, datacenters: BOTH, loadMs: 3_000 });
    const job = begun(world);
    lose(world, "dc2");
    const control = { kind: "cancel", reason: "enough" } as const;
    world.ask({ kind: "control", job, by: "me", control });
    expect(outcome(world, job)).toMatchObject({ status: "CANCELLED" });
    for (const gate of [0, 1, 2]) world.kill(gate);
    for (const gate of [0, 1, 2]) world.start(gate);
    const calls = world.calls();
    bringBack(world, "dc2");
    world.run(30_000);
    expect(partIn(world, "dc2")).toEqual(["CANCELLED", "the job is over: CANCELLED"]);
    expect(world.calls()).toBe(calls);
  });

  it("does not keep gates awake while it is away", () => {
    const world = new GateWorld({ datacenters: BOTH, loadMs: 3_000 });
    const job = begun(world);
    lose(world, "dc2");
    world.end(job, 200_000);
    world.ticks = 0;
    world.run(10_000);
    expect(world.ticks).toBeLessThan(100);
  });
});
