import { describe, expect, it } from "vitest";
import { millis } from "../../base/brand.ts";
import { manifest } from "../../load/job/testing/manifest.ts";
import type { ExtensionAnswer } from "../extension-messages.ts";
import type { RelayedCommand, RelayedEvent } from "../messages.ts";
import { LoadProgress } from "./load-progress.ts";

const GRANTED: ExtensionAnswer = {
  ...{ granted: true, extensionMs: 15_000, deadlineMs: 25_000, remaining: 4 },
  ...{ denial: "", message: "", isWarning: false, graceMs: 0 },
};
const PREPARE = {
  ...{ kind: "prepare", execution: 7, workflow: "flow", context: {} },
  share: { index: 0, count: 1, users: [1] },
} as const satisfies RelayedCommand;
const FRAME: RelayedEvent = {
  ...{ kind: "frame", execution: 7, part: null, bytes: new Uint8Array() },
  health: { cpu: 0, residentBytes: 0, activeUsers: 1 },
};

/** One execution of 100 s, started at 0. */
function started(): LoadProgress {
  const progress = new LoadProgress();
  const load = { kind: "vus", stages: [{ durationMs: 100_000, from: 1, to: 1 }] } as const;
  const manifests = [{ ...manifest("flow"), load }];
  progress.onEvent(1, { kind: "loaded", manifests }, millis(0));
  progress.onCommand(1, PREPARE, millis(0));
  expect(progress.askAt).toBe(Number.POSITIVE_INFINITY);
  progress.onCommand(1, { kind: "start", execution: 7, setup: null, planMs: 0 }, millis(0));
  return progress;
}

describe("load progress of a worker (AD-26.1)", () => {
  it("requests no extension while frames arrive, and counts each second of an execution once", () => {
    const progress = started();
    for (let at = 0; at < 60_000; at += 100) progress.onEvent(1, FRAME, millis(at));
    expect(progress.report).toEqual({ running: 1, advance: 60 });
    expect(progress.askAt).toBe(59_900 + 20_000);
  });

  it("requests an extension after 20 s without a frame, with the last reported progress", () => {
    const progress = started();
    progress.onEvent(1, FRAME, millis(40_000));
    expect(progress.askAt).toBe(60_000);
    expect(progress.ask(millis(60_000))).toEqual({
      ...{ number: 1, running: 1 },
      ...{ reason: "long_workflow", progress: 0.4, estimatedMs: 60_000 },
    });
  });

  it("reports the mean progress of its executions, each as last reported by its core (C10-32)", () => {
    const progress = started();
    const load = { kind: "vus", stages: [{ durationMs: 200_000, from: 1, to: 1 }] } as const;
    const manifests = [{ ...manifest("flow"), load }];
    progress.onEvent(2, { kind: "loaded", manifests }, millis(0));
    progress.onCommand(2, { ...PREPARE, execution: 8 }, millis(0));
    progress.onCommand(2, { kind: "start", execution: 8, setup: null, planMs: 0 }, millis(0));
    progress.onEvent(1, FRAME, millis(50_000));
    progress.onEvent(2, { ...FRAME, execution: 8 }, millis(60_000));
    // 50 of 100 s and 60 of 200 s: time since the last frame does not count.
    const asked = progress.ask(millis(80_000));
    expect([asked.running, asked.progress]).toEqual([2, (0.5 + 0.3) / 2]);
  });

  it("has nothing running after an execution that was prepared twice has finished (T3)", () => {
    const progress = started();
    progress.onCommand(1, PREPARE, millis(100));
    progress.onCommand(1, { kind: "start", execution: 7, setup: null, planMs: 0 }, millis(200));
    const nothing = { provided: {}, notes: [], counts: [], faults: [] };
    progress.onEvent(1, { kind: "finished", execution: 7, ...nothing }, millis(300));
    expect(progress.report.running).toBe(0);
    expect(progress.askAt).toBe(Number.POSITIVE_INFINITY);
  });

  it("repeats an unanswered request under the same number", () => {
    const progress = started();
    expect(progress.ask(millis(20_000)).number).toBe(1);
    expect(progress.askAt).toBe(21_000);
    expect(progress.ask(millis(21_000)).number).toBe(1);
  });

  it("asks again before the first of the granted extensions ends", () => {
    const progress = started();
    progress.ask(millis(20_000));
    progress.answered(1, GRANTED, millis(20_010));
    expect(progress.askAt).toBe(20_010 + 17_500);
    progress.answered(1, { ...GRANTED, deadlineMs: 20_000 }, millis(20_020));
    expect(progress.askAt).toBe(20_020 + 12_500);
    expect(progress.ask(millis(33_000)).number).toBe(2);
    progress.answered(1, GRANTED, millis(33_010));
    expect(progress.askAt).toBe(34_000);
  });

  it("stays silent after a denial until something advances", () => {
    const progress = started();
    progress.ask(millis(20_000));
    progress.answered(1, { ...GRANTED, granted: false, denial: "no_progress" }, millis(20_010));
    expect(progress.askAt).toBe(Number.POSITIVE_INFINITY);
    progress.onEvent(1, FRAME, millis(26_000));
    expect(progress.askAt).toBe(46_000);
  });

  it("reports resource contention when its timers fire late", () => {
    const progress = started();
    progress.onLate(5_000, millis(15_000));
    expect(progress.ask(millis(20_000)).reason).toBe("resource_contention");
  });

  it.each(["finished", "gone"])("requests nothing when its execution is %s", (how) => {
    const progress = started();
    const end = { provided: {}, notes: [], counts: [], faults: [] };
    if (how === "gone") progress.onGone(1);
    else progress.onEvent(1, { kind: "finished", execution: 7, ...end }, millis(1_000));
    expect(progress.askAt).toBe(Number.POSITIVE_INFINITY);
    expect(progress.report.running).toBe(0);
  });
});
