import { describe, expect, it } from "vitest";
import { manifest } from "../../load/job/testing/manifest.ts";
import type { ClientAnswer, JobEventView, JobView } from "../messages.ts";
import { attemptsOf, hasWholeLog } from "./job-history.ts";
import type { RunState } from "./run-state.ts";
import { World } from "./testing/world.ts";

const load = { kind: "vus", stages: [{ durationMs: 20_000, from: 4, to: 4 }] } as const;

function eventsIn(answer: ClientAnswer): readonly JobEventView[] {
  if (answer.kind !== "events") throw new Error(`not events: ${JSON.stringify(answer)}`);
  return answer.events;
}

function jobIn(answer: ClientAnswer): JobView {
  if (answer.kind !== "job") throw new Error(`not a job: ${JSON.stringify(answer)}`);
  return answer.job;
}

describe("the history of a job", () => {
  it("lists decisions in order, with author and token", () => {
    const world = new World();
    const job = world.submit();
    world.end(job);
    const events = eventsIn(world.ask({ kind: "events", job, from: 0 }));
    expect(events.map(({ kind }) => kind)).toEqual([
      ...["submitted", "admitted", "adopted", "started", "placed", "setUp", "setUpDone"],
      ...["finished", "finished", "tearDown", "workflowEnded", "ended"],
    ]);
    const times = events.map(({ at }) => at);
    expect(times).toEqual([...times].sort((one, other) => one - other));
    const placed = events.find(({ kind }) => kind === "placed");
    expect(placed).toMatchObject({
      who: "n0",
      datacenter: "dc1",
      text: expect.stringMatching(/w0/),
    });
    const { attempts = [] } = jobIn(world.ask({ kind: "status", job })).workflows[0] ?? {};
    expect(new Set(attempts.map(({ token }) => token))).toEqual(new Set([placed?.token]));
    expect(eventsIn(world.ask({ kind: "events", job, from: 7 }))).toEqual(events.slice(7));
  });

  it("lists the end of a core once when the leader is lost before committing it", () => {
    const world = new World({ managers: 3, loadMs: 3_000 });
    const job = world.submit();
    let isSeen = false;
    world.onEntry = (entry) => {
      isSeen ||= entry.kind === "step" && entry.step.kind === "finished";
      const leader = world.leaderOf(job);
      if (isSeen && leader >= 0) world.cut(leader, true);
    };
    world.until(() => isSeen);
    world.onEntry = () => undefined;
    world.until(() => world.leaderOf(job) >= 0);
    world.end(job);
    const events = eventsIn(world.ask({ kind: "events", job, from: 0 }, world.leaderOf(job)));
    const ends = events.filter(({ kind }) => kind === "finished").map(({ text }) => text);
    expect(ends.toSorted()).toEqual(["shop on core 0 of w0", "shop on core 1 of w0"]);
  });

  it("is marked incomplete where a manager does not know the leader yet", () => {
    const world = new World({ managers: 3, loadMs: 20_000 });
    const job = world.submit();
    world.until(() => jobIn(world.ask({ kind: "status", job })).status === "RUNNING");
    const behind = [0, 1, 2].find((index) => index !== world.leaderOf(job)) ?? 0;
    world.run(1_000);
    world.kill(behind);
    world.start(behind);
    const seen: JobEventView[][] = [];
    world.until(() => {
      const answer = world.ask({ kind: "events", job, from: 0 }, behind);
      if (answer.kind === "events") seen.push([...answer.events]);
      return seen.at(-1)?.some(({ kind }) => kind === "placed") ?? false;
    });
    const ends = seen.map((events) => events.at(-1)?.kind);
    expect(seen[0]?.at(-1)).toMatchObject({
      kind: "cutShort",
      text: expect.stringContaining("does not have the whole log"),
    });
    expect(ends.slice(0, -1).filter((kind) => kind !== "cutShort")).toEqual([]);
  });

  it.each([
    ["lacks the log of a job that runs", "admitted", null, null, false],
    ["knows no leader of it", "admitted", null, { primary: null, end: null }, false],
    ["follows its leader", "admitted", null, { primary: "n0", end: null }, true],
    ["waits with it", "queued", null, null, true],
    ["lacks the log of a job that left results", "ended", "hash", null, false],
    ["has not read to its end", "ended", "hash", { primary: null, end: null }, false],
    ["has read to its end", "ended", "hash", { primary: null, end: {} }, true],
    ["knows of one that never began", "ended", null, null, true],
  ] as const)("of a manager that %s", (_what, phase, summary, run, isWhole) => {
    const state = { submission: {}, end: run?.end ?? null } as unknown as RunState;
    const had = run === null ? null : { state, primary: run.primary };
    expect(hasWholeLog({ phase, summary } as never, had)).toBe(isWhole);
  });

  it("names operators who control the job, and leaders as they change", () => {
    const world = new World({ managers: 3, loadMs: 20_000 });
    const job = world.submit();
    world.until(() => jobIn(world.ask({ kind: "status", job })).status === "RUNNING");
    const first = world.leaderOf(job);
    const scale = { kind: "scale", factor: 1.5 } as const;
    world.ask({ kind: "control", job, by: "ada", control: scale }, first);
    world.kill(first);
    world.until(() => ![-1, first].includes(world.leaderOf(job)));
    const second = world.leaderOf(job);
    const events = () => eventsIn(world.ask({ kind: "events", job, from: 0 }, second));
    world.until(() => events().filter(({ kind }) => kind === "adopted").length === 2);
    expect(events().find(({ kind }) => kind === "scale")).toMatchObject({
      ...{ who: "ada", text: "1.5 times the plan" },
    });
    const leaders = events().filter(({ kind }) => kind === "adopted");
    const ids = [first, second].map((index) => world.cluster.at(index).id);
    expect(leaders.map(({ who }) => who)).toEqual(ids);
    expect(leaders[1]?.token).toBeGreaterThan(leaders[0]?.token ?? 0);
  });

  it("records when an attempt began, finished and why it was lost", () => {
    const world = new World({ workers: 2, cores: 1, loadMs: 20_000 });
    const job = world.submit();
    world.until(() => jobIn(world.ask({ kind: "status", job })).status === "RUNNING");
    world.run(1_000);
    world.worker(1).alive = false;
    const status = () => jobIn(world.ask({ kind: "status", job }));
    const lost = () => status().workflows[0]?.attempts.find((one) => one.status === "lost");
    world.until(() => lost() !== undefined);
    expect(lost()).toMatchObject({ worker: "w1", reason: "worker w1 was lost with core 1" });
    expect(lost()?.endedAt).toBeGreaterThan(lost()?.startedAt ?? 0);
    const running = status().workflows[0]?.attempts.find((one) => one.status === "running");
    expect(running).toMatchObject({ worker: "w0", endedAt: null, reason: null });
    expect(status().lost).toHaveLength(1);
  });

  it("shows nothing running once the job is cancelled, matching its result", () => {
    const world = new World({ loadMs: 20_000 });
    const job = world.submit();
    world.until(() => jobIn(world.ask({ kind: "status", job })).status === "RUNNING");
    world.run(1_000);
    world.control(job, { kind: "cancel", reason: "enough" });
    const { summary } = world.end(job);
    const [workflow] = jobIn(world.ask({ kind: "status", job })).workflows;
    expect(workflow?.status).toBe("interrupted");
    expect(workflow?.status).toBe(summary?.workflows[0]?.status);
    expect(workflow?.attempts.map(({ status }) => status)).toEqual(["finished", "finished"]);
    for (const { endedAt, startedAt } of workflow?.attempts ?? [])
      expect(endedAt).toBeGreaterThan(startedAt);
  });

  it("names the worker that continues the share of a lost core", () => {
    const world = new World({ workers: 3, cores: 1, loadMs: 20_000 });
    world.run(600);
    const job = world.submit({ cores: 2, manifests: [manifest("shop", { load })] });
    const status = () => jobIn(world.ask({ kind: "status", job }));
    world.until(() => status().status === "RUNNING");
    const lost = status().workflows[0]?.attempts[0]?.worker ?? "";
    const [free = ""] = ["w0", "w1", "w2"].filter((name) =>
      status().workflows[0]?.attempts.every(({ worker }) => worker !== name),
    );
    world.killWorker(world.workers.findIndex(({ name }) => name === lost));
    const events = () => eventsIn(world.ask({ kind: "events", job, from: 0 }));
    world.until(() => events().some(({ kind }) => kind === "dealtAgain"));
    const [dealt] = events().filter(({ kind }) => kind === "dealtAgain");
    const text = `shop, the share of core 0 of ${lost}, on core 2 of ${free}`;
    const attempt = status().workflows[0]?.attempts.find(({ core }) => core === 2);
    expect(dealt).toMatchObject({ who: "n0", token: attempt?.token, text });
    const started = events().find(({ kind }) => kind === "started");
    expect(started?.text).toBe("2 cores have loaded it");
  });

  it("exists for a job that never began", () => {
    const world = new World();
    const job = world.submit({ cores: 100 });
    world.run(1_000);
    const cancel = { kind: "cancel", reason: "enough" } as const;
    world.ask({ kind: "control", job, by: "ada", control: cancel });
    const events = eventsIn(world.ask({ kind: "events", job, from: 0 }));
    expect(events).toMatchObject([{ kind: "submitted" }, { text: "CANCELLED: enough" }]);
    expect(events[1]?.at).toBeGreaterThan(events[0]?.at ?? 0);
  });
});

