import { describe, expect, it } from "vitest";
import { GateWorld } from "./testing/world.ts";

const BOTH = ["dc1", "dc2"];
const GATES = [0, 1, 2];
/** Time until a circuit that was open for long lets a request pass again. */
const NOTICED_MS = 40_000;

/** A job in both datacenters; one of them is unreachable and generates load far longer than its plan. */
function cutOff(away: string): { readonly world: GateWorld; readonly job: string } {
  const world = new GateWorld({ gates: GATES.length, datacenters: BOTH, loadMs: 3_000 });
  world.datacenter(away).worker(0).loadMs = 3_600_000;
  const job = world.submit({}, { datacenters: BOTH });
  world.until(() => world.status(job) === "RUNNING");
  world.run(500);
  world.cut.add(away);
  return { world, job };
}

/** Status of the part as its own datacenter reports it. */
function partIn(world: GateWorld, name: string): readonly (string | null)[] {
  const answer = world.datacenter(name).ask({ kind: "jobs", after: null });
  const jobs = answer.kind === "jobs" ? answer.jobs : [];
  return jobs.flatMap(({ reason, status }) => [status, reason]);
}

/** Status and result as every gate reports them. */
function outcome(world: GateWorld, job: string): unknown {
  const { reason, status, summary } = world.end(job, 200_000);
  return { reason, status, summary };
}

function coresBusy(world: GateWorld, name: string): number {
  const jobs = [...world.datacenter(name).worker(0).jobs.values()];
  return jobs.reduce((sum, { cores }) => sum + cores.size, 0);
}

/** The part is cancelled and finishes. */
function expectEnded(world: GateWorld, name: string, status: string): void {
  expect(coresBusy(world, name)).toBeGreaterThan(0);
  world.cut.clear();
  world.run(NOTICED_MS);
  expect(partIn(world, name)).toEqual(["CANCELLED", `the job is over: ${status}`]);
  expect(coresBusy(world, name)).toBe(0);
  const calls = world.calls();
  world.run(5_000);
  expect(world.calls()).toBe(calls);
}

describe("an abandoned datacenter that answers again after the end of the job", () => {
  it.each(BOTH)("is cancelled once by each gate, and the job stays unchanged: %s", (away) => {
    const { job, world } = cutOff(away);
    const before = outcome(world, job);
    expect(before).toMatchObject({ status: "PARTIAL", reason: `${away}: lost` });
    expectEnded(world, away, "PARTIAL");
    expect(outcome(world, job)).toEqual(before);
    world.run(60_000);
    const lines = world.logs.filter((line) => line.startsWith("job.partOver"));
    expect(lines).toHaveLength(GATES.length);
  });

  it("is cancelled when the gate that led the job is gone", () => {
    const { job, world } = cutOff("dc2");
    const before = outcome(world, job);
    world.kill(world.leaderOf(job));
    expectEnded(world, "dc2", "PARTIAL");
    expect(outcome(world, job)).toEqual(before);
  });

  it("is cancelled after a restart of all gates", () => {
    const { job, world } = cutOff("dc2");
    const before = outcome(world, job);
    for (const gate of GATES) world.kill(gate);
    for (const gate of GATES) world.start(gate);
    world.run(10_000);
    expectEnded(world, "dc2", "PARTIAL");
    expect(outcome(world, job)).toEqual(before);
  });

  it("is cancelled by restarted gates if the job was cancelled", () => {
    const { job, world } = cutOff("dc2");
    const control = { kind: "cancel", reason: "enough" } as const;
    world.ask({ kind: "control", job, by: "me", control });
    expect(outcome(world, job)).toMatchObject({ status: "CANCELLED" });
    for (const gate of GATES) world.kill(gate);
    for (const gate of GATES) world.start(gate);
    world.run(10_000);
    expectEnded(world, "dc2", "CANCELLED");
  });

  it("may have lost power in the meantime", () => {
    const { job, world } = cutOff("dc2");
    const dc2 = world.datacenter("dc2");
    dc2.kill(0);
    dc2.killWorker(0);
    outcome(world, job);
    dc2.start(0);
    dc2.worker(0).restart();
    world.cut.clear();
    const calls = world.calls();
    world.run(NOTICED_MS);
    expect([world.calls(), coresBusy(world, "dc2")]).toEqual([calls, 0]);
    expect(world.logs.filter((line) => line.startsWith("job.partOver"))).toHaveLength(3);
  });

  it("does not keep gates awake while it is unreachable", () => {
    const { job, world } = cutOff("dc2");
    outcome(world, job);
    world.ticks = 0;
    world.run(10_000);
    expect(world.ticks / GATES.length).toBeLessThan(100);
  });
});
