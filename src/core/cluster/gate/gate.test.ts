import { describe, expect, it } from "vitest";
import { manifest } from "../../load/job/testing/manifest.ts";
import { submission } from "../manager/testing/world.ts";
import { ANYWHERE, type JobView, type Progress } from "../messages.ts";
import { GateWorld } from "./testing/world.ts";

function requests({ summary }: Progress): number {
  return summary?.totals?.requests ?? -1;
}

describe("a job through one gate in one datacenter", () => {
  it("runs from submission to result, and reports where it ran", () => {
    const world = new GateWorld();
    const job = world.submit();
    const end = world.end(job);
    expect([end.status, end.reason]).toEqual(["COMPLETED", null]);
    expect(requests(end)).toBe(world.calls());
    expect(end.summary?.cluster).toMatchObject({
      jobId: job,
      split: [{ datacenter: "dc1", share: 1 }],
      datacenters: [{ name: "dc1", status: "COMPLETED", workers: 1, requests: world.calls() }],
    });
  });

  it("is accepted once per key through any gate, and refused with a different job", () => {
    const world = new GateWorld({ gates: 3 });
    const job = world.submit();
    const again = {
      kind: "submit",
      key: "key",
      submission: submission(),
      routing: ANYWHERE,
    } as const;
    expect(world.ask(again, 1)).toEqual({ kind: "accepted", job, duplicate: true });
    expect(world.ask(again, 2)).toEqual({ kind: "accepted", job, duplicate: true });
    const other = submission({ timeoutMs: 1 });
    expect(world.ask({ ...again, submission: other }, 2)).toMatchObject({ reason: "keyReused" });
    const elsewhere = { ...again, routing: { ...ANYWHERE, prefer: ["dc1"] } };
    expect(world.ask(elsewhere, 1)).toMatchObject({ reason: "keyReused" });
    world.end(job);
    expect(world.datacenter("dc1").workers[0]?.opened).toHaveLength(2);
  });

  it("shares one upload with concurrent jobs of the same files", () => {
    const world = new GateWorld();
    const requests = ["a", "b", "c"].map(
      (key) => ({ kind: "submit", key, submission: submission(), routing: ANYWHERE }) as const,
    );
    const answers = world.askAtOnce(requests);
    const jobs = answers.map((answer) => (answer.kind === "accepted" ? answer.job : answer.kind));
    expect(new Set(jobs).size).toBe(3);
    expect(world.uploads).toBe(1);
    world.cut.add("dc1");
    const [first, second] = world.askAtOnce(
      requests.map((one) => ({ ...one, key: `${one.key} again` })),
    );
    expect([first?.kind, second?.kind]).toEqual(["refused", "refused"]);
  });

  it("is the same job however it was requested", () => {
    const world = new GateWorld({ gates: 3 });
    const first = { tags: { a: "1", b: "2" }, thresholds: ["errors.rate<1%", "latency.p99<1s"] };
    const job = world.submit(first);
    const again = submission({
      ...{ tags: { b: "2", a: "1" }, thresholds: [...first.thresholds].reverse() },
      ...{ name: "../else/shop.ts", command: "hyperscale submit --ui none", version: "9.9.9" },
    });
    const request = { kind: "submit", key: "key", submission: again, routing: ANYWHERE } as const;
    for (const gate of [0, 1, 2])
      expect(world.ask(request, gate)).toEqual({ kind: "accepted", job, duplicate: true });
  });

  it("shows its exact history so far to a late client (AD-23.4)", () => {
    const world = new GateWorld({ gates: 3, loadMs: 20_000 });
    const job = world.submit();
    world.until(() => world.status(job) === "RUNNING");
    // No client watches its metrics in the meantime.
    world.run(10_000);
    world.until(() => world.progress(job)?.live !== null);
    const { live } = world.progress(job) ?? {};
    const steps = live?.summary.workflows.flatMap((one) => one.steps) ?? [];
    const [series] = steps.map((one) => one.series);
    expect(series?.atSeconds[0]).toBeLessThan(1);
    expect(series?.atSeconds.at(-1)).toBeGreaterThan(8);
    const counted = steps.flatMap((one) => one.series.requests).reduce((sum, n) => sum + n, 0);
    expect(counted).toBe(steps.reduce((sum, one) => sum + one.requests, 0));
    expect(counted).toBeGreaterThan(0);
    world.end(job);
  });

  it("applies a control once that a client sends to several gates, however late one of them is", () => {
    const world = new GateWorld({ gates: 3, loadMs: 5_000 });
    const job = world.submit();
    world.until(() => world.status(job) === "RUNNING");
    const order = { kind: "control", job, by: "ada" } as const;
    const pause = { ...order, control: { kind: "pause" }, wish: "one/1" } as const;
    const resume = { ...order, control: { kind: "resume" }, wish: "two" } as const;
    for (const request of [pause, resume, pause, resume])
      for (const gate of [1, 2]) expect(world.ask(request, gate).kind).toBe("controlled");
    expect(world.status(job)).toBe("RUNNING");
    const answer = world.ask({ kind: "events", job, from: 0 }, world.leaderOf(job));
    const kinds = answer.kind === "events" ? answer.events.map(({ kind }) => kind) : [];
    expect(kinds.filter((kind) => kind === "JobPaused" || kind === "JobResumed")).toEqual([
      "JobPaused",
      "JobResumed",
    ]);
    expect(world.end(job).status).toBe("COMPLETED");
  });

  it("lists its events with their authors, of gates and datacenters", () => {
    const world = new GateWorld({ gates: 3, loadMs: 5_000 });
    const job = world.submit();
    world.until(() => world.status(job) === "RUNNING");
    world.ask({ kind: "control", job, by: "ada", control: { kind: "pause" } }, 1);
    world.ask({ kind: "control", job, by: "bob", control: { kind: "resume" } }, 2);
    world.end(job);
    const answer = world.ask({ kind: "events", job, from: 0 }, world.leaderOf(job));
    const events = answer.kind === "events" ? answer.events : [];
    const times = events.map(({ at }) => at);
    expect(times).toEqual([...times].sort((one, other) => one - other));
    const leader = world.cluster.at(world.leaderOf(job)).id;
    const ofGates = events.filter(({ datacenter }) => datacenter === "");
    expect(ofGates.map(({ kind, who }) => [kind, who])).toEqual([
      ...[
        ["JobCreated", leader],
        ["JobDispatched", leader],
        ["JobAccepted", leader],
      ],
      ...[
        ["JobStarted", leader],
        ["JobPaused", "ada"],
        ["JobResumed", "bob"],
      ],
      ...[
        ["JobDcResult", leader],
        ["JobCompleted", leader],
      ],
    ]);
    const fenced = ofGates.filter(({ token }) => token !== null).map(({ kind }) => kind);
    expect(fenced).toContain("JobStarted");
    expect(fenced).not.toContain("JobPaused");
    const there = events.filter(({ datacenter }) => datacenter === "dc1");
    expect(there.map(({ kind }) => kind)).toEqual(
      expect.arrayContaining(["submitted", "placed", "ended"]),
    );
    const { job: shown } = world.ask({ kind: "status", job }, world.leaderOf(job)) as {
      readonly job: JobView;
    };
    expect(shown.datacenters).toMatchObject([
      { name: "dc1", status: "COMPLETED", managers: 1, workers: 1, requests: world.calls() },
    ]);
    expect(shown.workflows[0]?.attempts[0]?.endedAt).not.toBeNull();
  });

  it("reports which datacenter did not return its events", () => {
    const world = new GateWorld({ gates: 1 });
    const job = world.submit();
    world.end(job);
    world.cut.add("dc1");
    const answer = world.ask({ kind: "events", job, from: 0 });
    const last = answer.kind === "events" ? answer.events.at(-1) : null;
    expect(last).toMatchObject({ kind: "cutShort", datacenter: "dc1" });
    expect(last?.text).toContain("dc1 did not tell its events");
  });

  it("is reported alike by every gate when it has finished, whichever led it", () => {
    const world = new GateWorld({ gates: 3 });
    const job = world.submit();
    world.end(job);
    world.run(2_000);
    const views = [0, 1, 2].map((gate) => {
      const shown = world.ask({ kind: "status", job }, gate);
      const { datacenters, workflows } = (shown as { readonly job: JobView }).job;
      const history = world.ask({ kind: "events", job, from: 0 }, gate);
      return {
        workflows,
        managers: datacenters.map(({ managers }) => managers),
        events: history.kind === "events" ? history.events : [],
      };
    });
    expect(views[0]?.workflows[0]?.attempts).not.toHaveLength(0);
    expect(views[0]?.managers).toEqual([1]);
    expect(views[0]?.events.map(({ kind }) => kind)).toContain("placed");
    expect(views.slice(1)).toEqual([views[0], views[0]]);
  });

  it("that is cancelled before it started is shown as cancelled in its datacenter, too", () => {
    const shown = [0, 40, 80, 120].flatMap((waitMs) => {
      const world = new GateWorld({ gates: 3, loadMs: 20_000 });
      const job = world.submit();
      world.run(waitMs);
      world.ask({ kind: "control", job, by: "me", control: { kind: "cancel", reason: "enough" } });
      world.end(job);
      world.run(2_000);
      return [0, 1, 2].flatMap((gate) => {
        const answer = world.ask({ kind: "status", job }, gate);
        return answer.kind === "job" ? answer.job.datacenters.map(({ status }) => status) : [];
      });
    });
    expect(new Set(shown)).toEqual(new Set(["CANCELLED"]));
  });

  it("that has finished rejects controls at any gate, and keeps earlier ones", () => {
    const world = new GateWorld({ gates: 3, loadMs: 3_000 });
    const job = world.submit();
    world.until(() => world.status(job) === "RUNNING");
    const order = { kind: "control", job, by: "ada" } as const;
    const before = { ...order, control: { kind: "scale", factor: 2 }, wish: "one" } as const;
    expect(world.ask(before)).toEqual({ kind: "controlled" });
    world.end(job);
    const controls = [
      ...[{ kind: "pause" } as const, { kind: "resume" } as const],
      { kind: "scale", factor: 3 } as const,
      { kind: "cancel", reason: "no" } as const,
    ];
    for (const gate of [0, 1, 2])
      for (const control of controls)
        expect(world.ask({ ...order, control }, gate)).toMatchObject({
          ...{ kind: "refused", reason: "invalid", message: `${job} has ended: COMPLETED` },
        });
    expect(world.ask(before, 1)).toEqual({ kind: "controlled" });
  });

  it("that is unknown rejects controls", () => {
    const world = new GateWorld();
    const control = { kind: "cancel", reason: "enough" } as const;
    const asked = { kind: "control", job: "gates-1-g1-0", by: "me", control } as const;
    expect(world.ask(asked)).toMatchObject({ reason: "unknownJob" });
  });

  it("is refused with the reason where it cannot run", () => {
    const world = new GateWorld({ datacenters: ["dc1", "dc2"] });
    const ask = (routing: Partial<typeof ANYWHERE>) =>
      world.ask({
        ...{ kind: "submit", key: "k", submission: submission() },
        routing: { ...ANYWHERE, ...routing },
      });
    expect(ask({ datacenters: ["dc3"] })).toMatchObject({
      ...{ kind: "refused", reason: "invalid" },
      message: 'there is no datacenter "dc3": there are dc1, dc2',
    });
    expect(ask({ count: 3 })).toMatchObject({ reason: "invalid" });
    expect(ask({ strict: true })).toMatchObject({ reason: "invalid" });
  });

  it("is paused, resumed and cancelled with its metrics", () => {
    const world = new GateWorld({ loadMs: 20_000 });
    const job = world.submit({ manifests: [manifest("shop")] });
    world.until(() => world.status(job) === "RUNNING");
    const control = (kind: "pause" | "resume") =>
      world.ask({ kind: "control", job, by: "me", control: { kind } });
    expect(control("pause")).toEqual({ kind: "controlled" });
    const there = () => world.ask({ kind: "status", job });
    world.until(() => JSON.stringify(there()).includes('"status":"PAUSED","job":"dc1'));
    expect(control("resume")).toEqual({ kind: "controlled" });
    world.run(1_000);
    world.ask({ kind: "control", job, by: "me", control: { kind: "cancel", reason: "enough" } });
    const end = world.end(job);
    expect([end.status, end.reason]).toEqual(["CANCELLED", "enough"]);
    expect(requests(end)).toBe(world.calls());
    expect(end.summary?.verdict).toBe("interrupted");
  });

  it("waits with the reason until cores are free, and its time limit counts meanwhile", () => {
    const world = new GateWorld({ loadMs: 3_000 });
    const first = world.submit();
    world.until(() => world.status(first) === "RUNNING");
    world.run(1_500);
    const second = world.submit({ name: "second.ts" }, {}, { key: "second" });
    const late = world.submit({ name: "late.ts", timeoutMs: 1_000 }, {}, { key: "late" });
    world.until(() => world.progress(second)?.reason != null);
    expect(world.progress(second)).toMatchObject({
      status: "QUEUED",
      reason: "it needs 1 free core in a datacenter; there are: dc1 0 of 2 (position 1 of 2)",
    });
    expect(world.progress(late)?.reason).toContain("position 2 of 2");
    expect(world.end(late)).toMatchObject({ status: "FAILED" });
    expect(world.end(first).status).toBe("COMPLETED");
    expect(world.end(second).status).toBe("COMPLETED");
  });

  it("is shown as waiting, with the reason, by every gate, whichever leads it and wherever it waits", () => {
    const world = new GateWorld({ gates: 3, cores: 1, loadMs: 4_000 });
    const submit = (at: number): string =>
      world.submit({ cores: 1 }, {}, { gate: at % 3, key: `job ${at}` });
    const first = submit(0);
    world.until(() => world.status(first) === "RUNNING");
    world.run(1_500);
    const jobs = [first, ...[1, 2, 3].map(submit)];
    const jobsOf = (gate: number): readonly JobView[] => {
      const answer = world.ask({ kind: "jobs", after: null }, gate);
      return answer.kind === "jobs" ? answer.jobs : [];
    };
    const waiting = (gate: number) => jobsOf(gate).filter(({ status }) => status === "QUEUED");
    for (const gate of [0, 1, 2]) {
      const reasons = waiting(gate).map(({ reason }) => reason);
      expect(reasons).toHaveLength(3);
      for (const [at, reason] of reasons.entries())
        expect(reason).toBe(
          `it needs 1 free core in a datacenter; there are: dc1 0 of 1 (position ${at + 1} of 3)`,
        );
    }
    // They reach the datacenter together, and two of them are queued there.
    world.until(() => jobs.slice(1).some((job) => world.status(job) === "RUNNING"));
    world.run(500);
    for (const gate of [0, 1, 2]) {
      const statuses = jobsOf(gate).map(({ status }) => status);
      expect(statuses.toSorted()).toEqual(["COMPLETED", "QUEUED", "QUEUED", "RUNNING"]);
      for (const { datacenters, reason } of waiting(gate)) {
        expect(reason).toMatch(/^dc1: /);
        expect(datacenters.map(({ status }) => status)).toEqual(["QUEUED"]);
      }
    }
    for (const job of jobs) expect(world.end(job).status).toBe("COMPLETED");
  });

  it("that cannot be loaded fails with the reason from its datacenter", () => {
    const world = new GateWorld({ workers: 0 });
    const job = world.submit({ timeoutMs: 2_000 });
    const end = world.end(job);
    expect(end.status).toBe("FAILED");
    expect(end.reason).toBe("no cores were free within 2s, its limit");
  });
});

