import { describe, expect, it } from "vitest";
import type { GroupId } from "../../ledger/group/messages.ts";
import { WALL } from "../../ledger/node/testing/cluster.ts";
import { manifest } from "../../load/job/testing/manifest.ts";
import type { RunState } from "./run-state.ts";
import { BLOCK, type FakeCore } from "./testing/fake-core.ts";
import { World } from "./testing/world.ts";

function cores(world: World): readonly FakeCore[] {
  return world.workers.flatMap(({ opened }) => opened);
}

function commandsSent(world: World, kind: string): number {
  return cores(world).flatMap(({ commands }) => commands.filter((one) => one === kind)).length;
}

function held(world: World, job: string): number {
  return world.workers.reduce((sum, { jobs }) => sum + (jobs.get(job)?.cores.size ?? 0), 0);
}

function runs(world: World, job: string): void {
  world.until(() => world.progress(job)?.status === "RUNNING");
}

const CANCEL = { kind: "cancel", reason: "not now" } as const;

describe("a new leader", () => {
  it("reports an end to the datacenter that its predecessor had no time to report", () => {
    const world = new World({ managers: 3, cores: 2, loadMs: 500 });
    const job = world.submit();
    runs(world, job);
    // Entries of the job are committed, those of the datacenter are not.
    world.cluster.isLost = (message) => message.kind === "vsr" && message.group === "dc/dc1";
    const leader = world.leaderOf(job);
    const group = `run/${job}` as GroupId;
    world.until(() => {
      const app = world.cluster.at(leader).node?.groups.get(group)?.app;
      return app?.kind === "registered" && (app.application as RunState).end !== null;
    });
    world.kill(leader);
    world.cluster.isLost = () => false;
    expect(world.end(job).status).toBe("COMPLETED");
    expect(held(world, job)).toBe(0);
  });

  it("knows which shares finished of a workflow that another datacenter has set up", () => {
    const world = new World({ managers: 3, workers: 2, cores: 1, loadMs: 1_000 });
    world.run(600);
    const job = world.submit({ manifests: [manifest("shop", { joint: "other" })], cores: 2 });
    world.run(500);
    // The leader is cut off before it can report that all its cores have finished.
    let old = -1;
    world.onEntry = (entry) => {
      if (old >= 0 || entry.kind !== "step" || entry.step.kind !== "report") return;
      old = world.leaderOf(job);
      world.cut(old, true);
    };
    const atMs = WALL + world.now + 250;
    world.control(job, { kind: "begin", workflow: "shop", atMs, value: undefined });
    world.until(() => old >= 0);
    const { status, summary } = world.end(job);
    expect([status, summary?.totals?.requests]).toEqual(["COMPLETED", world.calls()]);
  });

  it("does not wait for cores of a worker that answered it and then restarted", () => {
    const world = new World({ managers: 1, workers: 2, cores: 1, loadMs: 5_000 });
    world.run(600);
    const job = world.submit({ cores: 2 });
    runs(world, job);
    // One worker is down, so the manager waits for it before it continues the job.
    world.killWorker(1);
    world.kill(0);
    world.start(0);
    world.run(1_000);
    world.worker(0).restart();
    const { status } = world.end(job);
    expect(status).toBe("FAILED");
  });

  it("ignores events of a replaced process with the same core number", () => {
    // Unconfirmed events of the previous process: that it has loaded the job, or is lost.
    for (const isLost of [false, true]) {
      const world = new World({ managers: 1, workers: 2, cores: 1, loadMs: 1_000 });
      for (const worker of world.workers) worker.spawnMs = 200;
      const job = world.submit({ cores: 2 });
      world.until(() => cores(world).length === 2);
      world.kill(0);
      world.run(1_000);
      const before = world.worker(0).jobs.get(job);
      expect(before?.waiting).toMatchObject([{ event: { kind: "loaded" } }]);
      if (isLost && before !== undefined) world.worker(0).lose(before, 0);
      world.start(0);
      const { status, summary } = world.end(job);
      expect([isLost, status, summary?.lost]).toEqual([isLost, "COMPLETED", []]);
      expect(summary?.totals?.requests).toBe(world.calls());
      expect(cores(world).map(({ commands }) => commands.includes("start"))).toEqual([
        ...[false, true, false, true],
      ]);
    }
  });

  it("reopens no core for a job that was cancelled meanwhile", () => {
    const world = new World({ managers: 1, cores: 2, loadMs: 1_000 });
    world.worker(0).spawnMs = 200;
    const job = world.submit();
    world.until(() => cores(world).length === 2);
    world.kill(0);
    world.run(1_000);
    const worker = world.worker(0);
    const take = worker.take.bind(worker);
    // The worker learns the leader, and nothing more until the job is cancelled.
    worker.take = (message, ...rest) => {
      worker.deaf = true;
      return take(message, ...rest);
    };
    world.start(0);
    world.until(() => worker.deaf);
    worker.take = take;
    expect(world.control(job, CANCEL)).toEqual({ kind: "controlled" });
    expect(held(world, job)).toBe(2);
    worker.deaf = false;
    expect(world.end(job).status).toBe("CANCELLED");
    world.run(2_000);
    expect([cores(world).length, held(world, job)]).toEqual([2, 0]);
  });

  it("starts nothing a second time that began after a delay", () => {
    for (const afterMs of [1_000, 3_000, 4_500]) {
      const world = new World({ managers: 3, cores: 2, loadMs: 1_000 });
      const late = { startAfterMs: 2_000 };
      const second = { dependsOn: ["first"], startAfterMs: 500 };
      const job = world.submit({
        manifests: [manifest("first", late), manifest("second", second)],
      });
      world.run(afterMs);
      world.replaceLeader(job);
      const { status, summary } = world.end(job);
      expect([afterMs, status]).toEqual([afterMs, "COMPLETED"]);
      expect(summary?.workflows.map((one) => one.status)).toEqual(["completed", "completed"]);
      // Each workflow has two cores, and is set up and torn down on one of them.
      for (const [kind, times] of [
        ["prepare", 4],
        ["start", 4],
        ["setup", 2],
        ["teardown", 2],
      ])
        expect([afterMs, kind, commandsSent(world, String(kind))]).toEqual([afterMs, kind, times]);
    }
  });

  it("places a delayed workflow once, also while the run is paused", () => {
    const world = new World({ managers: 3, cores: 2, loadMs: 6_000 });
    const job = world.submit({
      manifests: [manifest("now"), manifest("late", { startAfterMs: 2_000 })],
    });
    runs(world, job);
    world.run(1_000);
    world.control(job, { kind: "pause" });
    world.run(5_000);
    world.control(job, { kind: "resume" });
    world.until(() => commandsSent(world, "start") === 2);
    world.replaceLeader(job);
    expect(world.end(job).status).toBe("COMPLETED");
    expect(commandsSent(world, "start")).toBe(2);
  });

  it("drops no core on the report of a worker that was cut off and comes back", () => {
    const world = new World({ managers: 3, workers: 2, cores: 1, loadMs: 25_000 });
    const job = world.submit();
    runs(world, job);
    const old = world.leaderOf(job);
    world.cut(old, true);
    world.until(() => world.leaderOf(job) >= 0);
    world.run(8_000);
    world.cut(old, false);
    const { status, summary } = world.end(job);
    expect([status, summary?.lost]).toEqual(["COMPLETED", []]);
    expect(summary?.totals?.requests).toBe(world.calls());
  });

  it("treats a workflow stopped on its way as finished, and starts no other", () => {
    const world = new World({ managers: 3, cores: 2, loadMs: 20_000 });
    const job = world.submit({
      manifests: [manifest("first"), manifest("second", { dependsOn: ["first"] })],
      thresholds: ["requests.count < 10"],
      abortAfterMs: 1_000,
    });
    world.until(() => commandsSent(world, "stop") > 0);
    world.replaceLeader(job);
    const { status, summary } = world.end(job);
    expect(status).toBe("COMPLETED");
    expect(summary?.workflows.map((one) => one.status)).toEqual(["interrupted", "not run"]);
    expect(commandsSent(world, "prepare")).toBe(2);
  });
});

