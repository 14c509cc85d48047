import { describe, expect, it } from "vitest";
import { manifest } from "../../load/job/testing/manifest.ts";
import { submission } from "../manager/testing/world.ts";
import { ANYWHERE, type Control, type Progress, type Routing } from "../messages.ts";
import { GateWorld } from "./testing/world.ts";

const BOTH = ["dc1", "dc2"];

function requests({ summary }: Progress): number {
  return summary?.totals?.requests ?? -1;
}

/** Commands that the cores of a datacenter received, counted by kind. */
function commandsOf(world: GateWorld, datacenter: string): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const { opened } of world.datacenter(datacenter).workers)
    for (const { commands } of opened)
      for (const kind of commands) counts[kind] = (counts[kind] ?? 0) + 1;
  return counts;
}

describe("one job in two datacenters", () => {
  it("is split, starts at the same time and has one result with the load of both (GREQ-2, GREQ-7)", () => {
    const world = new GateWorld({ datacenters: BOTH });
    const job = world.submit({}, { datacenters: BOTH });
    const end = world.end(job);
    expect([end.status, end.reason]).toEqual(["COMPLETED", null]);
    const made = BOTH.map((name) => world.datacenter(name).calls());
    expect(Math.min(...made)).toBeGreaterThan(0);
    expect(requests(end)).toBe(world.calls());
    const cluster = end.summary?.cluster;
    expect(cluster).toMatchObject({
      jobId: job,
      split: [
        { datacenter: "dc1", share: 0.5 },
        { datacenter: "dc2", share: 0.5 },
      ],
      datacenters: BOTH.map((name, at) => ({ name, status: "COMPLETED", requests: made[at] })),
    });
    expect(cluster?.startSkewMs).toBeLessThanOrEqual(20);
    expect(cluster?.leader).toBe(world.cluster.at(0).id);
    const changes = cluster?.changes?.map(({ what }) => what) ?? [];
    expect(changes).toEqual(expect.arrayContaining(["dispatched: dc2", "datacenter ended: dc1"]));
    const shown = world.ask({ kind: "status", job });
    const workflows = shown.kind === "job" ? shown.job.workflows : [];
    expect(workflows.map(({ name, status }) => [name, status])).toEqual([["shop", "completed"]]);
    expect(workflows[0]?.attempts.length).toBe(2 * BOTH.length);
    expect(end.summary?.totals?.latencyMs.count).toBe(world.calls());
  });

  it("gets its files from the other datacenter when its gate lacks them and one was unreachable before", () => {
    const world = new GateWorld({ datacenters: BOTH });
    world.datacenter("dc2").loseBlobs();
    world.cut.add("dc2");
    const job = world.submit({}, { datacenters: BOTH });
    world.loseFiles();
    world.cut.delete("dc2");
    const end = world.end(job, 120_000);
    expect([end.status, end.reason]).toEqual(["COMPLETED", null]);
    expect(world.datacenter("dc2").calls()).toBeGreaterThan(0);
  });

  it("is set up and torn down once, in the first, and passes its value to the other", () => {
    const world = new GateWorld({ datacenters: BOTH });
    world.end(world.submit({}, { datacenters: BOTH }));
    expect(commandsOf(world, "dc1")).toMatchObject({ setup: 1, teardown: 1 });
    expect(commandsOf(world, "dc2")).toEqual({ prepare: 2, start: 2 });
  });

  it("runs the whole plan in each datacenter when requested, layer by layer", () => {
    const world = new GateWorld({ datacenters: BOTH });
    const provides = [{ key: "made", to: ["pay"] }];
    const uses = [{ name: "stock", from: ["shop"], keys: ["made"] }];
    const manifests = [
      manifest("shop", { provides }),
      manifest("pay", { dependsOn: ["shop"], uses }),
    ];
    const end = world.end(world.submit({ manifests }, { datacenters: BOTH, each: true }));
    expect([end.status, requests(end)]).toEqual(["COMPLETED", world.calls()]);
    expect(end.summary?.cluster?.split.map(({ share }) => share)).toEqual([1, 1]);
    expect(commandsOf(world, "dc1")).toMatchObject({ setup: 2, teardown: 2 });
    expect(commandsOf(world, "dc2")["setup"]).toBeUndefined();
    for (const name of BOTH)
      for (const { context } of world.datacenter(name).workers[0]?.opened ?? [])
        expect(context["shop"]?.["made"]).toBeGreaterThan(0);
  });

  it.each([{ datacenters: ["dc1"] }, { datacenters: BOTH }])(
    "continues with its next layer when its leading managers die between the layers: $datacenters",
    ({ datacenters }) => {
      const world = new GateWorld({ datacenters, managers: 3, workers: 2 });
      const provides = [{ key: "made", to: ["pay"] }];
      const uses = [{ name: "stock", from: ["shop", "stock"], keys: ["made"] }];
      const manifests = [
        manifest("shop", { provides }),
        manifest("stock", { provides }),
        manifest("pay", { dependsOn: ["shop", "stock"], uses }),
      ];
      const job = world.submit({ manifests }, { datacenters, each: datacenters.length > 1 });
      for (const name of datacenters) {
        const below = world.datacenter(name);
        world.until(() =>
          below.workers.some(({ opened }) => opened.some((core) => core.calls > 6)),
        );
        // The first layer ends without a leader: only the next leader can start the second.
        const cores = below.workers.flatMap(({ opened }) => opened);
        expect(cores.filter(({ context }) => Object.keys(context).length > 0)).toEqual([]);
        below.kill(below.leaders()[0] ?? -1);
      }
      const end = world.end(job, 120_000);
      expect([end.status, end.reason, requests(end)]).toEqual(["COMPLETED", null, world.calls()]);
      expect(end.summary?.lost).toEqual([]);
      expect(commandsOf(world, "dc1")).toMatchObject({ setup: 3, teardown: 3 });
      for (const name of datacenters.slice(1))
        expect(commandsOf(world, name)["setup"]).toBeUndefined();
      for (const name of datacenters) {
        const cores = world.datacenter(name).workers.flatMap(({ opened }) => opened);
        const last = cores.filter(({ context }) => Object.keys(context).length > 0);
        expect(new Set(last.map(({ context }) => JSON.stringify(context))).size).toBe(1);
        expect(last[0]?.context).toMatchObject({ shop: { made: 10 }, stock: { made: 10 } });
      }
    },
  );

  it("is polled less often by an overloaded gate, with the same totals (AD-37.6)", () => {
    const observed = ([0, 2, 3] as const).map((level) => {
      const world = new GateWorld({ datacenters: BOTH, loadMs: 8_000 });
      world.press(0, level);
      const end = world.end(world.submit({}, { datacenters: BOTH }));
      expect([end.status, requests(end)]).toEqual(["COMPLETED", world.calls()]);
      return world.observations;
    });
    const [calm = 0, batch = 0, reject = 0] = observed;
    expect(batch).toBeLessThan(calm / 2);
    expect(reject).toBeLessThan(batch);
  });

  it("is split as its submitter requests", () => {
    const world = new GateWorld({ datacenters: BOTH });
    const weights = [
      { datacenter: "dc1", weight: 25 },
      { datacenter: "dc2", weight: 75 },
    ];
    const end = world.end(world.submit({}, { datacenters: BOTH, weights }));
    const split = end.summary?.cluster?.split;
    expect(split?.map(({ share }) => share)).toEqual([0.25, 0.75]);
    // Four users: one in dc1, so only one of its cores has any.
    expect(commandsOf(world, "dc1")["prepare"]).toBe(1);
    expect(commandsOf(world, "dc2")["prepare"]).toBe(2);
  });

  it("is refused before it starts when it cannot be split, with a hint (CCP-13)", () => {
    const world = new GateWorld({ datacenters: BOTH });
    const ask = (routing: Partial<Routing>, changes: Parameters<typeof submission>[0]) =>
      world.ask({
        ...{ kind: "submit", key: "k", submission: submission(changes) },
        routing: { ...ANYWHERE, ...routing },
      });
    const layered = [manifest("shop"), manifest("pay", { dependsOn: ["shop"] })];
    expect(ask({ count: 2 }, { manifests: layered })).toMatchObject({
      ...{ kind: "refused", reason: "invalid" },
      message: expect.stringContaining("--each-datacenter"),
    });
    const load = { kind: "vus", stages: [{ durationMs: 1_000, from: 1, to: 1 }] } as const;
    expect(ask({ count: 2 }, { manifests: [manifest("shop", { load })] })).toMatchObject({
      message: "there is load for 1 datacenters: fewer users or iterations than datacenters",
    });
  });

  it("is aborted everywhere by a threshold that only the merged metrics cross", () => {
    const world = new GateWorld({ datacenters: BOTH, loadMs: 30_000 });
    // Each makes 20 calls a second.
    const changes = { thresholds: ["requests.count < 60"], abortAfterMs: 0 };
    const end = world.end(world.submit(changes, { datacenters: BOTH }));
    expect([end.status, end.summary?.verdict]).toEqual(["COMPLETED", "failed"]);
    expect(end.reason).toBe("requests.count < 60 did not hold");
    expect(end.summary?.thresholds[0]).toMatchObject({ passed: false, aborted: true });
    expect(requests(end)).toBe(world.calls());
    for (const name of BOTH) expect(world.datacenter(name).calls()).toBeLessThan(59);
  });

  it("is partial when a threshold aborts it after one of them had failed", () => {
    const world = new GateWorld({ datacenters: BOTH, loadMs: 60_000 });
    const changes = { thresholds: ["requests.count < 400"], abortAfterMs: 0 };
    const job = world.submit(changes, { datacenters: BOTH });
    world.until(() => world.status(job) === "RUNNING");
    world.datacenter("dc2").killWorker(0);
    const end = world.end(job, 120_000);
    expect(end.summary?.thresholds[0]).toMatchObject({ passed: false, aborted: true });
    expect([end.status, end.reason]).toEqual([
      "PARTIAL",
      "requests.count < 400 did not hold; dc2: FAILED",
    ]);
  });

  it("is paused, resumed and cancelled in both", () => {
    const world = new GateWorld({ datacenters: BOTH, loadMs: 60_000 });
    const job = world.submit({}, { datacenters: BOTH });
    const tell = (control: Control) => world.ask({ kind: "control", job, by: "me", control });
    const states = (): string => {
      const answer = world.ask({ kind: "status", job });
      return answer.kind === "job" ? answer.job.datacenters.map((one) => one.status).join() : "";
    };
    world.until(() => states() === "RUNNING,RUNNING");
    tell({ kind: "pause" });
    world.until(() => states() === "PAUSED,PAUSED");
    tell({ kind: "resume" });
    tell({ kind: "scale", factor: 2 });
    world.until(() => BOTH.every((name) => (commandsOf(world, name)["scale"] ?? 0) === 2));
    expect(states()).toBe("RUNNING,RUNNING");
    tell({ kind: "cancel", reason: "enough" });
    const end = world.end(job);
    expect([end.status, end.reason]).toEqual(["CANCELLED", "enough"]);
    expect([end.summary?.verdict, requests(end)]).toEqual(["interrupted", world.calls()]);
    const changes = end.summary?.cluster?.changes?.map(({ what }) => what) ?? [];
    expect(changes).toEqual(expect.arrayContaining(["paused", "resumed", "scaled", "cancelled"]));
  });
});