describe("a job shown by a manager that does not lead it", () => {
  it("is running while it runs, and paused while it is paused", () => {
    const world = new World({ managers: 3, loadMs: 60_000 });
    const job = world.submit();
    const seenBy = (manager: number): string | undefined => {
      const answer = world.ask({ kind: "jobs", after: null }, manager);
      return answer.kind === "jobs" ? answer.jobs[0]?.status : undefined;
    };
    for (const manager of [0, 1, 2]) world.until(() => seenBy(manager) === "RUNNING");
    const leader = world.leaderOf(job);
    world.ask({ kind: "control", job, by: "ada", control: { kind: "pause" } }, leader);
    for (const manager of [0, 1, 2]) world.until(() => seenBy(manager) === "PAUSED");
  });
});

describe("an attempt of a workflow", () => {
  type Decision = RunState["history"][number];
  const step = { kind: "report", workflow: "shop", error: null, faults: [] } as const;
  const report: Decision = { kind: "step", at: 2, step };
  const loss: Decision = {
    ...{ kind: "coreLost", at: 1, core: 0, what: "gone", awaited: false, figures: null },
  };

  it.each([
    ["running", [], "running"],
    ["running", [report], "finished"],
    ["lost", [loss], "lost"],
    ["lost", [loss, report], "lost"],
    ["lost", [report, loss], "finished"],
    ["finished", [report, loss], "finished"],
  ] as const)("that is %s after %o is shown as %s", (status, history, shown) => {
    const attempt = { workflow: "shop", worker: "w0", core: 0, token: 1, status };
    expect(attemptsOf({ attempts: [attempt], history })[0]?.status).toBe(shown);
  });
});