describe("a block request", () => {
  const load = { kind: "shared", vus: 4, iterations: 1_000, durationMsMax: 60_000 } as const;

  it("is granted once, though the leader that accepted it is gone (T6)", () => {
    for (const afterMs of [0, 20, 40, 60, 80]) {
      const world = new World({ managers: 3, workers: 2, cores: 2, loadMs: 12_000 });
      const job = world.submit({ manifests: [manifest("leasing", { load })] });
      world.until(() => commandsSent(world, "start") > 0);
      for (const worker of world.workers) worker.deaf = true;
      world.run(afterMs);
      const leader = world.leaderOf(job);
      world.kill(leader);
      for (const worker of world.workers) worker.deaf = false;
      world.until(() => world.leaderOf(job) >= 0);
      world.start(leader);
      world.until(() => cores(world).every(({ blocks }) => blocks.length > 0), 10_000);
      const froms = cores(world).flatMap(({ blocks }) => blocks.map(([from]) => from));
      expect([afterMs, froms.sort((a, b) => a - b)]).toEqual([
        afterMs,
        [0, BLOCK, 2 * BLOCK, 3 * BLOCK],
      ]);
    }
  });
});

describe("a cancel", () => {
  it("holds at every step across leader changes: no load after it, and measurements are kept", () => {
    for (const afterMs of [0, 40, 60, 80, 100, 120, 140, 200, 1_500]) {
      const world = new World({ managers: 3, cores: 2, loadMs: 20_000 });
      const job = world.submit();
      world.run(afterMs);
      expect(world.control(job, CANCEL)).toEqual({ kind: "controlled" });
      const started = commandsSent(world, "start");
      world.replaceLeader(job);
      const { reason, status, summary } = world.end(job);
      expect([afterMs, status, reason]).toEqual([afterMs, "CANCELLED", "not now"]);
      if (started === 0) expect([afterMs, commandsSent(world, "start")]).toEqual([afterMs, 0]);
      if (world.calls() > 0)
        expect([afterMs, summary?.totals?.requests]).toEqual([afterMs, world.calls()]);
      world.run(2_000);
      expect([afterMs, held(world, job)]).toEqual([afterMs, 0]);
    }
  });

  it("keeps the measurements when it arrives while a new leader gathers", () => {
    const world = new World({ managers: 1, cores: 2, loadMs: 20_000 });
    const job = world.submit();
    runs(world, job);
    world.run(1_000);
    world.kill(0);
    world.run(1_000);
    world.worker(0).cut = true;
    world.start(0);
    world.until(() => world.leaderOf(job) >= 0);
    expect(world.control(job, CANCEL)).toEqual({ kind: "controlled" });
    world.worker(0).cut = false;
    const { status, summary } = world.end(job);
    expect(status).toBe("CANCELLED");
    expect(summary?.totals?.requests).toBe(world.calls());
  });

  it("reaches cores that had not received it from the previous leader", () => {
    const world = new World({ managers: 3, cores: 2, loadMs: 30_000 });
    const job = world.submit();
    runs(world, job);
    world.worker(0).deaf = true;
    world.control(job, CANCEL);
    world.kill(world.leaderOf(job));
    world.worker(0).deaf = false;
    const { status, summary } = world.end(job);
    expect([status, summary?.lost]).toEqual(["CANCELLED", []]);
    expect(commandsSent(world, "stop")).toBe(2);
  });
});

