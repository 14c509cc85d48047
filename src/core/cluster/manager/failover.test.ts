import { describe, expect, it } from "vitest";
import { VSR_DEFAULTS } from "../../ledger/group/config.ts";
import { manifest } from "../../load/job/testing/manifest.ts";
import { World } from "./testing/world.ts";

function commands(world: World): readonly (readonly string[])[] {
  return world.workers.flatMap(({ opened }) => opened.map(({ commands: all }) => all));
}

const ONCE = ["prepare", "start"];

/** Active groups of jobs, over all managers. */
function awake(world: World): readonly string[] {
  return world.cluster.nodes.flatMap(({ node }) =>
    [...(node?.groups ?? [])].flatMap(([id, { replica }]) =>
      id.startsWith("run/") && !replica.state.asleep ? [id] : [],
    ),
  );
}

describe("finished jobs", () => {
  const { idleMs, leaseMs } = VSR_DEFAULTS;

  it("cost no heartbeats and no timers on any manager, and stay known", () => {
    const world = new World({ managers: 3, cores: 2, loadMs: 500 });
    const jobs = [0, 1, 2, 3].map((at) => {
      const job = world.submit({ cores: 1 }, `key ${at}`, at % 3);
      world.end(job);
      return job;
    });
    const running = world.submit({ cores: 1, manifests: [manifest("long")] }, "key long");
    expect(awake(world)).not.toEqual([]);
    world.run(idleMs + leaseMs + 5_000);
    expect(new Set(awake(world))).toEqual(new Set());
    for (const job of jobs) expect(world.progress(job)?.status).toBe("COMPLETED");
    expect(world.progress(running)?.status).toBe("COMPLETED");
    expect(new Set(awake(world))).toEqual(new Set());
  });

  it("become idle again after a restarted manager has caught up", () => {
    const world = new World({ managers: 3, cores: 2, loadMs: 500 });
    const job = world.submit({ cores: 1 });
    world.end(job);
    world.run(idleMs + leaseMs + 5_000);
    const gone = world.leaders()[0] ?? 0;
    world.kill(gone);
    world.start(gone);
    world.run(10_000);
    expect(awake(world)).not.toEqual([]);
    world.run(2 * idleMs + leaseMs);
    expect(awake(world)).toEqual([]);
    expect(world.progress(job)?.status).toBe("COMPLETED");
  });

  it("stay active while they run, however long nothing happens", () => {
    const world = new World({ managers: 3, cores: 2, loadMs: 10 * idleMs });
    const job = world.submit({ cores: 1 });
    world.until(() => world.progress(job)?.status === "RUNNING");
    world.run(3 * idleMs);
    expect(awake(world)).toHaveLength(3);
    const first = world.leaderOf(job);
    world.kill(first);
    world.until(() => world.leaderOf(job) >= 0 && world.leaderOf(job) !== first);
  });
});

