import { describe, expect, it } from "vitest";
import { WALL } from "../../ledger/node/testing/cluster.ts";
import type { Observed } from "../gate-messages.ts";
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

/** Seconds from now until the job has ended, and its final state. */
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
  it("ends at its limit, with the reason and its measurements", () => {
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

  it("is never stuck while it advances within the threshold", () => {
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

  it("is ended after two minutes without progress", () => {
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

  it("advances with every step in its log, though no call is made (AD-34.6)", () => {
    const world = new World({ workers: 2, cores: 1, loadMs: LONG_MS });
    const job = running(world);
    world.run(20 * SECOND);
    stick(world);
    world.run(100 * SECOND);
    world.killWorker(1);
    // By then it would have been stuck for 150 s after its last call.
    world.run(100 * SECOND);
    expect(world.progress(job)?.status).toBe("RUNNING");
    const [, { reason, status }] = endOf(world, job, 50 * SECOND);
    expect([status, reason]).toEqual(["TIMED_OUT", "nothing of it has advanced for 2m00s"]);
  });

  it("is checked every ten seconds, and a standstill is recorded at once (AD-34.21)", () => {
    const world = new World({ loadMs: LONG_MS });
    /** By the clock of the world. */
    const moves: { readonly at: number; readonly movedAt: number }[] = [];
    world.onEntry = (entry) => {
      if (entry.kind !== "timeouts" || entry.change.kind !== "progress") return;
      const beganAt = world.now - entry.at;
      moves.push({ at: world.now, movedAt: beganAt + entry.change.progressAt });
    };
    running(world);
    world.run(200 * SECOND);
    // While it advances, one check in three is recorded.
    const everyMs = moves.slice(1).map(({ at }, before) => at - (moves[before]?.at ?? 0));
    expect(everyMs.length).toBeGreaterThan(4);
    for (const ms of everyMs) expect(Math.round(ms / SECOND)).toBe(30);
    stick(world);
    const stuckAt = world.now;
    world.run(60 * SECOND);
    const { at, movedAt } = moves.at(-1) ?? { at: 0, movedAt: 0 };
    expect(at - stuckAt).toBeLessThanOrEqual(20 * SECOND);
    expect(Math.abs(movedAt - stuckAt)).toBeLessThanOrEqual(10 * SECOND);
  });

  it("is not timed out when its load had ended by itself (AD-34.63)", () => {
    const ends = new Set<string>();
    for (let loadMs = 9_000; loadMs <= 11_000; loadMs += 100) {
      const world = new World({ loadMs });
      const job = running(world, { timeoutMs: 10 * SECOND });
      const { status, summary } = world.end(job);
      const wasStopped = world.workers
        .flatMap(({ opened }) => opened)
        .some(({ commands }) => commands.includes("stop"));
      expect([loadMs, status]).toEqual([loadMs, wasStopped ? "TIMED_OUT" : "COMPLETED"]);
      expect(summary?.totals?.requests).toBe(world.calls());
      ends.add(status);
    }
    expect([...ends].sort()).toEqual(["COMPLETED", "TIMED_OUT"]);
  });

  it("ignores a timeout that arrives after its thresholds have ended it (AD-34.63)", () => {
    const world = new World({ loadMs: LONG_MS });
    const job = running(world, { thresholds: ["requests.count < 20"], abortAfterMs: 0 });
    const { opened } = world.worker(0);
    // The cores are ordered to stop and have not confirmed it.
    world.until(() => {
      const calls = world.progress(job)?.summary?.totals?.requests ?? 0;
      for (const core of opened) core.isSilent = calls >= 20;
      return opened.some(({ commands }) => commands.includes("stop"));
    });
    const late = { kind: "timeOut", reason: "late", view: 1, extendedMs: 0 } as const;
    expect(world.control(job, late)).toEqual({ kind: "controlled" });
    for (const core of opened) core.isSilent = false;
    expect(world.end(job).status).toBe("COMPLETED");
  });

  it("may stay paused indefinitely", () => {
    const world = new World({ loadMs: LONG_MS });
    const job = running(world);
    world.control(job, { kind: "pause" });
    stick(world);
    world.run(180 * SECOND);
    expect(world.progress(job)?.status).toBe("PAUSED");
  });

  it("is timed out once when it is cancelled at the same time", () => {
    const world = new World({ loadMs: LONG_MS });
    const job = running(world, { timeoutMs: 10 * SECOND });
    world.run(10 * SECOND - 500);
    world.control(job, { kind: "cancel", reason: "enough" });
    world.run(5 * SECOND);
    expect(world.end(job)).toMatchObject({ status: "CANCELLED", reason: "enough" });
    expect(world.timeouts(0)).toMatchObject({ active: 0 });
  });

  it("has one limit across leader changes: no budget restarts (AD-34.4)", () => {
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

  it("is stuck under the next leader as well, at most one check later", () => {
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

describe("a job of a gate", () => {
  /** Begun the way a gate begins it. */
  function held(world: World, timeoutMs: number): string {
    const job = world.submit({ held: true, timeoutMs });
    world.until(() => observe(world, job).prepared);
    world.control(job, { kind: "start", atMs: WALL + world.now });
    world.until(() => observe(world, job).status === "RUNNING");
    return job;
  }

  function observe(world: World, job: string): Observed {
    const request = { kind: "observe", job, line: 0, live: "none", held: null } as const;
    const posted = world.post({ kind: "gate", request }, Math.max(0, world.leaderOf(job)));
    const answer = world.takeAnswer(posted);
    if (answer?.kind !== "observed") throw new Error(JSON.stringify(answer));
    return answer;
  }

  it("reports its clock with every answer (AD-34.31)", () => {
    const world = new World({ loadMs: LONG_MS });
    const job = held(world, LONG_MS);
    const none = { extendedMs: 0, extensionMsMax: 0, extended: 0, overdue: null };
    world.run(30 * SECOND);
    expect(observe(world, job).clock).toMatchObject(none);
    expect(observe(world, job).clock?.idleMs).toBeLessThanOrEqual(10 * SECOND);
    stick(world);
    world.run(90 * SECOND);
    const { clock } = observe(world, job);
    expect(clock).toMatchObject(none);
    expect(Math.abs((clock?.idleMs ?? 0) - 90 * SECOND)).toBeLessThanOrEqual(10 * SECOND);
  });

  it("is reported as overdue by every leader until the gate decides, and continues (AD-34.20, AD-34.22)", () => {
    const world = new World({ managers: 3, loadMs: LONG_MS });
    const job = held(world, 20 * SECOND);
    world.run(25 * SECOND);
    const overdue = { cause: "overall", reason: "it took longer than 20s" };
    for (let turn = 0; turn < 3; turn++) {
      const { clock, status } = observe(world, job);
      expect([turn, status, clock?.overdue]).toEqual([turn, "RUNNING", overdue]);
      world.replaceLeader(job);
      world.until(() => observe(world, job).status === "RUNNING");
      world.run(30 * SECOND);
    }
    const { clock, view } = observe(world, job);
    expect(clock?.overdue).toEqual(overdue);
    const decided = { kind: "timeOut", reason: "the gate says so", extendedMs: 0 } as const;
    const stale = { kind: "control", job, by: "gate", control: { ...decided, view: view - 1 } };
    world.ask({ ...stale, kind: "control" }, world.leaderOf(job));
    expect(observe(world, job).status).toBe("RUNNING");
    world.control(job, { ...decided, view });
    expect(world.end(job)).toMatchObject({ status: "TIMED_OUT", reason: "the gate says so" });
    expect(observe(world, job).clock ?? null).toBeNull();
  });
});

describe("the clocks of many jobs", () => {
  it("are removed with the jobs, however these ended (AD-34.60)", () => {
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
