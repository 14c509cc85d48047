import { describe, expect, it } from "vitest";
import { manifest } from "../../load/job/testing/manifest.ts";
import { World } from "./testing/world.ts";
import { MANAGER_DEFAULTS } from "./types.ts";

const LOAD_MS = 12_000;
const manifests = shopFor(LOAD_MS);

function shopFor(durationMs: number): readonly [ReturnType<typeof manifest>] {
  const load = { kind: "vus", stages: [{ durationMs, from: 6, to: 6 }] } as const;
  return [manifest("shop", { load })];
}

function runs(world: World, job: string): void {
  world.until(() => world.progress(job)?.status === "RUNNING");
}

/** Two workers make load, the third is free. */
function running({ managers = 1, workers = 3, loadMs = LOAD_MS } = {}): {
  readonly world: World;
  readonly job: string;
} {
  const world = new World({ managers, workers, cores: 1, loadMs });
  world.run(600);
  const job = world.submit({ manifests: shopFor(loadMs), cores: 2 });
  runs(world, job);
  world.run(2_000);
  return { world, job };
}

function loading(world: World, job: string): number[] {
  return [...world.workers.keys()].filter(
    (at) => world.worker(at).alive && (world.worker(at).jobs.get(job)?.cores.size ?? 0) > 0,
  );
}

