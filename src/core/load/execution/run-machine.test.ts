/** Timeouts of a run for cores that do not answer, by a clock that the test controls. */

import { expect, it } from "vitest";
import type { CoreEvent } from "../job/core-messages.ts";
import type { WorkflowManifest } from "../job/manifest.ts";
import { manifest } from "../job/testing/manifest.ts";
import { RunAggregate } from "../results/run-aggregate.ts";
import { StatsRecorder } from "../stats/stats-recorder.ts";
import { Agreement } from "./agreement.ts";
import { type RunInput, RunMachine } from "./run-machine.ts";

const HOUR_MS = 3_600_000;

/** A run on one or more cores that has begun to generate load, with its effects since. */
class LoadingRun {
  readonly machine: RunMachine;
  readonly asked: string[] = [];
  now = 1_000;

  constructor({
    limited = true,
    timeoutMs = null as number | null,
    prepared = true,
    joint = undefined as WorkflowManifest["joint"],
    cores: slots = [0] as readonly number[],
  } = {}) {
    const load = {
      kind: "vus",
      stages: [{ durationMs: HOUR_MS, from: slots.length, to: slots.length }],
    } as const;
    const manifests = [manifest("shop", joint === undefined ? { load } : { load, joint })];
    const environment = { hyperscale: "", node: "", platform: "", cpuModel: "", command: "" };
    const aggregate = new RunAggregate({
      ...{ runId: "run", name: "shop.ts", tags: {}, manifests, thresholds: [], errorKinds: [] },
      environment: { ...environment, cpus: 1, cores: 1 },
      ...{ abortAfterMs: null, startedAt: "2024-01-11T00:00:00.000Z" },
    });
    const agreement = new Agreement(manifests);
    const cores = { slots, pool: slots.length };
    const beganAt = this.now;
    this.machine = new RunMachine({
      ...{ manifests, aggregate, cores, agreement, timeoutMs, limited, beganAt },
    });
    this.take({ kind: "start" });
    if (!prepared) return;
    for (const core of slots) this.say({ kind: "prepared", execution: 0 }, core);
    this.say({ kind: "setupDone", execution: 0, value: undefined });
  }

  take(input: RunInput): void {
    for (const effect of this.machine.step(input, this.now))
      this.asked.push(effect.kind === "send" ? effect.command.kind : effect.kind);
  }

  say(event: CoreEvent, core = 0): void {
    this.take({ kind: "event", core, event });
  }

  /** Advances time as a driver would: a tick at every deadline. */
  pass(ms: number): void {
    const until = this.now + ms;
    for (;;) {
      const deadline = this.machine.nextDeadline();
      if (deadline === null || deadline > until) break;
      this.now = deadline;
      this.take({ kind: "tick" });
    }
    this.now = until;
  }
}

it("gives up a core after half a minute of silence, and not one that reports", () => {
  const run = new LoadingRun();
  expect(run.asked).toContain("start");
  run.pass(20_000);
  run.say({ kind: "log", line: "still here", isComplaint: false });
  run.pass(29_000);
  expect(run.asked).not.toContain("kill");
  run.pass(2_000);
  expect(run.asked).toContain("kill");
});

it("counts the silence of a core from its start, however long it waited before", () => {
  const run = new LoadingRun({ joint: "first" });
  run.pass(40_000);
  expect(run.asked).not.toContain("start");
  run.take({ kind: "joint", word: { kind: "begin", workflow: "shop", value: null, inMs: 0 } });
  expect(run.asked).toContain("start");
  run.pass(29_000);
  expect(run.asked).not.toContain("kill");
  run.pass(2_000);
  expect(run.asked).toContain("kill");
});

it("gives up no core under a debugger, whatever limit has passed: it may be at a breakpoint", () => {
  const run = new LoadingRun({ limited: false, timeoutMs: 60_000 });
  run.pass(10 * 60_000);
  run.take({ kind: "control", control: { kind: "stop" } });
  run.pass(10 * 60_000);
  expect(run.asked).toContain("stop");
  expect(run.asked).not.toContain("kill");
});

it("does not count its own stall as the silence of a core", () => {
  const run = new LoadingRun();
  run.pass(2_000);
  // Ctrl-Z, and a minute later fg: the timer fires before the cores' output is read.
  run.now += 60_000;
  run.take({ kind: "tick" });
  run.pass(29_000);
  expect(run.asked).not.toContain("kill");
  run.pass(2_000);
  expect(run.asked).toContain("kill");
});

