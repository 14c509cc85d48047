import { describe, expect, it } from "vitest";
import type { Series } from "../../core/load/results/model.ts";
import { sumErrors, sumTimelines, timelineOf } from "./timeline.ts";

function series(windowMs: number, at: number[], requests: number[]): Series {
  const p = requests.map((count) => (count === 0 ? null : count));
  return {
    windowMs,
    atSeconds: at,
    requests,
    failed: requests.map((count) => Math.floor(count / 10)),
    p50: p,
    p95: p,
    p99: p,
  };
}

describe("a series as a chart needs it", () => {
  it("is empty where windows are missing", () => {
    const timeline = timelineOf(series(100, [0.1, 0.2, 0.5], [10, 20, 30]));
    expect(timeline.atSeconds).toEqual([0.1, 0.2, 0.3, 0.4, 0.5]);
    expect(timeline.ratePerSecond).toEqual([100, 200, 0, 0, 300]);
    expect(timeline.failedPerSecond).toEqual([10, 20, 0, 0, 30]);
    expect(timeline.p95).toEqual([10, 20, null, null, 30]);
  });

  it("adds steps on the widest of their windows", () => {
    const fine = series(100, [0, 0.1, 0.2, 0.3], [1, 2, 3, 4]);
    const coarse = series(200, [0, 0.2], [10, 20]);
    const total = sumTimelines([fine, coarse]);
    expect(total.windowMs).toBe(200);
    expect(total.ratePerSecond).toEqual([65, 135]);
    const errors = { reset: [1, 0, 0, 2] };
    expect(sumErrors([{ ...fine, errors }, coarse], total)).toEqual(new Map([["reset", [5, 10]]]));
  });

  it("ends with the measured time, and not before a stall at its end", () => {
    const late = { ...series(100, [0, 0.1, 0.2], [5, 5, 0]), p50: [1, 1, 900] };
    expect(sumTimelines([late]).ratePerSecond).toEqual([50, 50]);
    const longer = series(100, [0, 0.1, 0.2, 0.3, 0.4], [5, 5, 0, 0, 0]);
    const gaps = { ...longer, p50: [1, 1, 900, null, 950] };
    expect(sumTimelines([gaps]).ratePerSecond).toEqual([50, 50]);
    const stalled = series(100, [0, 0.1, 0.2], [5, 5, 0]);
    expect(sumTimelines([stalled]).ratePerSecond).toEqual([50, 50, 0]);
  });

  it("is empty for a step that never ran, and bounded for a damaged one", () => {
    expect(timelineOf(series(100, [], [])).atSeconds).toEqual([]);
    expect(sumTimelines([]).ratePerSecond).toEqual([]);
    expect(timelineOf(series(100, [0, 1e9], [1, 1])).atSeconds.length).toBeLessThanOrEqual(20_000);
  });
});