describe("the gate that leads a job", () => {
  it("is lost mid-job: another takes over, and no load is duplicated or lost", () => {
    const world = new GateWorld({ gates: 3, loadMs: 15_000 });
    const job = world.submit();
    world.until(() => world.status(job) === "RUNNING");
    const leader = world.leaderOf(job);
    world.kill(leader);
    world.until(() => world.leaderOf(job) >= 0 && world.leaderOf(job) !== leader);
    world.until(() => world.progress(job)?.live != null);
    const end = world.end(job);
    expect(end.status).toBe("COMPLETED");
    expect(requests(end)).toBe(world.calls());
    expect(world.datacenter("dc1").workers[0]?.opened).toHaveLength(2);
  });

  it("is lost before the job has started: it starts once", () => {
    for (const afterMs of [0, 40, 100, 200, 400]) {
      const world = new GateWorld({ gates: 3, loadMs: 2_000 });
      const job = world.submit();
      world.run(afterMs);
      const leader = world.leaderOf(job);
      if (leader >= 0) world.kill(leader);
      const end = world.end(job);
      expect([afterMs, end.status]).toEqual([afterMs, "COMPLETED"]);
      expect([afterMs, requests(end)]).toEqual([afterMs, world.calls()]);
    }
  });

  it("is lost after a cancel: the job is still cancelled", () => {
    const world = new GateWorld({ gates: 3, loadMs: 30_000 });
    const job = world.submit();
    world.until(() => world.status(job) === "RUNNING");
    const leader = world.leaderOf(job);
    const other = (leader + 1) % 3;
    const control = { kind: "cancel", reason: "enough" } as const;
    expect(world.ask({ kind: "control", job, by: "me", control }, other).kind).toBe("controlled");
    world.kill(leader);
    const end = world.end(job);
    expect(end.status).toBe("CANCELLED");
    expect(requests(end)).toBe(world.calls());
  });
});