/** Last event in a job's log when the fault occurs. */
const STEPS = ["JobDispatched", "JobAccepted", "JobStarted", "JobSetUpValue"];

const reached = (world: GateWorld, step: string): boolean =>
  world.logs.some((line) => line.startsWith("job.event") && line.includes(`"${step}"`));

const isBusy = (world: GateWorld): boolean =>
  BOTH.some((name) =>
    world
      .datacenter(name)
      .workers.some((one) => [...one.jobs.values()].some((job) => job.cores.size > 0)),
  );

describe("a job in two datacenters", () => {
  it.each(STEPS)("whose leader is lost after %s runs once in each", (step) => {
    const world = new GateWorld({ gates: 3, datacenters: BOTH, loadMs: 3_000 });
    const job = world.submit({}, { datacenters: BOTH });
    world.until(() => reached(world, step));
    const leader = world.leaderOf(job);
    world.kill(leader);
    const end = world.end(job);
    expect([end.status, requests(end)]).toEqual(["COMPLETED", world.calls()]);
    for (const name of BOTH) expect(commandsOf(world, name)["start"]).toBe(2);
    expect(commandsOf(world, "dc1")["setup"]).toBe(1);
  });

  it.each(STEPS)("that is cancelled after %s leaves nothing behind", (step) => {
    const world = new GateWorld({ datacenters: BOTH, loadMs: 30_000 });
    const job = world.submit({}, { datacenters: BOTH });
    world.until(() => reached(world, step));
    world.ask({ kind: "control", job, by: "me", control: { kind: "cancel", reason: "no" } });
    expect(world.end(job).status).toBe("CANCELLED");
    world.until(() => !isBusy(world));
  });

  it("that waits for a datacenter to learn of its end does not keep its gate awake", () => {
    const world = new GateWorld({ datacenters: BOTH, loadMs: 30_000 });
    const changes = { thresholds: ["requests.count < 100000"], abortAfterMs: 0 };
    const job = world.submit(changes, { datacenters: BOTH });
    world.until(() => world.status(job) === "RUNNING");
    world.cut.add("dc2");
    world.ask({ kind: "control", job, by: "me", control: { kind: "cancel", reason: "no" } });
    world.until(() => world.status(job) === "CANCELLING");
    world.ticks = 0;
    world.run(2_000);
    expect(world.ticks).toBeLessThan(50);
  });

  it("whose leader is lost mid-job has one exact result", () => {
    const world = new GateWorld({ gates: 3, datacenters: BOTH, loadMs: 12_000 });
    const job = world.submit({}, { datacenters: BOTH });
    world.until(() => world.status(job) === "RUNNING");
    world.run(2_000);
    world.kill(world.leaderOf(job));
    const end = world.end(job);
    expect([end.status, requests(end)]).toEqual(["COMPLETED", world.calls()]);
    expect(end.summary?.lost).toEqual([]);
  });

  it("counts each call once when another manager takes over a part", () => {
    const world = new GateWorld({ datacenters: BOTH, managers: 3, loadMs: 12_000 });
    const job = world.submit({}, { datacenters: BOTH });
    world.until(() => world.status(job) === "RUNNING");
    world.run(2_000);
    const dc2 = world.datacenter("dc2");
    dc2.kill(dc2.leaderOf([...(dc2.workers[0]?.jobs.keys() ?? [])][0] ?? ""));
    let most = 0;
    world.until(() => {
      const live = world.progress(job)?.live;
      const steps = live?.summary.workflows.flatMap((one) => one.steps) ?? [];
      most = Math.max(most, ...steps.map((one) => one.requests));
      return live === null;
    });
    const end = world.end(job);
    expect(most).toBeLessThanOrEqual(world.calls());
    expect([end.status, requests(end)]).toEqual(["COMPLETED", world.calls()]);
  });

  it("closes the gap when an unreachable datacenter returns (PART-5)", () => {
    const world = new GateWorld({ datacenters: BOTH, loadMs: 20_000 });
    // A minimum that fails by far if a silent datacenter counted as one without calls.
    const changes = { thresholds: ["requests.rate over 2s > 30"], abortAfterMs: 0 };
    const job = world.submit(changes, { datacenters: BOTH });
    world.until(() => world.status(job) === "RUNNING");
    world.run(1_000);
    world.cut.add("dc2");
    world.run(12_000);
    world.cut.delete("dc2");
    const end = world.end(job);
    expect([end.status, requests(end)]).toEqual(["COMPLETED", world.calls()]);
    expect(end.summary?.thresholds[0]).toMatchObject({ passed: true, aborted: false });
  });

  it("is partial when a datacenter stays unreachable, and reports the missing part (PART-5)", () => {
    const world = new GateWorld({ datacenters: BOTH, loadMs: 3_000 });
    const job = world.submit({}, { datacenters: BOTH });
    world.until(() => world.status(job) === "RUNNING");
    world.run(500);
    world.cut.add("dc2");
    const end = world.end(job, 200_000);
    expect([end.status, end.reason]).toEqual(["PARTIAL", "dc2: lost"]);
    expect(requests(end)).toBe(world.datacenter("dc1").calls());
    expect(end.summary?.verdict).toBe("failed");
    expect(end.summary?.lost).toMatchObject([
      {
        ...{
          what: "datacenter dc2 was lost",
          at: expect.stringMatching(/^\d{4}-.*Z$/),
          worker: null,
        },
        ...{ requestsNotCounted: null, exact: false, dealtAgainTo: null, users: 2 },
      },
    ]);
    // The datacenter reported for half a second of three.
    expect(end.summary?.lost[0]?.missingMs).toBeGreaterThan(2_000);
    expect(end.summary?.lost[0]?.missingMs).toBeLessThan(3_000);
    expect(end.summary?.cluster?.datacenters).toMatchObject([
      { name: "dc1", status: "COMPLETED" },
      { name: "dc2", status: "LOST", requests: 0 },
    ]);
    expect(commandsOf(world, "dc1")["teardown"]).toBe(1);
    const control = { kind: "pause" } as const;
    expect(world.ask({ kind: "control", job, by: "me", control })).toMatchObject({
      ...{ kind: "refused", reason: "invalid", message: `${job} has ended: PARTIAL` },
    });
  });

  it.each(["CANCELLED", "PARTIAL"])(
    "that has finished is shown by every gate as in its result: %s",
    (status) => {
      const world = new GateWorld({ gates: 3, datacenters: BOTH, loadMs: 3_000 });
      const job = world.submit({}, { datacenters: BOTH });
      world.until(() => world.status(job) === "RUNNING");
      world.run(500);
      const control = { kind: "cancel", reason: "enough" } as const;
      if (status === "PARTIAL") world.cut.add("dc2");
      else world.ask({ kind: "control", job, by: "me", control });
      const end = world.end(job, 200_000);
      expect(end.status).toBe(status);
      world.cut.clear();
      for (const waitMs of [2_000, 40_000]) {
        world.run(waitMs);
        for (const gate of [0, 1, 2]) {
          const shown = world.ask({ kind: "status", job }, gate);
          const { datacenters = [], workflows = [] } = shown.kind === "job" ? shown.job : {};
          expect(datacenters.map((one) => [one.name, one.status])).toEqual(
            end.summary?.cluster?.datacenters.map((one) => [one.name, one.status]),
          );
          const reasons = datacenters.map(({ reason }) => reason);
          if (status === "PARTIAL") expect(reasons).toEqual([null, null]);
          expect(workflows.map((one) => [one.name, one.status])).toEqual(
            end.summary?.workflows.map((one) => [one.name, one.status]),
          );
          const attempts = workflows.flatMap((one) => one.attempts);
          expect(attempts.length).toBeGreaterThan(0);
          expect(attempts.filter((one) => one.status === "running")).toEqual([]);
          expect(attempts.filter(({ endedAt }) => endedAt === null)).toEqual([]);
        }
      }
    },
  );

  it("waits while one of its datacenters is full, and two jobs do not deadlock", () => {
    const world = new GateWorld({ datacenters: BOTH, loadMs: 2_000 });
    const jobs = ["a", "b"].map((key) =>
      world.submit({ name: key }, { datacenters: BOTH }, { key }),
    );
    for (const job of jobs) expect(world.end(job, 120_000).status).toBe("COMPLETED");
  });

  it("is not submitted to an unasked datacenter just to be cancelled when it is rescheduled (T14)", () => {
    const world = new GateWorld({ datacenters: BOTH });
    world.cut.add("dc1");
    const job = world.submit({}, { datacenters: BOTH });
    const events = (): readonly string[] => {
      const answer = world.ask({ kind: "events", job, from: 0 });
      return answer.kind === "events" ? answer.events.map(({ kind }) => kind) : [];
    };
    world.until(() => events().filter((kind) => kind === "JobQueued").length > 0);
    world.run(2_000);
    const there = world.datacenter("dc2").ask({ kind: "jobs", after: null });
    expect(there.kind === "jobs" ? there.jobs : null).toEqual([]);
    world.cut.clear();
    expect(world.end(job, 120_000).status).toBe("COMPLETED");
  });

  it("that is cancelled in the queue of the first datacenter never reaches the second", () => {
    const world = new GateWorld({ datacenters: BOTH, loadMs: 20_000 });
    const first = world.submit({ name: "first" }, { datacenters: ["dc1"] }, { key: "first" });
    world.until(() => world.status(first) === "RUNNING");
    const job = world.submit({ name: "second" }, { datacenters: BOTH }, { key: "second" });
    world.run(2_000);
    world.ask({ kind: "control", job, by: "me", control: { kind: "cancel", reason: "no" } });
    expect(world.end(job).status).toBe("CANCELLED");
    const there = world.datacenter("dc2").ask({ kind: "jobs", after: null });
    expect(there.kind === "jobs" ? there.jobs : null).toEqual([]);
  });
});
