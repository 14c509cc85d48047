import { describe, expect, it } from "vitest";
import { GateWorld } from "./testing/world.ts";

const SECOND = 1_000;
const LONG_MS = 3_600_000;
const TWO = { datacenters: ["dc1", "dc2"] } as const;

function running(
  world: GateWorld,
  changes: Parameters<GateWorld["submit"]>[0] = {},
  count = 1,
): string {
  const job = world.submit({ cores: count, ...changes }, { count });
  world.until(() => world.status(job) === "RUNNING");
  return job;
}

function stick(world: GateWorld, name: string): void {
  for (const core of world.datacenter(name).workers.flatMap(({ opened }) => opened))
    core.isStuck = true;
}

/** Outcome of each datacenter's part. */
function statusesIn(world: GateWorld): readonly string[] {
  return [...world.datacenters.values()].map((datacenter) => {
    const answer = datacenter.ask({ kind: "jobs", after: null });
    return answer.kind === "jobs" ? (answer.jobs[0]?.status ?? "") : "";
  });
}

describe("a job of a gate that takes too long (AD-34)", () => {
  it("ends at its limit in every datacenter, with the reason", () => {
    const world = new GateWorld({ ...TWO, loadMs: LONG_MS });
    const job = running(world, { timeoutMs: 20 * SECOND }, 2);
    const end = world.end(job);
    expect(end.status).toBe("TIMED_OUT");
    expect(end.reason).toContain("it took longer than 20s");
    expect(end.summary?.totals?.requests).toBe(world.calls());
    expect(statusesIn(world)).toEqual(["TIMED_OUT", "TIMED_OUT"]);
    world.run(5 * SECOND);
    expect(world.timeouts(0).active).toBe(0);
    expect([...world.timeouts(0).counts.globalDeclared.keys()]).toContain("overall");
  });

  it("ends everywhere when it is stuck in one of them", () => {
    const world = new GateWorld({ ...TWO, loadMs: LONG_MS });
    const job = running(world, {}, 2);
    world.run(10 * SECOND);
    stick(world, "dc2");
    world.run(165 * SECOND);
    expect(statusesIn(world)).toEqual(["TIMED_OUT", "TIMED_OUT"]);
    expect(world.end(job).status).toBe("TIMED_OUT");
    expect(world.timeouts(0).counts.timeoutReceived.get("dc2")).toBe(1);
  });

  it("is timed out in every datacenter until it has ended there (AD-34.33)", () => {
    const world = new GateWorld({ ...TWO, loadMs: LONG_MS });
    const job = running(world, {}, 2);
    world.run(10 * SECOND);
    stick(world, "dc2");
    world.run(100 * SECOND);
    world.cut.add("dc1");
    world.until(() => statusesIn(world)[1] === "TIMED_OUT", 90 * SECOND);
    world.run(20 * SECOND);
    // The part advances and is unaware of the timeout: only the gate ends it.
    expect(statusesIn(world)).toEqual(["RUNNING", "TIMED_OUT"]);
    expect(world.status(job)).not.toBe("TIMED_OUT");
    world.cut.delete("dc1");
    world.until(() => statusesIn(world)[0] === "TIMED_OUT");
    expect(world.end(job).status).toBe("TIMED_OUT");
  });

  it("is timed out by the next gate when its leader is gone", () => {
    const world = new GateWorld({ gates: 3, loadMs: LONG_MS });
    const job = running(world, { timeoutMs: 30 * SECOND });
    world.run(20 * SECOND);
    const gone = world.leaderOf(job);
    world.kill(gone);
    world.until(() => world.leaderOf(job) >= 0);
    world.start(gone);
    expect(world.end(job)).toMatchObject({
      status: "TIMED_OUT",
      reason: "it took longer than 30s",
    });
  });

  it("is timed out under the third leader of its datacenter as well (C40-14)", () => {
    const world = new GateWorld({ managers: 3, loadMs: LONG_MS });
    const job = running(world, { timeoutMs: 40 * SECOND });
    const datacenter = world.datacenter("dc1");
    for (let turn = 0; turn < 2; turn++) {
      const [gone = 0] = datacenter.leaders();
      datacenter.kill(gone);
      world.until(() => datacenter.leaders().length > 0);
      datacenter.start(gone);
      world.run(2 * SECOND);
    }
    expect(world.end(job, 120 * SECOND).status).toBe("TIMED_OUT");
  });

  it("is ended by its datacenter when no gate decides for five minutes (AD-34.23)", () => {
    const world = new GateWorld({ loadMs: LONG_MS });
    running(world, { timeoutMs: 20 * SECOND });
    world.cut.add("dc1");
    world.run(20 * SECOND + 295 * SECOND);
    expect(statusesIn(world)).toEqual(["RUNNING"]);
    world.until(() => statusesIn(world)[0] === "TIMED_OUT", 30 * SECOND);
    const answer = world.datacenter("dc1").ask({ kind: "jobs", after: null });
    expect(answer.kind === "jobs" ? answer.jobs[0]?.reason : "").toContain(
      "gate_unresponsive_fallback",
    );
  });

  it("keeps an end that came first when both cross", () => {
    for (const afterMs of [9_000, 9_500, 9_900, 10_000, 10_100, 10_500]) {
      const world = new GateWorld({ loadMs: afterMs });
      const job = world.submit({ timeoutMs: 10 * SECOND });
      const end = world.end(job);
      expect([afterMs, end.status]).toEqual([afterMs, statusesIn(world)[0]]);
      expect(["COMPLETED", "TIMED_OUT"]).toContain(end.status);
    }
  });
});