describe("controls sent before a job has begun", () => {
  it("apply from its beginning on", () => {
    const world = new World({ cores: 2, loadMs: 2_000 });
    const job = world.submit();
    world.until(() => world.leaderOf(job) >= 0);
    expect(world.control(job, { kind: "scale", factor: 3 })).toEqual({ kind: "controlled" });
    expect(world.control(job, { kind: "pause" })).toEqual({ kind: "controlled" });
    world.run(2_000);
    expect(world.progress(job)).toMatchObject({ status: "PAUSED" });
    expect([commandsSent(world, "start"), world.calls()]).toEqual([0, 0]);
    world.control(job, { kind: "resume" });
    expect(world.end(job).status).toBe("COMPLETED");
    expect([commandsSent(world, "start"), commandsSent(world, "scale")]).toEqual([2, 2]);
  });
});

describe("a worker that was declared lost", () => {
  it("comes back and releases its cores to the next job", () => {
    const world = new World({ workers: 2, cores: 1, loadMs: 12_000 });
    const job = world.submit();
    runs(world, job);
    const worker = world.worker(0);
    worker.cut = true;
    world.run(5_000);
    worker.cut = false;
    world.run(1_500);
    expect([worker.jobs.get(job)?.cores.size, worker.opened[0]?.isLoading]).toEqual([0, true]);
    expect(world.end(job).summary?.lost).toHaveLength(1);
  });

  it("comes back after the end and releases its cores", () => {
    const world = new World({ workers: 2, cores: 1, loadMs: 3_000 });
    const job = world.submit();
    runs(world, job);
    const worker = world.worker(0);
    worker.cut = true;
    expect(world.end(job).status).toBe("COMPLETED");
    worker.cut = false;
    world.run(1_500);
    expect(worker.jobs.get(job)?.cores.size).toBe(0);
  });

  it("is ignored by a new leader, and releases its cores when it comes back", () => {
    const world = new World({ managers: 3, workers: 2, cores: 1, loadMs: 30_000 });
    const job = world.submit();
    runs(world, job);
    const worker = world.worker(0);
    worker.cut = true;
    world.replaceLeader(job);
    world.run(6_000);
    worker.cut = false;
    world.run(3_000);
    expect(worker.jobs.get(job)?.cores.size).toBe(0);
    expect(world.end(job).summary?.lost).toHaveLength(1);
  });

  it("costs only its cores when it is lost while they are being opened", () => {
    const world = new World({ managers: 3, workers: 2, cores: 1, loadMs: 1_000 });
    const others = [1, 2];
    // Nothing is committed until the worker is known to be lost.
    world.onEntry = ({ kind }) => {
      if (kind !== "open") return;
      world.worker(0).alive = false;
      for (const index of others) world.cut(index, true);
    };
    const job = world.submit();
    world.run(5_000);
    world.onEntry = () => undefined;
    expect(world.worker(1).opened).toHaveLength(0);
    for (const index of others) world.cut(index, false);
    const begunAt = world.now;
    expect(world.end(job)).toMatchObject({ status: "COMPLETED", reason: null });
    // Long before its cores are abandoned for not having loaded.
    expect(world.now - begunAt).toBeLessThan(30_000);
  });
});

