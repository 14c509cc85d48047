import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Series } from "../core/load/results/model.ts";
import { logTicks } from "../core/load/results/ticks.ts";
import { logRange, peakColumns, rateColumns, timeSpan } from "./series.ts";

function seriesOf(
  windowMs: number,
  requests: readonly number[],
  p99: readonly (number | null)[] = [],
): Series {
  return {
    windowMs,
    atSeconds: requests.map((_, index) => (index * windowMs) / 1_000),
    requests,
    failed: requests.map(() => 0),
    p50: [],
    p95: [],
    p99,
  };
}

describe("rates per column", () => {
  it("add up to the requests made, whatever the widths of windows and columns", () => {
    fc.assert(
      fc.property(
        fc.array(fc.nat(1_000), { minLength: 1, maxLength: 80 }),
        fc.constantFrom(100, 200, 1_600),
        fc.integer({ min: 1, max: 120 }),
        (requests, windowMs, columns) => {
          const seconds = (requests.length * windowMs) / 1_000;
          const rates = rateColumns(
            [seriesOf(windowMs, requests)],
            columns,
            seconds,
            seconds + 1,
          ).requests;
          const total = rates.reduce((sum, rate) => sum + rate * (seconds / columns), 0);
          expect(total).toBeCloseTo(
            requests.reduce((a, b) => a + b, 0),
            3,
          );
        },
      ),
    );
  });

  it("exclude the window that is still filling, so that the end is no drop", () => {
    const series = seriesOf(100, [100, 100, 100, 7]);
    const rates = rateColumns([series], 4, 0.4, 0.32).requests;
    expect([...rates].map((rate) => Math.round(rate))).toEqual([1_000, 1_000, 1_000, Number.NaN]);
  });

  it("add up over steps and stay unknown where nothing has happened yet", () => {
    const rates = rateColumns(
      [seriesOf(1_000, [10, 20]), seriesOf(1_000, [1, 2])],
      4,
      4,
      2,
    ).requests;
    expect([...rates]).toEqual([11, 22, Number.NaN, Number.NaN]);
  });
});

describe("percentiles per column", () => {
  it("show the highest window, and nothing where nothing was measured", () => {
    const series = seriesOf(100, [1, 1, 1, 1], [5, 9, null, null]);
    expect([...peakColumns(series, series.p99, 2, 0.4)]).toEqual([9, Number.NaN]);
  });
});

describe("axes", () => {
  it.each([
    [0, null, 10],
    [10, null, 10],
    [10.1, null, 20],
    [12, 15, 15],
    [40, 30, 60],
    [7_201, null, 14_400],
  ])("after %d s of %s the time axis ends at %d s", (elapsed, total, end) => {
    expect(timeSpan(elapsed, total)).toBe(end);
  });

  it("includes all values on a logarithmic axis, which spans a decade and has at least two labels", () => {
    const value = fc.double({ min: 0.001, max: 1e7, noNaN: true });
    fc.assert(
      fc.property(value, value, (a, b) => {
        const [low, high] = logRange(Math.min(a, b), Math.max(a, b));
        expect(low).toBeLessThanOrEqual(Math.min(a, b) * 1.001);
        expect(high).toBeGreaterThanOrEqual(Math.max(a, b) * 0.999);
        expect(high / low).toBeGreaterThanOrEqual(9.99);
        expect(logTicks(low, high, 2).length).toBeGreaterThanOrEqual(2);
      }),
    );
  });
});
