import { describe, expect, it } from "vitest";
import { manifest } from "../../load/job/testing/manifest.ts";
import { ANYWHERE } from "../messages.ts";
import { BUNDLE, submission, World } from "./testing/world.ts";

function requests(summary: NonNullable<ReturnType<World["end"]>["summary"]>): number {
  return summary.totals?.requests ?? -1;
}

describe("a job on one manager and one worker", () => {
  it("runs from submission to result and returns its cores", () => {
    const world = new World();
    const job = world.submit();
    const { reason, status, summary } = world.end(job);
    expect([status, reason]).toEqual(["COMPLETED", null]);
    expect(summary?.workflows.map(({ cores, name }) => [name, cores])).toEqual([["shop", 2]]);
    expect(summary === null ? 0 : requests(summary)).toBe(world.calls());
    expect(world.calls()).toBe(20);
    world.run(1_000);
    expect(world.workers[0]?.jobs.get(job)?.cores.size).toBe(0);
    const nodes = world.ask({ kind: "nodes" });
    expect(nodes).toMatchObject({ nodes: [{ role: "manager" }, { name: "w0", coresUsed: 0 }] });
  });

  it("is accepted once per key and rejected when the key is reused for another job", () => {
    const world = new World();
    const job = world.submit();
    const again = world.ask({
      ...{ kind: "submit", key: "key", submission: submission(), routing: ANYWHERE },
    });
    expect(again).toEqual({ kind: "accepted", job, duplicate: true });
    const spelled = submission({ name: "../other.ts", command: "submit --ui none" });
    expect(
      world.ask({ kind: "submit", key: "key", submission: spelled, routing: ANYWHERE }),
    ).toEqual({ kind: "accepted", job, duplicate: true });
    const other = submission({ timeoutMs: 1 });
    expect(
      world.ask({ kind: "submit", key: "key", submission: other, routing: ANYWHERE }),
    ).toMatchObject({
      kind: "refused",
      reason: "keyReused",
    });
  });

  it("is rejected when it targets another datacenter, or several", () => {
    const world = new World();
    const ask = (routing: Partial<typeof ANYWHERE>) =>
      world.ask({
        ...{ kind: "submit", key: "other", submission: submission() },
        routing: { ...ANYWHERE, ...routing },
      });
    expect(ask({ datacenters: ["dc9"] })).toMatchObject({ reason: "invalid" });
    expect(ask({ count: 2 })).toMatchObject({
      message: "it is to run in 2 datacenters: there are dc1",
    });
    expect(ask({ datacenters: ["dc1"] })).toMatchObject({ kind: "accepted" });
  });

  it("is rejected without its files, without a workflow, or with a cycle of them", () => {
    const world = new World();
    const ask = (changes: Parameters<typeof submission>[0]) =>
      world.ask({
        ...{ kind: "submit", key: "other", submission: submission(changes), routing: ANYWHERE },
      });
    const hash = "cd".repeat(32);
    const files = [
      { path: "bundle.mjs", hash: BUNDLE, bytes: 1 },
      { path: "rows.csv", hash, bytes: 9 },
    ];
    expect(ask({ files })).toEqual({ kind: "missing", hashes: [hash] });
    expect(ask({ manifests: [] })).toMatchObject({ reason: "invalid" });
    expect(ask({ entry: "else.mjs" })).toMatchObject({ reason: "invalid" });
    const circle = [manifest("a", { dependsOn: ["b"] }), manifest("b", { dependsOn: ["a"] })];
    expect(ask({ manifests: circle })).toMatchObject({ reason: "invalid" });
    expect(ask({ name: "x".repeat(300_000) })).toMatchObject({ reason: "invalid" });
  });

  it("is rejected with any field missing or mistyped, and never crashes a manager", () => {
    const world = new World();
    const whole = submission();
    const [shop] = whole.manifests;
    const refused = (value: unknown): void => {
      const answer = world.ask({
        ...{ kind: "submit", key: "odd", submission: value as typeof whole, routing: ANYWHERE },
      });
      expect(answer).toMatchObject({ kind: "refused", reason: "invalid" });
    };
    for (const name of Object.keys(whole)) refused({ ...whole, [name]: undefined });
    for (const name of Object.keys(shop ?? {}))
      for (const value of [undefined, Number.NaN, { kind: "later" }])
        refused({ ...whole, manifests: [{ ...shop, [name]: value }] });
    refused({ ...whole, thresholds: ["nonsense"] });
    let deep: unknown = [];
    for (let at = 0; at < 100_000; at++) deep = [deep];
    refused({ ...whole, overrides: { deep } });
    expect(world.end(world.submit()).status).toBe("COMPLETED");
  });

  it("passes values provided by one layer to the next", () => {
    const world = new World();
    const give = { provides: [{ key: "made", to: ["second"] }] };
    const take = {
      dependsOn: ["first"],
      uses: [{ name: "made", from: ["first"], keys: ["made"] }],
    };
    const job = world.submit({ manifests: [manifest("first", give), manifest("second", take)] });
    const { status, summary } = world.end(job);
    expect(status).toBe("COMPLETED");
    expect(summary?.workflows.map((one) => one.status)).toEqual(["completed", "completed"]);
    expect(world.workers[0]?.opened[0]?.context).toEqual({ first: { made: 10 } });
  });

  it("waits for cores in order of submission and shows the reason", () => {
    const world = new World();
    const first = world.submit({}, "1");
    const second = world.submit({ cores: 2 }, "2");
    const third = world.submit({ cores: 1 }, "3");
    expect(world.progress(second)).toMatchObject({
      status: "QUEUED",
      reason: "it needs 2 cores, none is free (position 1 of 2)",
    });
    expect(world.progress(third)?.reason).toBe("1 job is before it (position 2 of 2)");
    expect(world.end(first).status).toBe("COMPLETED");
    expect(world.end(second).status).toBe("COMPLETED");
    expect(world.end(third).status).toBe("COMPLETED");
  });

  it("shows its queue position on every manager, and the calls of a finished job in every list", () => {
    const world = new World({ managers: 3 });
    const first = world.submit({}, "1");
    const second = world.submit({ cores: 2 }, "2");
    world.run(500);
    const listed = (index: number, job: string) => {
      const answer = world.ask({ kind: "jobs", after: null }, index);
      return answer.kind === "jobs" ? answer.jobs.find(({ id }) => id === job) : undefined;
    };
    for (const index of [0, 1, 2])
      expect(listed(index, second)?.reason).toContain("position 1 of 1");
    const requests = world.end(first).summary?.totals?.requests;
    expect(requests).toBeGreaterThan(0);
    world.run(500);
    for (const index of [0, 1, 2])
      expect(listed(index, first)?.datacenters).toMatchObject([{ requests }]);
  });

  it("blocks no other job when it is larger than the datacenter", () => {
    const world = new World();
    const large = world.submit({ cores: 3 }, "1");
    const small = world.submit({}, "2");
    expect(world.end(small).status).toBe("COMPLETED");
    expect(world.progress(large)?.reason).toBe(
      "it needs 3 cores, 2 are free; the datacenter has 2 (position 1 of 1)",
    );
  });

  it("waits by the clock of the datacenter's leader, not of the manager that accepted it", () => {
    const world = new World({ managers: 3, wallMs: [0, 3_600_000, -3_600_000] });
    const running = world.submit({}, "1");
    const waiting = [0, 1, 2].map((index) =>
      world.submit({ timeoutMs: 60_000 }, `key ${index}`, index),
    );
    for (const job of [running, ...waiting]) expect(world.end(job).status).toBe("COMPLETED");
  });

  it("reports that it is larger than the datacenter, and is ended by its limit", () => {
    const world = new World();
    const job = world.submit({ cores: 3, timeoutMs: 2_000 });
    expect(world.progress(job)?.reason).toBe(
      "it needs 3 cores, 2 are free; the datacenter has 2 (position 1 of 1)",
    );
    expect(world.end(job)).toMatchObject({
      status: "FAILED",
      reason: "no cores were free within 2s, its limit",
    });
  });

  it("is ended by its limit counted from acceptance, also under a new leader", () => {
    const world = new World({ managers: 3 });
    const job = world.submit({ cores: 99, timeoutMs: 30_000 });
    const begunAt = world.now;
    world.run(25_000);
    const [leader = 0] = world.leaders((id) => id.startsWith("dc/"));
    world.kill(leader);
    expect(world.end(job).status).toBe("FAILED");
    expect(world.now - begunAt).toBeLessThan(45_000);
  });

  it("can be cancelled while it waits and while it runs", () => {
    const world = new World({ loadMs: 20_000 });
    const [running, waiting] = [world.submit({}, "1"), world.submit({}, "2")];
    world.until(() => world.progress(running)?.status === "RUNNING");
    const cancel = (job: string) =>
      world.ask({
        kind: "control",
        job,
        by: "ada",
        control: { kind: "cancel", reason: "not now" },
      });
    expect(cancel(waiting)).toEqual({ kind: "controlled" });
    expect(world.end(waiting)).toMatchObject({ status: "CANCELLED", reason: "not now" });
    world.run(2_000);
    cancel(running);
    const end = world.end(running);
    expect(end).toMatchObject({ status: "CANCELLED", reason: "not now" });
    expect(end.summary?.workflows[0]?.status).toBe("interrupted");
    expect(requests(end.summary as never)).toBe(world.calls());
    expect(cancel(running)).toMatchObject({
      reason: "invalid",
      message: `${running} has ended: CANCELLED`,
    });
  });

  it("is reported as not begun only by the leader of its datacenter", () => {
    const world = new World({ managers: 3, cores: 1, loadMs: 5_000 });
    const running = world.submit();
    world.until(() => world.progress(running)?.status === "RUNNING");
    const waiting = world.submit({}, "other key");
    world.run(1_000);
    const request = {
      kind: "control",
      job: waiting,
      by: "ada",
      control: { kind: "pause" },
    } as const;
    const reasons = [0, 1, 2].map((manager) => {
      const answer = world.ask(request, manager);
      return answer.kind === "refused" ? answer.reason : answer.kind;
    });
    expect(reasons.toSorted()).toEqual(["invalid", "retry", "retry"]);
  });

  it("pauses and resumes", () => {
    const world = new World({ loadMs: 4_000 });
    const job = world.submit();
    world.until(() => world.progress(job)?.status === "RUNNING");
    world.ask({ kind: "control", job, by: "ada", control: { kind: "pause" } });
    world.run(200);
    const calls = world.calls();
    expect(world.progress(job)).toMatchObject({ status: "PAUSED" });
    world.run(1_000);
    expect(world.calls()).toBe(calls);
    world.ask({ kind: "control", job, by: "ada", control: { kind: "resume" } });
    expect(world.end(job).status).toBe("COMPLETED");
    expect(world.calls()).toBeGreaterThan(calls);
  });

  it("is not paused again by a repeated request after it resumed", () => {
    const world = new World({ managers: 3, loadMs: 60_000 });
    const job = world.submit();
    world.until(() => world.progress(job)?.status === "RUNNING");
    world.control(job, { kind: "pause" }, "first");
    world.control(job, { kind: "resume" }, "second");
    expect(world.control(job, { kind: "pause" }, "first")).toEqual({ kind: "controlled" });
    world.run(500);
    expect(world.progress(job)).toMatchObject({ status: "RUNNING" });
    world.replaceLeader(job);
    world.control(job, { kind: "pause" }, "first");
    world.run(500);
    expect(world.progress(job)).toMatchObject({ status: "RUNNING" });
    world.control(job, { kind: "pause" }, "third");
    expect(world.progress(job)).toMatchObject({ status: "PAUSED" });
  });
});