describe("the share of a lost worker", () => {
  it("goes on at a free one, at the present moment of the plan", () => {
    const { job, world } = running();
    const [lost = -1] = loading(world, job);
    world.worker(lost).alive = false;
    const made = world.calls();
    world.until(() => loading(world, job).length === 2, 6_000);
    const { status, summary } = world.end(job);
    expect(status).toBe("COMPLETED");
    const [loss] = summary?.lost ?? [];
    expect(loss).toMatchObject({ worker: `w${lost}`, users: 1, exact: false });
    expect(loss?.dealtAgainTo).toMatch(/^w[0-2]$/);
    expect(loss?.dealtAgainTo).not.toBe(`w${lost}`);
    expect(summary?.lost).toHaveLength(1);
    // What it had made stays counted; what it made since its last frame is bounded.
    const counted = summary?.totals?.requests ?? 0;
    expect(counted).toBeLessThanOrEqual(world.calls());
    expect(world.calls()).toBeLessThanOrEqual(counted + (loss?.requestsNotCounted ?? 0));
    // One call per window and share, but for those in which nobody had the share.
    const planned = (2 * LOAD_MS) / 100;
    const missing = Math.round((loss?.missingMs ?? 0) / 100);
    expect(missing).toBeGreaterThan(0);
    expect(missing).toBeLessThan(60);
    expect(Math.abs(planned - missing - world.calls())).toBeLessThanOrEqual(3);
    expect(world.calls()).toBeGreaterThan(made);
  });

  it("goes on at a free one when its worker drains and gives it up: nothing is uncounted", () => {
    const { job, world } = running();
    const [leaving = -1] = loading(world, job);
    const worker = world.worker(leaving);
    worker.draining = true;
    world.run(1_500);
    const held = worker.jobs.get(job);
    if (held === undefined) throw new Error("it has a core of the job");
    for (const core of [...held.cores.keys()]) worker.lose(held, core, true);
    world.until(() => loading(world, job).length === 2, 6_000);
    const { status, summary } = world.end(job);
    expect(status).toBe("COMPLETED");
    const dealtAgainTo = expect.not.stringMatching(`^w${leaving}$`);
    expect(summary?.lost).toMatchObject([
      { worker: `w${leaving}`, exact: true, requestsNotCounted: 0, dealtAgainTo },
    ]);
  });

  it("goes on under whoever leads then, once", () => {
    const loadMs = 2 * LOAD_MS;
    for (const afterMs of [2_900, 3_050, 3_100, 3_150, 3_200, 3_300, 3_500]) {
      const { job, world } = running({ managers: 3, loadMs });
      const [lost = -1] = loading(world, job);
      world.worker(lost).alive = false;
      world.run(afterMs);
      world.replaceLeader(job);
      const { status, summary } = world.end(job);
      expect([afterMs, status]).toEqual([afterMs, "COMPLETED"]);
      expect([afterMs, summary?.lost.length]).toEqual([afterMs, 1]);
      expect([afterMs, summary?.lost[0]?.dealtAgainTo]).not.toEqual([afterMs, null]);
      const free = [0, 1, 2].find((at) => at !== lost && world.worker(at).opened.length > 0);
      expect(free).toBeDefined();
      // Nobody loads twice for one share.
      expect(world.calls()).toBeLessThanOrEqual((2 * loadMs) / 100);
      world.run(1_000);
      expect([afterMs, loading(world, job)]).toEqual([afterMs, []]);
    }
  });

  it("is also made by a worker that is only silent: its bound says so until it has given its core back", () => {
    for (const replaced of [false, true]) {
      const { job, world } = running({ managers: 3 });
      const [silent = -1] = loading(world, job);
      world.worker(silent).cut = true;
      world.run(5_000);
      if (replaced) world.replaceLeader(job);
      world.worker(silent).cut = false;
      const { status, summary } = world.end(job);
      const [loss] = summary?.lost ?? [];
      const counted = summary?.totals?.requests ?? 0;
      expect(status).toBe("COMPLETED");
      // Its share was dealt again while it went on: for some seconds there were three.
      expect(world.calls() - counted).toBeGreaterThan(30);
      expect(world.calls()).toBeLessThanOrEqual(counted + (loss?.requestsNotCounted ?? 0));
      // Not for the whole plan; a new leader has lost what was counted before as well.
      if (!replaced) expect(loss?.requestsNotCounted).toBeLessThan(80);
    }
  });

  it("is not thought to be made by one whose connection ended with it", () => {
    const { job, world } = running();
    const [lost = -1] = loading(world, job);
    world.killWorker(lost);
    const { summary } = world.end(job);
    // For the three seconds in which it was not known, and not for the rest of the plan.
    expect(summary?.lost[0]?.requestsNotCounted).toBeLessThan(40);
  });

  it("is of no known size when the run ends early and the worker has not come back", () => {
    const { job, world } = running();
    const [silent = -1] = loading(world, job);
    world.worker(silent).cut = true;
    world.run(5_000);
    world.control(job, { kind: "cancel", reason: "enough" });
    const { summary } = world.end(job);
    expect(summary?.lost[0]).toMatchObject({ requestsNotCounted: null, exact: false });
  });

  it("is of no known size when nothing was heard of it, or the job fails before it has come back", () => {
    const world = new World({ managers: 1, workers: 2, cores: 1, loadMs: LOAD_MS });
    world.run(600);
    const job = world.submit({ manifests, cores: 1 });
    runs(world, job);
    const unknown = { requestsNotCounted: null, exact: false };
    const [silent = -1] = loading(world, job);
    world.worker(silent).cut = true;
    expect(world.end(job).summary?.lost).toMatchObject([unknown]);

    const others = running({ workers: 2 });
    for (const worker of others.world.workers) worker.cut = true;
    const { status, summary } = others.world.end(others.job);
    expect(status).toBe("FAILED");
    expect(summary?.lost).toMatchObject([unknown, unknown]);
  });

  it("is lost with it where no core is free", () => {
    const { job, world } = running({ workers: 2 });
    const [lost = -1] = loading(world, job);
    world.worker(lost).alive = false;
    const { status, summary } = world.end(job);
    expect(status).toBe("COMPLETED");
    expect(summary?.lost).toMatchObject([{ worker: `w${lost}`, dealtAgainTo: null }]);
  });

  it("goes on where its worker has started again", () => {
    const { job, world } = running({ workers: 2 });
    const [lost = -1] = loading(world, job);
    world.worker(lost).restart();
    const { status, summary } = world.end(job);
    expect(status).toBe("COMPLETED");
    expect(summary?.lost).toMatchObject([{ worker: `w${lost}`, dealtAgainTo: `w${lost}` }]);
  });

  it("goes on after a power cut, also when workers are back later than managers", () => {
    const { job, world } = running({ managers: 3, workers: 2 });
    for (const at of [0, 1, 2]) world.kill(at);
    for (const worker of world.workers) worker.alive = false;
    world.run(500);
    for (const at of [0, 1, 2]) world.start(at);
    world.run(5_000);
    for (const worker of world.workers) worker.restart();
    const { status, summary } = world.end(job);
    expect(status).toBe("COMPLETED");
    // Nobody is left who knows what they had made.
    const unknown = { requestsNotCounted: null, dealtAgainTo: expect.stringMatching(/^w[01]$/) };
    expect(summary?.lost).toMatchObject([unknown, unknown]);
    expect(summary?.totals?.requests).toBeGreaterThan(0);
  });

  it("goes on after a power cut at each worker, also when some are back later than others", () => {
    const { job, world } = running({ managers: 3, workers: 2, loadMs: 60_000 });
    for (const at of [0, 1, 2]) world.kill(at);
    for (const worker of world.workers) worker.alive = false;
    world.run(500);
    for (const at of [0, 1, 2]) world.start(at);
    world.run(5_000);
    world.worker(1).restart();
    world.run(15_000);
    expect(loading(world, job)).toEqual([1]);
    world.worker(0).restart();
    world.until(() => loading(world, job).length === 2, 2_000);
    const { status, summary } = world.end(job);
    expect(status).toBe("COMPLETED");
    expect(summary?.lost.map(({ dealtAgainTo }) => dealtAgainTo).sort()).toEqual(["w0", "w1"]);
  });

  it("is waited for after a power cut until a worker could have come back, and no longer (T16)", () => {
    const { job, world } = running({ workers: 2 });
    world.kill(0);
    for (const worker of world.workers) worker.alive = false;
    world.start(0);
    const { loadTimeoutMs, workerTimeoutMs } = MANAGER_DEFAULTS;
    world.run(loadTimeoutMs);
    expect(world.progress(job)?.status).toBe("STARTING");
    world.run(workerTimeoutMs + 2_000);
    const { status, summary } = world.end(job);
    expect(status).toBe("FAILED");
    expect(summary?.lost).toHaveLength(2);
  });

  it("is of no known size when a power cut takes who went on with it, and who led the job", () => {
    const { job, world } = running({ managers: 3, workers: 3 });
    const [lost = -1] = loading(world, job);
    world.killWorker(lost);
    world.until(() => loading(world, job).length === 2, 6_000);
    world.run(2_000);
    for (const at of [0, 1, 2]) world.kill(at);
    for (const worker of world.workers) worker.alive = false;
    for (const at of [0, 1, 2]) world.start(at);
    for (const worker of world.workers) worker.restart();
    const { summary } = world.end(job);
    const [first, ...others] = summary?.lost ?? [];
    expect(first?.requestsNotCounted).toBeGreaterThan(0);
    expect(others).toMatchObject(others.map(() => ({ requestsNotCounted: null, exact: false })));
    expect(others).toHaveLength(2);
  });

  it("goes on when the worker that took it is lost as well", () => {
    const { job, world } = running({ workers: 4 });
    const [lost = -1] = loading(world, job);
    const before = loading(world, job);
    world.worker(lost).alive = false;
    world.until(() => loading(world, job).length === 2, 6_000);
    const [next = -1] = loading(world, job).filter((at) => !before.includes(at));
    world.run(500);
    world.worker(next).alive = false;
    world.until(() => loading(world, job).length === 2, 6_000);
    const { status, summary } = world.end(job);
    expect([status, summary?.lost.length]).toEqual(["COMPLETED", 2]);
    expect(summary?.lost.every(({ dealtAgainTo }) => dealtAgainTo !== null)).toBe(true);
  });

  it("ends with the job when it is cancelled meanwhile", () => {
    const { job, world } = running();
    const [lost = -1] = loading(world, job);
    world.worker(lost).alive = false;
    world.run(3_100);
    world.control(job, { kind: "cancel", reason: "enough" });
    expect(world.end(job).status).toBe("CANCELLED");
    world.run(1_000);
    expect(loading(world, job)).toEqual([]);
  });
});

