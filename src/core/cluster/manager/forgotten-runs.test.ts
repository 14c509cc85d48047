import { describe, expect, it } from "vitest";
import { millis } from "../../base/brand.ts";
import type { GroupId } from "../../ledger/group/messages.ts";
import type { GroupPeek } from "../../ledger/node/application.ts";
import { type ManagerContext, runGroup } from "./context.ts";
import { DatacenterState, encodeDatacenterEntry, mayRun } from "./datacenter-state.ts";
import { ForgottenRuns } from "./forgotten-runs.ts";
import { contextOf } from "./testing/context.ts";
import { World } from "./testing/world.ts";

const LOOKS_MS = 25_000;

/** Jobs whose groups a manager replicates. */
function runsOf(world: World, manager: number): readonly string[] {
  const ids = [...(world.cluster.at(manager).node?.groups.keys() ?? [])];
  return ids.flatMap((id) => (id.startsWith("run/") ? [id.slice("run/".length)] : [])).toSorted();
}

/** Runs jobs one after the other, each to its end. */
function runJobs(world: World, count: number, name: string, manager = 0): readonly string[] {
  return Array.from({ length: count }, (_, at) => {
    const job = world.submit({ cores: 1 }, `${name} ${at}`, manager);
    world.end(job);
    return job;
  });
}

/** Counts messages about a group within the given time. */
function messagesAbout(world: World, job: string, ms: number): number {
  let count = 0;
  world.cluster.onSend = (_from, _to, messages) => {
    count += messages.filter((one) => one.kind === "vsr" && one.group === runGroup(job)).length;
  };
  world.run(ms);
  world.cluster.onSend = () => undefined;
  return count;
}

describe("jobs forgotten by the datacenter", () => {
  it("are dropped from the memory of every manager and reported as unknown", () => {
    const world = new World({ managers: 3, cores: 2, loadMs: 500, endedMax: 2 });
    const jobs = [0, 1, 2].flatMap((round) => {
      const ended = runJobs(world, 3, `round ${round}`, round);
      world.run(LOOKS_MS);
      for (const index of [0, 1, 2]) expect(runsOf(world, index)).toHaveLength(2);
      return ended;
    });
    const kept = jobs.slice(-2);
    for (const index of [0, 1, 2]) expect(runsOf(world, index)).toEqual(kept.toSorted());
    for (const job of kept) expect(world.progress(job)?.status).toBe("COMPLETED");
    const answer = world.ask({ kind: "status", job: jobs[0] ?? "" }, 1);
    expect(answer).toMatchObject({ kind: "refused", reason: "unknownJob" });
  });

  it("stay forgotten after one or all managers restart from checkpoint or log", () => {
    const world = new World({ managers: 3, cores: 2, loadMs: 500, endedMax: 2 });
    runJobs(world, 3, "before");
    world.cluster.checkpoint(world.cluster.at(1));
    const kept = runJobs(world, 4, "after").slice(-2).toSorted();
    world.run(LOOKS_MS);
    world.cluster.checkpoint(world.cluster.at(2));
    for (const index of [0, 1, 2]) world.kill(index);
    for (const index of [0, 1, 2]) world.start(index);
    // Recovered from the log, from an old checkpoint plus the log after it, and from a new checkpoint.
    expect([0, 1, 2].map((index) => runsOf(world, index).length)).toEqual([7, 7, 2]);
    world.run(15_000 + LOOKS_MS);
    for (const index of [0, 1, 2]) expect(runsOf(world, index)).toEqual(kept);
    world.kill(0);
    world.start(0);
    world.run(15_000 + LOOKS_MS);
    expect(runsOf(world, 0)).toEqual(kept);
    const [next] = runJobs(world, 1, "next");
    expect(world.progress(next ?? "")?.status).toBe("COMPLETED");
  });

  it.each([["leads it"], ["follows"]])(
    "are removed on a manager that was down while it %s, without any message",
    (what) => {
      const world = new World({ managers: 3, workers: 2, cores: 2, loadMs: 3_000, endedMax: 1 });
      const job = world.submit({ cores: 1 }, "long", 0);
      world.until(() => world.progress(job)?.status === "RUNNING");
      world.run(1_000);
      const leader = world.leaderOf(job);
      const away = what === "leads it" ? leader : (leader + 1) % 3;
      const here = (away + 1) % 3;
      world.cut(away, true);
      world.run(15_000);
      world.end(job);
      const calls = world.calls();
      const kept = runJobs(world, 2, "other", here).slice(-1);
      const others = world.calls() - calls;
      world.run(LOOKS_MS);
      expect(runsOf(world, here)).toEqual(kept);
      expect(runsOf(world, away)).toEqual([job]);
      world.cut(away, false);
      world.run(15_000 + LOOKS_MS);
      for (const index of [0, 1, 2]) {
        const runs = runsOf(world, index).filter((one) => one === job);
        expect(runs).toEqual([]);
      }
      expect(world.calls()).toBe(calls + others);
      expect(messagesAbout(world, job, 30_000)).toBe(0);
    },
  );
});

