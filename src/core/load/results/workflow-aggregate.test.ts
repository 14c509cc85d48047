/** Frames of several cores are merged into one workflow by name, whatever the numbers. */

import { expect, it } from "vitest";
import { Recorder } from "../../../engine/recorder.ts";
import { recorderHost } from "../../../engine/testing/recorder-host.ts";
import { type CallRecord, ERROR_KINDS } from "../../../protocols/protocol.ts";
import { manifest } from "../job/testing/manifest.ts";
import { WorkflowAggregate } from "./workflow-aggregate.ts";

const MOMENT = { measuredMs: 1_000, warmingUp: false, target: 0, arrivalsWaiting: 0 };
const VITALS = { cpu: 0, residentBytes: 0, activeUsers: 0 };

function core(): Recorder {
  const recorder = new Recorder(false, recorderHost());
  recorder.measureFrom(0);
  return recorder;
}

function call(recorder: Recorder, name: string, tags: Record<string, string> = {}): void {
  const times = { startedAt: 0, endedAt: 10, firstByteAt: 5, connectMs: -1, tlsMs: -1 };
  const record: CallRecord = { errorKind: null, status: 200, ...times, bytesIn: 1, bytesOut: 1 };
  recorder.call(recorder.stepNumber(name, "http", tags), record, 0, 0, 10);
}

let now = 0;

function send(recorder: Recorder, to: WorkflowAggregate, from: number): boolean {
  now += 100;
  const { held, sound } = to.frame(from, recorder.frame(MOMENT, now, "window"), VITALS, now);
  recorder.acknowledged(held);
  return sound;
}

it("merges steps, checks and groups by name when cores saw them in different orders", () => {
  const known = { name: "home", kind: "step", protocol: "http", after: [], layer: 0, tags: {} };
  const workflow = new WorkflowAggregate(
    manifest("w", { steps: [{ ...known, kind: "step" }], checks: ["fine"] }),
    ERROR_KINDS,
  );
  const [one, two] = [core(), core()];
  call(one, "pay");
  one.check(one.checkNumber("late"), false, 0);
  call(two, "search");
  call(two, "pay");
  expect(send(one, workflow, 0) && send(two, workflow, 1)).toBe(true);
  // Known names are not repeated.
  call(one, "search");
  call(one, "pay", { size: "big" });
  two.check(two.checkNumber("fine"), true, 0);
  two.check(two.checkNumber("late"), true, 0);
  two.group(two.groupNumber("cart"), true, 0, 0, 7, 0);
  expect(send(one, workflow, 0) && send(two, workflow, 1)).toBe(true);
  const { checks, groups, namesOverflowed, steps } = workflow.data();
  expect(steps.map(({ name, tags, totals }) => [name, tags, totals.requests])).toEqual([
    ["home", {}, 0],
    ["pay", {}, 2],
    ["search", {}, 2],
    ["pay", { size: "big" }, 1],
  ]);
  expect(checks).toEqual([
    { name: "fine", passed: 1, failed: 0 },
    { name: "late", passed: 1, failed: 1 },
  ]);
  expect(groups.find(({ name }) => name === "cart")?.totals).toMatchObject({ ok: 0, failed: 1 });
  expect(namesOverflowed).toBe(false);
});

it("applies a load change between two frames from that time on", () => {
  const load = { kind: "rate", stages: [{ durationMs: 10_000, from: 100, to: 100 }] } as const;
  const workflow = new WorkflowAggregate(
    manifest("w", { load: { ...load, vusMax: 10, poisson: false }, corrected: true }),
    ERROR_KINDS,
  );
  workflow.started([0], 0);
  const recorder = core();
  const frame = (measuredMs: number): void => {
    const bytes = recorder.frame({ ...MOMENT, measuredMs }, measuredMs, "window");
    recorder.acknowledged(workflow.frame(0, bytes, VITALS, measuredMs).held);
  };
  frame(1_000);
  workflow.loadChanged(3, 1_090);
  expect(workflow.plannedArrivals).toBeCloseTo(100);
  frame(2_000);
  expect(workflow.plannedArrivals).toBeCloseTo(109 + 3 * 91);
});