const LONG_MS = 120_000;
/** A worker is taken for lost, and its loss stands in the log. */
const NOTICED_MS = MANAGER_DEFAULTS.workerTimeoutMs + 500;

/** One of its workers is gone, and nothing is free. */
function vacant({ managers = 1, workers = 2, cores = 1, loadMs = LONG_MS, ask = 2 } = {}): {
  readonly world: World;
  readonly job: string;
  readonly lost: number;
} {
  const world = new World({ managers, workers, cores, loadMs });
  world.run(600);
  const job = world.submit({ manifests: shopFor(loadMs), cores: ask });
  runs(world, job);
  world.run(2_000);
  const [lost = -1] = loading(world, job);
  world.killWorker(lost);
  world.run(NOTICED_MS);
  return { world, job, lost };
}

/** Processes of the job at workers that are there. */
function processes(world: World, job: string): number {
  const alive = world.workers.filter((worker) => worker.alive);
  return alive.reduce((sum, { jobs }) => sum + (jobs.get(job)?.cores.size ?? 0), 0);
}

function coresUsed(world: World): number {
  const answer = world.ask({ kind: "nodes" });
  if (answer.kind !== "nodes") throw new Error("not nodes");
  return answer.nodes.reduce((sum, one) => sum + (one.coresUsed ?? 0), 0);
}