describe("a datacenter after an outage of all managers", () => {
  const LOAD_MS = 10_000;

  /**
   * Leaves a job of two cores without a leader for a while, after it has run for 3 s; `power`: its workers are down as
   * well.
   */
  function down(forMs: number, { managers = 3, power = false } = {}) {
    const load = { kind: "vus", stages: [{ durationMs: LOAD_MS, from: 4, to: 4 }] } as const;
    const world = new World({ managers, workers: 2, cores: 1, loadMs: LOAD_MS });
    world.run(600);
    const job = world.submit({ manifests: [manifest("shop", { load })], cores: 2 });
    runs(world, job);
    const beganAt = world.now;
    world.run(3_000);
    for (let at = 0; at < managers; at++) world.kill(at);
    if (power) for (const worker of world.workers) worker.alive = false;
    world.run(forMs);
    if (power) for (const worker of world.workers) worker.restart();
    for (let at = 0; at < managers; at++) world.start(at);
    return { world, job, beganAt };
  }

  it.each([1, 3])("continues at the time that has passed: %i managers", (managers) => {
    const { beganAt, job, world } = down(5_000, { managers });
    const { status, summary } = world.end(job);
    const tookMs = world.now - beganAt;
    expect([status, summary?.totals?.requests]).toEqual(["COMPLETED", world.calls()]);
    expect(Math.abs((summary?.durationSeconds ?? 0) * 1_000 - tookMs)).toBeLessThan(2_500);
  });

  it("assigns no share when its plan is over by the wall clock", () => {
    const { job, world } = down(9_000, { power: true });
    const made = world.calls();
    const { status } = world.end(job);
    world.run(5_000);
    expect([status, world.calls()]).toEqual(["FAILED", made]);
  });

  it("continues at the current time of its plan when some of it is left", () => {
    const { beganAt, job, world } = down(2_000, { power: true });
    world.end(job);
    expect(world.now - beganAt).toBeLessThan(LOAD_MS + 4_000);
  });
});