describe("the leader of a job", () => {
  it("is succeeded by another manager that continues the run and counts everything (FAIL-M5)", () => {
    const world = new World({ managers: 3, workers: 2, cores: 1, loadMs: 40_000 });
    const job = world.submit();
    world.until(() => world.progress(job)?.status === "RUNNING");
    world.run(2_000);
    const first = world.leaderOf(job);
    world.kill(first);
    world.until(() => world.leaderOf(job) >= 0);
    world.start(first);
    world.run(2_000);
    expect(world.workers.map(({ opened }) => opened[0]?.isLoading)).toEqual([true, true]);
    const { status, summary } = world.end(job);
    expect(status).toBe("COMPLETED");
    expect(summary?.totals?.requests).toBe(world.calls());
    expect(summary?.lost).toEqual([]);
    for (const had of commands(world)) {
      expect(had.filter((one) => ONCE.includes(one))).toEqual(ONCE);
    }
    expect(
      commands(world)
        .flat()
        .filter((one) => one === "setup"),
    ).toHaveLength(1);
  });

  it("is at first the manager that accepted the submission and has its files", () => {
    const world = new World({ managers: 3 });
    for (const index of [2, 0, 1]) {
      const job = world.submit({ cores: 1 }, `key ${index}`, index);
      world.until(() => world.leaderOf(job) >= 0);
      expect(world.leaderOf(job)).toBe(index);
      world.end(job);
    }
  });

  it("may fail at any time: the job ends once and its cores are returned", () => {
    for (const afterMs of [0, 20, 40, 60, 80, 100, 140, 200, 300, 1_200, 2_000]) {
      const world = new World({ managers: 3, cores: 2, loadMs: 1_000 });
      const second = { dependsOn: ["first"] };
      const job = world.submit({ manifests: [manifest("first"), manifest("second", second)] });
      world.run(afterMs);
      const gone = Math.max(0, world.leaderOf(job));
      world.kill(gone);
      world.run(15_000);
      world.start(gone);
      const { status, summary } = world.end(job);
      expect([afterMs, status]).toEqual([afterMs, "COMPLETED"]);
      expect(summary?.workflows.map((one) => one.status)).toEqual(["completed", "completed"]);
      expect([afterMs, summary?.totals?.requests]).toEqual([afterMs, world.calls()]);
      expect([afterMs, summary?.notes.filter((note) => note.includes("missing"))]).toEqual([
        afterMs,
        [],
      ]);
      world.run(2_000);
      expect(world.workers[0]?.jobs.get(job)?.cores.size).toBe(0);
      const had = commands(world).flat();
      for (const kind of ["setup", "teardown"])
        expect([afterMs, kind, had.filter((one) => one === kind).length]).toEqual([
          afterMs,
          kind,
          2,
        ]);
    }
  });

  it("waits for a worker that had started to call its predecessor process (T10)", () => {
    const world = new World({ workers: 2, cores: 1, loadMs: 40_000 });
    const job = world.submit();
    world.until(() => world.progress(job)?.status === "RUNNING");
    world.kill(0);
    const worker = world.worker(1);
    worker.cut = true;
    world.start(0);
    world.run(6_000);
    worker.cut = false;
    const { status, summary } = world.end(job);
    expect([status, summary?.lost]).toEqual(["COMPLETED", []]);
  });

  it.each([5_500, 20_000])(
    "excludes a pause of %d ms, in which it could receive nothing (T10)",
    (stoppedMs) => {
      const world = new World({ workers: 2, cores: 1, loadMs: 60_000 });
      const job = world.submit();
      world.until(() => world.progress(job)?.status === "RUNNING");
      world.kill(0);
      const worker = world.worker(1);
      worker.cut = true;
      world.start(0);
      world.run(500);
      world.stop(0, stoppedMs);
      world.run(5_000);
      worker.cut = false;
      const { status, summary } = world.end(job);
      expect([status, summary?.lost]).toEqual(["COMPLETED", []]);
    },
  );

  it("recovers after a complete power loss, and the job continues", () => {
    const world = new World({ managers: 3, cores: 2, loadMs: 30_000 });
    const job = world.submit();
    world.until(() => world.progress(job)?.status === "RUNNING");
    for (const index of [0, 1, 2]) world.kill(index);
    world.run(5_000);
    for (const index of [0, 1, 2]) world.start(index);
    expect(world.end(job).status).toBe("COMPLETED");
    expect(world.end(job).summary?.totals?.requests).toBe(world.calls());
  });
});