describe("a cancelled job whose datacenter stays unreachable", () => {
  it("finishes without metrics, and says why (PART-5)", () => {
    const world = new GateWorld({ loadMs: 3_000 });
    const job = world.submit();
    world.until(() => world.status(job) === "RUNNING");
    world.run(500);
    world.cut.add("dc1");
    const control = { kind: "cancel", reason: "enough" } as const;
    expect(world.ask({ kind: "control", job, by: "me", control }).kind).toBe("controlled");
    const end = world.end(job, 200_000);
    expect(world.calls()).toBeGreaterThan(0);
    expect([end.status, end.summary]).toEqual(["CANCELLED", null]);
    expect(end.reason).toBe("enough; dc1: lost");
  });
});

describe("a cancel without a quorum of gates", () => {
  it("is not confirmed before it has one, because its gate may lose it", () => {
    const world = new GateWorld({ gates: 3, loadMs: 30_000 });
    const job = world.submit();
    world.until(() => world.status(job) === "RUNNING");
    const leader = world.leaderOf(job);
    const others = [0, 1, 2].filter((gate) => gate !== leader);
    for (const gate of others) world.kill(gate);
    const control = { kind: "cancel", reason: "enough" } as const;
    const answer = world.post({ kind: "control", job, by: "me", control }, leader);
    world.run(5_000);
    expect(answer()).toBe(null);
    for (const gate of others) world.start(gate);
    world.until(() => answer() !== null);
    expect(answer()).toEqual({ kind: "controlled" });
    expect(world.end(job).status).toBe("CANCELLED");
  });
});