it("computes live metrics twice a second and again for reporters; changing values each time", () => {
  const run = new LoadingRun();
  const [first, soon] = [run.machine.live(run.now), run.machine.live(run.now + 200)];
  expect(soon.summary).toBe(first.summary);
  expect(soon.workflows[0]?.steps).toBe(first.workflows[0]?.steps);
  expect(soon.elapsedSeconds - first.elapsedSeconds).toBeCloseTo(0.2);
  const progress = run.machine.progress(run.now + 200);
  expect(progress.summary).not.toBe(first.summary);
  // A view at that time shows the same as the reporters.
  expect(run.machine.live(run.now + 699).summary).toBe(progress.summary);
  const later = run.machine.live(run.now + 700);
  expect(later.summary).not.toBe(progress.summary);
  expect(later.summary.durationSeconds).toBeCloseTo(first.summary.durationSeconds + 0.7);
});

it("reports a throwing setup as a result, and code that could not run as a mistake", () => {
  const problem = { message: "no", location: null, mistake: true };
  const unprepared = new LoadingRun({ prepared: false });
  unprepared.say({ kind: "failed", execution: 0, problem });
  expect(unprepared.machine.mistake).toEqual(problem);
  const threw = new LoadingRun({ prepared: false });
  threw.say({ kind: "prepared", execution: 0 });
  threw.say({ kind: "failed", execution: 0, problem });
  expect(threw.machine.mistake).toBeUndefined();
  expect(threw.machine.summary().workflows).toMatchObject([{ status: "failed", error: "no" }]);
});

it("counts seconds from the start time in its results", () => {
  const run = new LoadingRun({ prepared: false });
  run.now += 300;
  run.say({ kind: "prepared", execution: 0 });
  run.say({ kind: "setupDone", execution: 0, value: undefined });
  const { startedAt, workflows } = run.machine.summary();
  expect(startedAt).toBe("2024-01-11T00:00:00.300Z");
  expect(workflows).toMatchObject([{ startedAtSeconds: 0 }]);
});

it("advances with every finished call and every tick of the plan, and not by itself (AD-34.8)", () => {
  const run = new LoadingRun();
  const recorder = new StatsRecorder({ errorKinds: 0, corrected: false });
  const home = recorder.stepNumber("home", "http");
  const frame = (measuredMs: number): void => {
    const moment = { measuredMs, warmingUp: false, target: 1, arrivalsWaiting: 0 };
    const bytes = recorder.frame(moment, false);
    const health = { cpu: 0.1, residentBytes: 1, activeUsers: 1 };
    run.say({ kind: "frame", execution: 0, part: null, bytes, health });
  };
  const seal = (window: number): void =>
    recorder.seal(window, { users: 1, target: 1, cpuMs: 1, lagMsMax: 0 });
  recorder.begin(0);
  expect(run.machine.advance).toBe(0);
  // A tick without a call.
  seal(1);
  frame(100);
  const moved = run.machine.advance;
  expect(moved).toBeGreaterThan(0);
  // The core reports and time passes, but nothing has advanced.
  run.now += 5_000;
  frame(100);
  run.say({ kind: "log", line: "still here", isComplaint: false });
  expect(run.machine.advance).toBe(moved);
  // A call within the same tick.
  recorder.step(home).record(-1, 200, 1_000, 1_000, -1, -1, -1, 3, 4);
  recorder.counts.completed++;
  seal(2);
  frame(100);
  expect(run.machine.advance).toBe(moved + 1);
});

it("counts the merged metrics of a worker's cores, also when the first of them is lost", () => {
  const run = new LoadingRun({ cores: [0, 1] });
  run.take({ kind: "coreLost", core: 0, what: "core 0 was lost", worker: "w1", figures: null });
  const recorder = new StatsRecorder({ errorKinds: 0, corrected: false });
  const moment = { measuredMs: 1_000, warmingUp: false, target: 1, arrivalsWaiting: 0 };
  const health = { cpu: 0, residentBytes: 0, activeUsers: 1 };
  const own = recorder.frame(moment, true);
  const cores = [0, 1].map((core) => ({ core, requests: 9, health, heard: core > 0, own }));
  const bytes = recorder.frame(moment, true);
  const asked = run.asked.length;
  run.take({ kind: "figures", from: "w1", figures: { execution: 0, part: null, bytes, cores } });
  expect(run.asked.slice(asked)).toEqual(["acknowledge"]);
});

it("counts no core as lost whose setup was stopped and had to be killed", () => {
  const run = new LoadingRun({ prepared: false });
  run.say({ kind: "prepared", execution: 0 });
  expect(run.asked).toContain("setup");
  run.take({ kind: "control", control: { kind: "stop" } });
  run.pass(HOUR_MS);
  expect(run.asked).toContain("kill");
  run.take({ kind: "coreLost", core: 0, what: "executor core 0 was killed" });
  expect(run.asked.at(-1)).toBe("done");
  expect(run.machine.live(run.now).summary.lost).toEqual([]);
});

it("counts a core as lost whose setup ends before the run was stopped", () => {
  const run = new LoadingRun({ prepared: false });
  run.say({ kind: "prepared", execution: 0 });
  run.take({ kind: "coreLost", core: 0, what: "executor core 0 is gone" });
  expect(run.machine.live(run.now).summary.lost).toHaveLength(1);
});
