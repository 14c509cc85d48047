/** Recording of calls, by the times they were due, began and ended. */

import { expect, it } from "vitest";
import { FrameMerger } from "../core/load/stats/frame-merger.ts";
import type { StepTotals } from "../core/load/stats/step-stats.ts";
import type { WorkflowStats } from "../core/load/stats/workflow-stats.ts";
import { type CallRecord, ERROR_KINDS, type ErrorKind } from "../protocols/protocol.ts";
import { CustomResult } from "../workflow/custom-result.ts";
import { Iteration } from "./iteration.ts";
import { type FrameOver, Recorder } from "./recorder.ts";
import { recorderHost } from "./testing/recorder-host.ts";

const MOMENT = { measuredMs: 1_000, warmingUp: false, target: 0, arrivalsWaiting: 0 };

/** Measured from second 1 to second 2. */
function recorded(corrected = false) {
  const recorder = new Recorder(corrected, recorderHost(1_000));
  const number = recorder.stepNumber("s", "http");
  recorder.measureFrom(1_000);
  recorder.measureUntil(2_000);
  const stats = (): WorkflowStats => {
    const merger = new FrameMerger({ errorKinds: ERROR_KINDS.length, corrected });
    expect(merger.receive(0, recorder.frame(MOMENT, 3_000, "load")).sound).toBe(true);
    return merger.stats;
  };
  return {
    recorder,
    call(startedAt: number, endedAt: number, errorKind: ErrorKind | null = null, bytesIn = 10) {
      const times = { startedAt, endedAt, firstByteAt: endedAt, connectMs: -1, tlsMs: -1 };
      const record: CallRecord = { errorKind, status: 0, ...times, bytesIn, bytesOut: 1 };
      recorder.call(number, record, startedAt, startedAt, endedAt);
    },
    stats,
    totals: (): StepTotals => stats().step(number),
  };
}

it("assigns calls to the measured time by due time, and to its rate by end", () => {
  const { call, totals } = recorded();
  call(100, 900); //    warm-up, all of it
  call(900, 1_700); //  of the warm-up, but its end makes part of the rate
  call(1_700, 1_900, "status");
  call(1_900, 2_700, "status"); // in the graceful stop: a call like any other, in no rate
  const { failedCount, inside, latency, requests } = totals();
  expect([requests, failedCount]).toEqual([2, 2]);
  expect(inside).toEqual({ calls: 2, failed: 1, bytesIn: 20, bytesOut: 2 });
  expect([latency.count, latency.max]).toEqual([2, 800_000]);
});

it("counts calls that were never sent as failures without latency, and successes apart", () => {
  const { call, recorder, totals } = recorded(true);
  call(1_100, 1_200);
  call(1_100, 1_101, "refused");
  call(1_100, 1_110, "status");
  recorder.exception(0, 1_100, 1_100, "broken");
  const { failedCount, latency, okLatency, requests, service } = totals();
  expect([requests, failedCount]).toEqual([4, 3]);
  expect([latency.count, service.count, latency.min]).toEqual([2, 2, 10_000]);
  expect(okLatency.count).toBe(1);
  expect(okLatency.quantile(0) / 1_000).toBeCloseTo(100, 0);
  expect(okLatency.mean).toBe(100_000);
});

it("puts calls into the window of the measured time that they end in", () => {
  const { call, stats } = recorded();
  call(900, 1_099.9); //  due in the warm-up: of the rate, without a latency
  call(1_000, 1_050);
  call(1_000, 1_100);
  call(1_050, 1_450, "status");
  call(1_950, 2_250); // in the graceful stop: a latency, in no rate
  const windows = stats().windowsOf(0).list();
  expect(
    windows.map(({ content, startMs }) => [startMs, content.calls, content.latency.total]),
  ).toEqual([
    [0, 2, 1],
    [100, 1, 1],
    [400, 1, 1],
    [1_200, 0, 1],
  ]);
  expect(windows[2]?.content).toMatchObject({ failed: 1 });
  expect(windows[2]?.content.kinds[ERROR_KINDS.indexOf("status")]).toBe(1);
});