describe("a share that nobody can take over at once", () => {
  it("goes on at its own worker when that has started again", () => {
    const { job, lost, world } = vacant({ loadMs: 20_000 });
    world.run(2_000);
    expect(processes(world, job)).toBe(1);
    world.worker(lost).restart();
    world.until(() => processes(world, job) === 2, 2_000);
    const { status, summary } = world.end(job);
    expect(status).toBe("COMPLETED");
    const [loss] = summary?.lost ?? [];
    expect(loss).toMatchObject({ worker: `w${lost}`, dealtAgainTo: `w${lost}` });
    // One call per window and share, but for those in which nobody had the share.
    const missing = Math.round((loss?.missingMs ?? 0) / 100);
    expect(missing).toBeGreaterThan(NOTICED_MS / 100);
    expect(missing).toBeLessThan(100);
    expect(Math.abs((2 * 20_000) / 100 - missing - world.calls())).toBeLessThanOrEqual(3);
  });

  it("is kept for as long as the settings say, and no longer", () => {
    const { job, lost, world } = vacant();
    const forgone: number[] = [];
    world.onEntry = ({ kind }) => kind === "coreForgone" && forgone.push(world.now);
    const from = world.now;
    world.run(MANAGER_DEFAULTS.shareKeptMs - 2_000);
    expect(forgone).toEqual([]);
    world.run(3_000);
    expect(forgone).toHaveLength(1);
    expect((forgone[0] ?? 0) - from).toBeLessThanOrEqual(MANAGER_DEFAULTS.shareKeptMs);
    world.worker(lost).restart();
    world.run(3_000);
    expect(processes(world, job)).toBe(1);
    expect(world.end(job).summary?.lost).toMatchObject([{ dealtAgainTo: null }]);
  });

  it("keeps nobody waiting when the others have finished", () => {
    for (const load of [
      { kind: "vus", stages: [{ durationMs: LOAD_MS, from: 4, to: 4 }] },
      { kind: "shared", vus: 4, iterations: 100, durationMsMax: LONG_MS },
    ] as const) {
      const world = new World({ workers: 2, cores: 1, loadMs: LOAD_MS });
      world.run(600);
      const job = world.submit({ manifests: [manifest("shop", { load })], cores: 2 });
      runs(world, job);
      const from = world.now;
      const [lost = -1] = loading(world, job);
      world.killWorker(lost);
      const { status } = world.end(job);
      expect([load.kind, status]).toEqual([load.kind, "COMPLETED"]);
      expect(world.now - from).toBeLessThan(LOAD_MS + 1_000);
    }
  });

  it("is not kept when it is lost after the others have finished", () => {
    const world = new World({ workers: 2, cores: 1, loadMs: LOAD_MS });
    const load = { kind: "shared", vus: 4, iterations: 100, durationMsMax: LONG_MS } as const;
    world.run(600);
    const job = world.submit({ manifests: [manifest("shop", { load })], cores: 2 });
    runs(world, job);
    const from = world.now;
    world.run(LOAD_MS - 1_000);
    const [lost = -1] = loading(world, job);
    world.killWorker(lost);
    expect(world.end(job).status).toBe("COMPLETED");
    expect(world.now - from).toBeLessThan(LOAD_MS + NOTICED_MS);
  });

  it("goes on when all of them were lost, and some are back in time", () => {
    const { job, lost, world } = vacant({ loadMs: 60_000 });
    const [other = -1] = loading(world, job);
    world.killWorker(other);
    world.run(NOTICED_MS + 5_000);
    expect(world.progress(job)?.status).toBe("RUNNING");
    world.worker(lost).restart();
    world.until(() => processes(world, job) === 1, 2_000);
    world.worker(other).restart();
    world.until(() => processes(world, job) === 2, 2_000);
    const { status, summary } = world.end(job);
    expect(status).toBe("COMPLETED");
    expect(summary?.lost.map(({ dealtAgainTo }) => dealtAgainTo)).not.toContain(null);
  });

  it("fails the workflow with the others when all were lost and none is back in time", () => {
    const { job, world } = vacant({ loadMs: LONG_MS });
    const [other = -1] = loading(world, job);
    world.killWorker(other);
    world.run(MANAGER_DEFAULTS.shareKeptMs);
    expect(world.progress(job)?.status).toBe("RUNNING");
    const { status, summary } = world.end(job);
    expect(status).toBe("FAILED");
    const [shop] = summary?.workflows ?? [];
    expect(shop?.error).toBe("all executor cores that ran it (0, 1) were lost");
  });

  it("ends with the job when it is cancelled, also when all were lost", () => {
    for (const others of [false, true]) {
      const { job, world } = vacant();
      const [other = -1] = loading(world, job);
      if (others) {
        world.killWorker(other);
        world.run(NOTICED_MS);
      }
      const from = world.now;
      world.control(job, { kind: "cancel", reason: "enough" });
      expect(world.end(job).status).toBe("CANCELLED");
      expect(world.now - from).toBeLessThan(2_000);
    }
  });

  it("goes on where the plan stands when it was lost in a pause", () => {
    const { job, lost, world } = vacant({ loadMs: 20_000 });
    world.control(job, { kind: "pause" });
    world.run(2_000);
    world.worker(lost).restart();
    world.until(() => processes(world, job) === 2, 2_000);
    const made = world.calls();
    world.run(1_000);
    expect(world.calls()).toBe(made);
    world.control(job, { kind: "resume" });
    const { status, summary } = world.end(job);
    expect(status).toBe("COMPLETED");
    expect(summary?.lost).toMatchObject([{ dealtAgainTo: `w${lost}` }]);
  });

  it("is taken over under the next leader, once, for as long as it was kept in all", () => {
    const { job, lost, world } = vacant({ managers: 3, loadMs: 60_000 });
    world.replaceLeader(job);
    world.run(1_000);
    expect(processes(world, job)).toBe(1);
    world.worker(lost).restart();
    world.until(() => processes(world, job) === 2, 4_000);
    const { status, summary } = world.end(job);
    expect([status, summary?.lost.length]).toEqual(["COMPLETED", 1]);
    expect(summary?.lost).toMatchObject([{ dealtAgainTo: `w${lost}` }]);
    expect(world.calls()).toBeLessThanOrEqual((2 * 60_000) / 100);

    const again = vacant({ managers: 3 });
    const forgone: number[] = [];
    again.world.onEntry = ({ kind }) => kind === "coreForgone" && forgone.push(again.world.now);
    const from = again.world.now;
    again.world.run(30_000);
    again.world.replaceLeader(again.job);
    again.world.until(() => forgone.length > 0);
    expect((forgone[0] ?? 0) - from).toBeLessThan(MANAGER_DEFAULTS.shareKeptMs + 1_000);
  });

  it("is one of several: each goes on as cores become free, never more than were granted", () => {
    // Two and two at the first workers, one at the third, which has one more that is free.
    const { job, lost, world } = vacant({ workers: 3, cores: 2, ask: 5, loadMs: 40_000 });
    expect(processes(world, job)).toBe(4);
    world.run(4_000);
    expect([processes(world, job), coresUsed(world)]).toEqual([4, 4]);
    world.worker(lost).restart();
    world.until(() => processes(world, job) === 5, 2_000);
    world.run(2_000);
    expect([processes(world, job), coresUsed(world)]).toEqual([5, 5]);
    const { status, summary } = world.end(job);
    expect([status, summary?.lost.length]).toEqual(["COMPLETED", 2]);
    const places = summary?.lost.map(({ dealtAgainTo }) => dealtAgainTo) ?? [];
    expect(places).toContain(`w${lost}`);
    expect(places).not.toContain(null);
  });

  it("comes after jobs that wait for cores, and has what they leave", () => {
    const { job, lost, world } = vacant({ loadMs: 60_000 });
    const waiting = world.submit({ manifests: shopFor(LONG_MS), cores: 1 }, "other");
    world.run(1_000);
    expect(world.progress(waiting)?.status).toBe("QUEUED");
    world.worker(lost).restart();
    runs(world, waiting);
    world.run(5_000);
    expect([processes(world, job), processes(world, waiting)]).toEqual([1, 1]);
    world.control(waiting, { kind: "cancel", reason: "enough" });
    world.until(() => processes(world, job) === 2, 5_000);
    expect(world.end(job).summary?.lost).toMatchObject([{ dealtAgainTo: `w${lost}` }]);
  });

  it("takes nothing from a job that waits for more cores than are free", () => {
    const { job, lost, world } = vacant();
    const waiting = world.submit({ manifests: shopFor(LONG_MS), cores: 2 }, "other");
    world.run(1_000);
    world.worker(lost).restart();
    world.run(5_000);
    expect([processes(world, job), world.progress(waiting)?.status]).toEqual([1, "QUEUED"]);
    world.control(waiting, { kind: "cancel", reason: "enough" });
    world.until(() => processes(world, job) === 2, 5_000);
  });
});

describe("a core that ends by itself", () => {
  it("is made up for at its worker, and not for ever", () => {
    const { job, world } = running({ workers: 2 });
    const worker = world.worker(0);
    const ends = (): void => {
      const held = worker.jobs.get(job);
      const [core] = held?.cores.keys() ?? [];
      if (held !== undefined && core !== undefined) worker.lose(held, core);
    };
    for (let times = 0; times < 4; times++) {
      world.until(() => worker.opened.at(-1)?.isLoading === true, 5_000);
      ends();
      world.run(1_000);
    }
    expect(worker.opened).toHaveLength(4);
    const { status, summary } = world.end(job);
    expect(status).toBe("COMPLETED");
    expect(summary?.lost.map(({ dealtAgainTo }) => dealtAgainTo)).toEqual(["w0", "w0", "w0", null]);
  });
});