describe("an idle gate", () => {
  it("does not tick for a datacenter that waits for another to provide cores", () => {
    const world = new GateWorld({ datacenters: ["dc1", "dc2"] });
    const job = world.submit({}, { count: 2 });
    world.cut.add("dc1");
    world.run(1_000);
    expect(world.progress(job)?.status).toBe("QUEUED");
    world.ticks = 0;
    world.run(2_000);
    expect(world.ticks).toBeLessThan(50);
  });
});

describe("the choice of a datacenter", () => {
  it("takes the preferred one, else the one with the most free cores", () => {
    const world = new GateWorld({ datacenters: ["dc1", "dc2"] });
    const at = (job: string) =>
      world.end(job).summary?.cluster?.datacenters.map(({ name }) => name);
    expect(at(world.submit({}, { prefer: ["dc2"] }, { key: "a" }))).toEqual(["dc2"]);
    expect(at(world.submit({}, {}, { key: "b" }))).toEqual(["dc1"]);
  });

  it("drops one that falls silent before the job has started there", () => {
    const world = new GateWorld({ datacenters: ["dc1", "dc2"] });
    world.cut.add("dc1");
    const job = world.submit({}, { prefer: ["dc1"] });
    const end = world.end(job);
    expect(end.summary?.cluster?.datacenters).toMatchObject([{ name: "dc2" }]);
    expect(requests(end)).toBe(world.calls());
  });
});