describe("the scan for forgotten jobs", () => {
  const JOB = "dc1-1-m0-0";

  function scanner(): {
    readonly state: DatacenterState;
    readonly forgotten: ForgottenRuns;
    readonly context: ManagerContext;
    scan(atMs: number): string | null;
    submit(): void;
  } {
    const state = new DatacenterState();
    const datacenter = "dc/dc1" as GroupId;
    const context = contextOf({
      find: (name) =>
        name === datacenter ? { application: state, primary: null, isBehind: false } : null,
      names: () => [datacenter, runGroup(JOB)],
    });
    const forgotten = new ForgottenRuns(context, () => undefined);
    return {
      ...{ state, forgotten, context },
      scan: (atMs) => {
        context.setTime(millis(atMs), atMs);
        forgotten.onTick();
        const [asked] = context.takeEffects().filter((one) => one.kind === "propose");
        return asked?.kind === "propose" && asked.request.kind === "propose"
          ? asked.request.eventId
          : null;
      },
      submit: () => void state.apply(submitted(JOB)),
    };
  }

  function submitted(job: string): {
    seq: number;
    view: number;
    eventId: string;
    data: Uint8Array;
  } {
    const needs = { cores: 1, usefulCores: 1, timeoutMs: null };
    const words = { key: job, name: "n", takenBy: "m0", digest: "d", createdAt: 1 };
    const submission = new Uint8Array(1);
    const data = encodeDatacenterEntry({ kind: "submit", job, ...words, needs, submission });
    return { seq: 0, view: 1, eventId: job, data };
  }

  it("removes a group whose job is missing behind its own entry, and no other", () => {
    const { context, forgotten, scan } = scanner();
    const eventId = scan(1);
    if (eventId === null) throw new Error("nothing was proposed");
    forgotten.onApplied("another");
    expect(context.takeEffects()).toEqual([]);
    forgotten.onApplied(eventId);
    const groups = [runGroup(JOB)];
    const by = context.datacenterGroup;
    expect(context.takeEffects()).toContainEqual({ kind: "forget", groups, by });
  });

  it("keeps a group whose admission this manager had not received", () => {
    const { context, forgotten, scan, submit } = scanner();
    const eventId = scan(1);
    if (eventId === null) throw new Error("nothing was proposed");
    submit();
    forgotten.onApplied(eventId);
    expect(context.takeEffects()).toEqual([]);
    expect(scan(20_000)).toBeNull();
  });

  it("waits for its entry, and retries when a snapshot replaced it", () => {
    const { context, forgotten, scan } = scanner();
    const first = scan(1);
    expect(scan(20_000)).toBeNull();
    const answer = {
      ...{ kind: "committed", jobId: "", seq: 0, duplicate: false, outcome: "rejected" },
      ...{ reason: "UNKNOWN_JOB", level: "LOCAL", view: 1, hlc: null },
    };
    context.proposals.onAnswer(1, answer as never);
    context.proposals.runCallbacks();
    const second = scan(40_000);
    expect([second === null, second === first]).toEqual([false, false]);
    forgotten.onApplied(second ?? "");
    expect(context.takeEffects().map(({ kind }) => kind)).toContain("forget");
  });

  it("resolves for workers what became of unknown jobs", () => {
    const { forgotten, scan, submit } = scanner();
    submit();
    expect([forgotten.has(JOB), forgotten.has("old")]).toEqual([false, false]);
    const eventId = scan(1);
    forgotten.onApplied(eventId ?? "");
    expect([forgotten.has(JOB), forgotten.has("old")]).toEqual([false, true]);
  });

  it("lets a group begin only where its job is known or still to come", () => {
    const { state, submit } = scanner();
    const peek =
      (tail: readonly Uint8Array[]): GroupPeek =>
      () => ({ application: state, tail });
    expect(mayRun(JOB, () => null)).toBe(false);
    expect(mayRun(JOB, peek([submitted("other").data, new Uint8Array(3)]))).toBe(false);
    expect(mayRun(JOB, peek([submitted(JOB).data]))).toBe(true);
    submit();
    expect(mayRun(JOB, peek([]))).toBe(true);
  });
});