it("reports iterations, checks, groups and metrics of a frame as far as their calls", () => {
  const { call, recorder } = recorded();
  // Metrics have no due time: theirs is the present, which is measured.
  recorder.measureFrom(0);
  const check = recorder.checkNumber("c");
  const merger = new FrameMerger({ errorKinds: ERROR_KINDS.length, corrected: false });
  const reported = (at: number, over: FrameOver) => {
    merger.receive(0, recorder.frame(MOMENT, at, over));
    const { metrics, stats } = { metrics: merger.stats.metrics.list(), stats: merger.stats };
    return [
      stats.step(0).requests,
      stats.runCount("completed"),
      stats.check(0).counts[0],
      stats.group(0).ok,
      metrics[0]?.count ?? 0,
    ];
  };
  const iterate = (startedAt: number, endedAt: number) => {
    call(startedAt, endedAt);
    recorder.check(check, true, startedAt);
    recorder.counts.completed++;
    recorder.wholeIteration("completed", startedAt, startedAt, endedAt, 0);
    recorder.add("orders", "counter", 1, {});
  };
  iterate(1_000, 1_050);
  expect(reported(1_060, "window")).toEqual([0, 0, 0, 0, 0]);
  expect(reported(1_100, "window")).toEqual([1, 1, 1, 1, 1]);
  // Without acknowledgements every frame is written in full.
  iterate(1_100, 1_150);
  expect(reported(1_160, "window")).toEqual([1, 1, 1, 1, 1]);
  expect(reported(1_160, "load")).toEqual([2, 2, 2, 2, 2]);
});

it("records no first byte for a call that failed before one arrived", () => {
  const { call, totals } = recorded();
  call(1_100, 1_200);
  call(1_100, 1_300, "timeout", 0);
  call(1_100, 1_300, "reset", 10);
  const { firstByte, latency } = totals();
  expect([latency.count, firstByte.count, firstByte.sum]).toEqual([3, 2, 300_000]);
});

it("measures an iteration that timers begin slightly early from its beginning", () => {
  const recorder = new Recorder(true, recorderHost());
  recorder.measureFrom(1_000);
  const iteration = new Iteration(recorder, true);
  iteration.arrive(1_000, 999.5);
  iteration.begin(999.5);
  iteration.end("completed", 999.75);
  const merger = new FrameMerger({ errorKinds: ERROR_KINDS.length, corrected: true });
  merger.receive(0, recorder.frame(MOMENT, 1_100, "load"));
  const { duration } = merger.stats.group(0);
  expect([duration.count, duration.min, duration.max]).toEqual([1, 250, 250]);
});

it("shows in lines of single calls what threw, and what a function called through a client", () => {
  const recorder = new Recorder(false, recorderHost());
  recorder.measureFrom(0);
  recorder.sampleCalls(1, "w");
  const step = recorder.stepNumber("buy", "http");
  recorder.exception(step, 1_000, 1_010, "as planned");
  const result = new CustomResult("x", { startedAt: 1_020, endedAt: 1_030 });
  recorder.entitle(result, "GET https://shop.test/cart");
  recorder.call(step, result, 1_020, 1_020, 1_030);
  const lines = recorder.sampledCalls()?.text.trim().split("\n") ?? [];
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    { step: "buy", ok: false, error: "exception", latency_ms: null, call: "" },
    { step: "buy", ok: true, error: null, latency_ms: 10, call: "GET https://shop.test/cart" },
  ]);
});

it("weights a stall of the event loop by its duration", () => {
  const { recorder, stats } = recorded();
  // Five seconds: four regular ones, one stalled.
  for (let turn = 0; turn < 400; turn++) recorder.lagged(0.5, false);
  recorder.lagged(1_000, true);
  const lag = stats().runHistogram("loopLag");
  expect(lag.count).toBe(501);
  expect(lag.quantile(0.99) / 1_000).toBeGreaterThan(900);
  expect(lag.quantile(0.5) / 1_000).toBeLessThan(1);
  expect(stats().runHistogram("ownLag").count).toBe(101);
});