describe("a manager restarted during submissions", () => {
  function restarted(): { readonly world: World; readonly job: string } {
    const world = new World({ managers: 3, loadMs: 20_000 });
    world.submit({ cores: 1 }, "before");
    world.run(1_000);
    world.kill(2);
    const job = world.submit({ cores: 1 }, "meanwhile");
    world.run(1_000);
    world.start(2);
    return { world, job };
  }

  it("asks the client to retry for a job it lacks until it follows a leader", () => {
    const { job, world } = restarted();
    const observe = { kind: "observe", job, held: null, line: 0, live: "none" } as const;
    const id = world.post({ kind: "gate", request: observe }, 2);
    expect(world.takeAnswer(id)).toMatchObject({ kind: "refused", reason: "retry" });
    const answers: ClientAnswer[] = [];
    world.until(() => {
      answers.push(world.ask({ kind: "status", job }, 2));
      return answers.at(-1)?.kind === "job";
    });
    expect(answers[0]).toMatchObject({ message: expect.stringContaining("n2 is catching up") });
    const reasons = answers.map((one) => (one.kind === "refused" ? one.reason : one.kind));
    expect(new Set(reasons)).toEqual(new Set(["retry", "job"]));
    expect(world.ask({ kind: "status", job: "none" }, 2)).toMatchObject({ reason: "unknownJob" });
  });

  it("lists no jobs before its list is complete, and keeps listing when it is cut off later", () => {
    const { job, world } = restarted();
    const list = (): ClientAnswer => world.ask({ kind: "jobs", after: null }, 2);
    expect(list()).toMatchObject({ kind: "refused", reason: "retry" });
    const idsIn = (answer: ClientAnswer): readonly string[] =>
      answer.kind === "jobs" ? answer.jobs.map(({ id }) => id) : [];
    world.until(() => list().kind === "jobs");
    expect(idsIn(list())).toContain(job);
    world.kill(0);
    world.kill(1);
    world.run(30_000);
    expect(idsIn(list())).toContain(job);
  });
});
