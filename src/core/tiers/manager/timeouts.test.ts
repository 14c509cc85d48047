import { describe, expect, it } from "vitest";
import type { Progress } from "../messages.ts";
import { World } from "./testing/world.ts";

const SECOND = 1_000;
const LONG_MS = 3_600_000;

function running(world: World, changes: Parameters<World["submit"]>[0] = {}): string {
  const job = world.submit(changes);
  world.until(() => world.progress(job)?.status === "RUNNING");
  return job;
}

function stick(world: World, isStuck = true): void {
  for (const core of world.workers.flatMap(({ opened }) => opened)) core.isStuck = isStuck;
}

/** Seconds from now until it has ended, and how. */
function endOf(world: World, job: string, withinMs = 400_000): readonly [number, Progress] {
  const from = world.now;
  let last: Progress | null = null;
  world.until(() => {
    world.run(SECOND);
    last = world.progress(job);
    return last?.status === "TIMED_OUT" || last?.status === "COMPLETED";
  }, withinMs);
  if (last === null) throw new Error("nothing is known of it");
  return [(world.now - from) / SECOND, last];
}

describe("a job that takes too long (AD-34)", () => {
  it("ends at its limit, with the reason and what it has measured", () => {
    const world = new World({ loadMs: LONG_MS });
    const job = running(world, { timeoutMs: 30 * SECOND });
    const [seconds, { reason, status, summary }] = endOf(world, job);
    expect(status).toBe("TIMED_OUT");
    expect(reason).toBe("it took longer than 30s");
    expect(seconds).toBeGreaterThan(28);
    expect(seconds).toBeLessThan(34);
    expect(summary?.totals?.requests).toBe(world.calls());
    const told = world.ask({ kind: "events", job, from: 0 });
    const events = told.kind === "events" ? told.events : [];
    expect(events.filter(({ kind }) => kind === "timeOut")).toMatchObject([
      { who: "manager", text: "it took longer than 30s" },
    ]);
    expect(world.timeouts(0)).toMatchObject({ active: 0 });
  });

  it("is never stuck while something of it advances within the threshold", () => {
    const world = new World({ loadMs: LONG_MS });
    const job = running(world);
    for (let turn = 0; turn < 2; turn++) {
      stick(world);
      world.run(100 * SECOND);
      stick(world, false);
      world.run(2 * SECOND);
    }
    expect(world.progress(job)?.status).toBe("RUNNING");
  });

  it("is ended when nothing of it advances for two minutes", () => {
    const world = new World({ loadMs: LONG_MS });
    const job = running(world);
    world.run(20 * SECOND);
    stick(world);
    const [seconds, { reason, status }] = endOf(world, job);
    expect([status, reason]).toEqual(["TIMED_OUT", "nothing of it has advanced for 2m00s"]);
    expect(seconds).toBeGreaterThan(110);
    expect(seconds).toBeLessThan(150);
    expect(world.timeouts(0).counts.detected.get("stuck")).toBe(1);
  });

  it("may be paused for as long as people like", () => {
    const world = new World({ loadMs: LONG_MS });
    const job = running(world);
    world.control(job, { kind: "pause" });
    stick(world);
    world.run(180 * SECOND);
    expect(world.progress(job)?.status).toBe("PAUSED");
  });

  it("is timed out once when it is cancelled at the same moment", () => {
    const world = new World({ loadMs: LONG_MS });
    const job = running(world, { timeoutMs: 10 * SECOND });
    world.run(10 * SECOND - 500);
    world.control(job, { kind: "cancel", reason: "enough" });
    world.run(5 * SECOND);
    expect(world.end(job)).toMatchObject({ status: "CANCELLED", reason: "enough" });
    expect(world.timeouts(0)).toMatchObject({ active: 0 });
  });

  it("has the same limit whoever leads it: no budget begins anew (AD-34.4)", () => {
    for (const killAt of [15, 29]) {
      const world = new World({ managers: 3, loadMs: LONG_MS });
      const job = running(world, { timeoutMs: 30 * SECOND });
      const from = world.now;
      world.run(killAt * SECOND);
      world.replaceLeader(job);
      const [, { reason, status }] = endOf(world, job);
      expect([killAt, status, reason]).toEqual([killAt, "TIMED_OUT", "it took longer than 30s"]);
      const took = (world.now - from) / SECOND;
      expect([killAt, took > 28 && took < 60]).toEqual([killAt, true]);
    }
  });

  it("is stuck under the next leader as well, a check later at most", () => {
    const world = new World({ managers: 3, loadMs: LONG_MS });
    const job = running(world);
    world.run(20 * SECOND);
    stick(world);
    const from = world.now;
    world.run(80 * SECOND);
    world.replaceLeader(job);
    const [, { status }] = endOf(world, job);
    expect(status).toBe("TIMED_OUT");
    expect((world.now - from) / SECOND).toBeLessThan(120 + 30 + 30);
    expect(world.leaderTransfers).toBeGreaterThan(0);
  });
});

describe("the clocks of many jobs", () => {
  it("are gone when the jobs are, whatever their end was (AD-34.60)", () => {
    const world = new World({ workers: 4, cores: 8, loadMs: 2 * SECOND });
    const jobs = Array.from({ length: 60 }, (_, at) => {
      const timeoutMs = at % 4 === 0 ? SECOND : null;
      const job = world.submit({ cores: 1, timeoutMs }, `key ${at}`);
      if (at % 4 === 1) world.control(job, { kind: "cancel", reason: "enough" });
      return job;
    });
    const ends = jobs.map((job) => world.end(job).status);
    expect([...new Set(ends)].sort()).toEqual(["CANCELLED", "COMPLETED", "FAILED", "TIMED_OUT"]);
    world.run(5 * SECOND);
    expect(world.timeouts(0).active).toBe(0);
    const stopped = [...world.timeouts(0).counts.stopped.values()];
    expect(stopped.reduce((sum, count) => sum + count, 0)).toBeGreaterThan(0);
  });
});