describe("a lost worker", () => {
  it("costs its cores; the run continues on the others and reports the loss", () => {
    const world = new World({ workers: 2, cores: 1, loadMs: 8_000 });
    const job = world.submit();
    world.until(() => world.progress(job)?.status === "RUNNING");
    world.run(1_000);
    const [gone, kept] = world.workers;
    if (gone === undefined || kept === undefined) throw new Error("there are two workers");
    gone.alive = false;
    const { status, summary } = world.end(job);
    expect(status).toBe("COMPLETED");
    expect(summary?.lost.map(({ what }) => what)).toEqual(["worker w0 was lost with core 0"]);
    const counted = summary?.totals?.requests ?? 0;
    expect(counted).toBeGreaterThan(kept.opened[0]?.calls ?? 0);
    expect(counted).toBeLessThanOrEqual(world.calls());
  });

  it("leaves the job to the others when it is lost before setup", () => {
    for (const afterMs of [0, 20]) {
      const world = new World({ workers: 2, cores: 1 });
      const job = world.submit();
      world.run(afterMs);
      if (world.workers[0] !== undefined) world.workers[0].alive = false;
      const { status, summary } = world.end(job);
      expect([afterMs, status]).toEqual([afterMs, "COMPLETED"]);
      expect(summary?.lost).toHaveLength(1);
      expect(summary?.totals?.requests).toBeGreaterThan(0);
    }
  });

  it("fails the workflow when it is lost during setup, whose progress is unknown (T11)", () => {
    const world = new World({ workers: 2, cores: 1 });
    const job = world.submit();
    const worker = world.workers[0];
    world.until(() => worker?.opened[0]?.commands.includes("setup") === true);
    if (worker !== undefined) worker.alive = false;
    expect(world.end(job)).toMatchObject({
      status: "FAILED",
      reason: "shop: the executor core that ran the set-up was lost",
    });
  });

  it("rejects a job it no longer knows after a restart", () => {
    const world = new World({ workers: 2, cores: 1, loadMs: 4_000 });
    const job = world.submit();
    world.until(() => world.progress(job)?.status === "RUNNING");
    world.workers[0]?.restart();
    const { status, summary } = world.end(job);
    expect([status, summary?.lost.length]).toEqual(["COMPLETED", 1]);
    expect(world.workers[0]?.jobs.get(job)?.cores.size ?? 0).toBe(0);
    world.run(1_000);
    expect(world.submit({ cores: 2 }, "next")).not.toBe(job);
  });

  it("fails the job with the reason and frees the queue when it was the only worker", () => {
    const world = new World({ loadMs: 8_000 });
    const job = world.submit();
    world.until(() => world.progress(job)?.status === "RUNNING");
    const worker = world.workers[0];
    if (worker === undefined) throw new Error("there is a worker");
    worker.alive = false;
    const reason = expect.stringMatching(/^shop: /);
    expect(world.end(job)).toMatchObject({ status: "FAILED", reason });
    worker.restart();
    world.run(1_000);
    expect(world.end(world.submit({}, "next")).status).toBe("COMPLETED");
  });
});

describe("a live worker that never answers for a job", () => {
  it("is lost to this job only, which starts without it (ACKW-1, ACKW-6, HFD-4, HFD-9)", () => {
    const world = new World({ workers: 3, cores: 1, loadMs: 2_000 });
    const before = world.submit({ cores: 1 }, "before");
    world.until(() => world.progress(before)?.status === "RUNNING");
    const holder = world.workers.find(({ jobs }) => jobs.size > 0);
    const deaf = world.workers.find((one) => one !== holder);
    if (deaf === undefined) throw new Error("a worker is free");
    deaf.deaf = true;
    const job = world.submit({ cores: 2 }, "second");
    const { status, summary } = world.end(job);
    expect(status).toBe("COMPLETED");
    expect(summary?.totals?.requests).toBe(world.calls() - callsOf(world, before));
    expect(deaf.opened).toEqual([]);
    expect(world.progress(before)?.summary?.lost).toEqual([]);
  });

  it("counts as working while metrics of the job arrive from it (HFD-10)", () => {
    const world = new World({ workers: 2, cores: 1, loadMs: 30_000 });
    const job = world.submit();
    world.until(() => world.progress(job)?.status === "RUNNING");
    const [one] = world.workers;
    if (one === undefined) throw new Error("a worker is there");
    // Metrics arrive, answers do not: the worker is working.
    one.deaf = true;
    world.run(25_000);
    one.deaf = false;
    expect(world.end(job).summary?.lost).toEqual([]);
  });
});

function callsOf(world: World, job: string): number {
  return world.progress(job)?.summary?.totals?.requests ?? 0;
}