it("ends and tears down a datacenter part that no gate polls any more", () => {
  const world = new World();
  const job = world.submit({ manifests: [manifest("shop", { joint: "first" })] });
  const commandsReceived = (): readonly string[] =>
    world.worker(0).opened.flatMap(({ commands }) => commands);
  world.until(() => commandsReceived().includes("setup"));
  world.run(59_000);
  expect(commandsReceived()).not.toContain("teardown");
  world.until(() => commandsReceived().includes("teardown"));
  expect(commandsReceived()).not.toContain("start");
  expect(world.end(job)).toMatchObject({ status: "FAILED" });
});

describe("BP-5: a datacenter whose workers are all overloaded", () => {
  it("rejects new jobs with a retry time, and accepts them when a worker has capacity again", () => {
    const world = new World();
    const [worker] = world.workers;
    if (worker === undefined) throw new Error("there is a worker");
    const ask = (key: string) =>
      world.ask({ kind: "submit", key, submission: submission(), routing: ANYWHERE });
    const known = world.submit();
    worker.queued = 50 * worker.coreCount;
    world.run(2_000);
    const refused = ask("new");
    expect(refused).toMatchObject({ kind: "refused", reason: "overloaded", retryAfterMs: 1_000 });
    expect(refused).toMatchObject({ message: expect.stringContaining("capacity exceeded") });
    // An accepted job stays accepted.
    expect(ask("key")).toEqual({ kind: "accepted", job: known, duplicate: true });
    expect(world.end(known).status).toBe("COMPLETED");
    worker.queued = 0;
    world.run(2_000);
    const taken = ask("new");
    expect(taken).toMatchObject({ kind: "accepted", duplicate: false });
    if (taken.kind === "accepted") expect(world.end(taken.job).status).toBe("COMPLETED");
  });
});