describe("the nodes of a cluster", () => {
  function named(world: GateWorld): readonly string[] {
    const answer = world.ask({ kind: "nodes" });
    if (answer.kind !== "nodes") throw new Error(answer.kind);
    return answer.nodes.map(({ datacenter, name, role }) => `${datacenter} ${role} ${name}`);
  }

  it("are listed by another manager when the first one does not answer", () => {
    const world = new GateWorld({ managers: 3 });
    const all = named(world);
    expect(all).toContain("dc1 worker w0");
    for (const gone of [0, 1]) {
      world.datacenter("dc1").kill(gone);
      expect(named(world)).toEqual(all);
    }
  });

  it("include at least the managers where none answers", () => {
    const world = new GateWorld({ datacenters: ["dc1", "dc2"] });
    const all = named(world);
    world.cut.add("dc2");
    const left = named(world);
    expect(left).toEqual(all.filter((node) => !node.startsWith("dc2 worker")));
    expect(left.some((node) => node.startsWith("dc2 manager"))).toBe(true);
  });

  it("can be removed again when one manager had removed a worker and another had not", () => {
    const world = new GateWorld({ managers: 3, workers: 2 });
    const datacenter = world.datacenter("dc1");
    const remove = (): unknown => world.ask({ kind: "removeNode", node: "w1" });
    world.run(1_000);
    expect(remove()).toMatchObject({
      reason: "invalid",
      message: expect.stringContaining("alive"),
    });
    datacenter.worker(1).alive = false;
    world.run(5_000);
    for (const manager of [0, 1])
      expect(datacenter.ask({ kind: "removeNode", node: "w1" }, manager)).toEqual({
        kind: "controlled",
      });
    expect(remove()).toEqual({ kind: "controlled" });
    for (const _ of [0, 1, 2]) expect(named(world)).not.toContain("dc1 worker w1");
    expect(remove()).toMatchObject({ reason: "invalid", message: "there is no node w1" });
  });
});
