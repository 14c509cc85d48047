import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { COARSE_CELLS, CoarseCells, coarseMiddle, coarseOf } from "./coarse.ts";
import { CELLS_PER_PAGE, cellOf, PAGES_MAX } from "./histogram.ts";
import { Series, WINDOWS_MAX } from "./series.ts";

describe("coarse cells", () => {
  it("report a value at most 1.6 % off, over the whole range", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 3_000_000_000 }), (value) => {
        const middle = coarseMiddle(coarseOf(cellOf(value)));
        expect(Math.abs(middle / value - 1)).toBeLessThan(0.0165);
      }),
    );
  });

  it("ascend with the fine cells and stay inside their number", () => {
    let previous = 0;
    for (let cell = 0; cell < PAGES_MAX * CELLS_PER_PAGE; cell += 7) {
      const coarse = coarseOf(cell);
      expect(coarse).toBeGreaterThanOrEqual(previous);
      previous = coarse;
    }
    expect(coarseOf(PAGES_MAX * CELLS_PER_PAGE - 1)).toBeLessThan(COARSE_CELLS);
  });

  it("count what is added, in whatever order, and merge", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(COARSE_CELLS - 1)), fc.nat(20), (cells, split) => {
        const [whole, left, right] = [new CoarseCells(), new CoarseCells(), new CoarseCells()];
        for (const [at, cell] of cells.entries()) {
          whole.add(cell, 1);
          (at < split ? left : right).add(cell, 1);
        }
        left.addAll(right);
        expect(left.total).toBe(cells.length);
        for (const fraction of [0, 0.5, 0.95, 1]) {
          expect(left.quantileMs(fraction)).toBe(whole.quantileMs(fraction));
        }
        const sorted = cells.toSorted((a, b) => a - b);
        const middle = sorted[Math.max(0, Math.ceil(sorted.length / 2) - 1)];
        const expected = middle === undefined ? null : coarseMiddle(middle) / 1_000;
        expect(whole.quantileMs(0.5)).toBe(expected);
      }),
    );
  });
});

function fill(
  series: Series,
  fromMs: number,
  toMs: number,
  perWindow: number,
  latencyUs: number,
): void {
  for (let ms = fromMs; ms < toMs; ms += 100) {
    series.at(ms).addRequests(perWindow, 1);
    series.addLatency(cellOf(latencyUs), perWindow);
  }
}

describe("a series", () => {
  it("keeps 100 ms windows while they fit, with gaps as zero and no latency", () => {
    const series = new Series();
    fill(series, 500, 700, 10, 1_000);
    fill(series, 900, 1_000, 4, 2_000);
    const summary = series.toSummary();
    expect(summary.windowMs).toBe(100);
    expect(summary.atSeconds).toEqual([0.5, 0.6, 0.7, 0.8, 0.9]);
    expect(summary.requests).toEqual([10, 10, 0, 0, 4]);
    expect(summary.failed).toEqual([1, 1, 0, 0, 1]);
    expect(summary.p50.map((ms) => (ms === null ? null : Math.round(ms)))).toEqual([
      1,
      1,
      null,
      null,
      2,
    ]);
  });

  it("folds neighbours when there are too many, and loses nothing", () => {
    const series = new Series();
    fill(series, 0, 200_000, 3, 5_000);
    const summary = series.toSummary();
    expect(summary.windowMs).toBe(400);
    expect(summary.requests.length).toBeLessThanOrEqual(WINDOWS_MAX);
    expect(summary.requests.reduce((sum, n) => sum + n, 0)).toBe(6_000);
    expect(new Set(summary.requests)).toEqual(new Set([12]));
    expect(series.toSummary()).toEqual(summary);
  });

  it("stays bounded and exact in its counts for any order of times", () => {
    const event = fc.record({ ms: fc.nat(400_000), requests: fc.nat(5) });
    fc.assert(
      fc.property(fc.array(event, { maxLength: 60 }), (events) => {
        const series = new Series();
        for (const { ms, requests } of events) {
          series.at(ms).addRequests(requests, 0);
          series.addLatency(cellOf(ms), requests);
        }
        const { requests, atSeconds, windowMs } = series.toSummary();
        expect(requests.length).toBeLessThanOrEqual(WINDOWS_MAX);
        const total = events.reduce((sum, one) => sum + one.requests, 0);
        expect(requests.reduce((sum, n) => sum + n, 0)).toBe(total);
        for (const [at, count] of requests.entries()) {
          const start = (atSeconds[at] ?? 0) * 1_000;
          const inside = events.filter(
            ({ ms }) => ms >= start - 1e-6 && ms < start + windowMs - 1e-6,
          );
          expect(count).toBe(inside.reduce((sum, one) => sum + one.requests, 0));
        }
      }),
    );
  });

  it("tells the recent rate and latencies, and silence as zero", () => {
    const series = new Series();
    fill(series, 0, 5_000, 10, 1_000);
    fill(series, 5_000, 6_000, 50, 9_000);
    expect(series.recent(1_000)).toMatchObject({
      requests: 500,
      ratePerSecond: 500,
      failedPerSecond: 10,
    });
    expect(series.recent(1_000).p50).toBeCloseTo(9, 0);
    expect(series.recent(2_000)).toMatchObject({ ratePerSecond: 300 });
    expect(series.recent(1_000, 60_000)).toMatchObject({
      requests: 0,
      ratePerSecond: 0,
      p99: null,
    });
    expect(series.recentQuantileMs(0.1, 6_000)).toBeCloseTo(1, 1);
    // No more time than there was: the mean of 6 s, not of 10.
    expect(series.recent(10_000).ratePerSecond).toBeCloseTo(1_000 / 6, 6);
  });

  it("answers for long spans from the folded past", () => {
    const series = new Series();
    fill(series, 0, 300_000, 10, 1_000);
    const { ratePerSecond, requests } = series.recent(60_000);
    expect(Math.abs(ratePerSecond - 100)).toBeLessThan(2);
    expect(Math.abs(requests - 6_000)).toBeLessThan(150);
  });

  it("begins anew when cleared", () => {
    const series = new Series();
    fill(series, 0, 100_000, 10, 1_000);
    series.clear();
    expect(series.toSummary()).toMatchObject({ windowMs: 100, requests: [] });
    expect(series.recent(1_000)).toMatchObject({ requests: 0, p50: null });
  });
});
