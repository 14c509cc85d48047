import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Random } from "../../base/random.ts";
import { CELLS_MAX, cellOf, Histogram } from "./histogram.ts";
import { recentLatency, recentRates, summariseSeries } from "./series.ts";
import { SparseCells } from "./sparse-cells.ts";
import { WINDOWS_MAX, WindowStore } from "./window-store.ts";
import { STEP_RULES, type StepWindow, stepWindow } from "./windows.ts";

const secondsAt = (ms: number): number => ms / 1_000;
const KINDS = ["reset", "timeout"];
const newStore = (): WindowStore<StepWindow> => new WindowStore(STEP_RULES);

function cells(latenciesUs: readonly number[]): SparseCells {
  const counts = new Map<number, number>();
  for (const us of latenciesUs) counts.set(cellOf(us), (counts.get(cellOf(us)) ?? 0) + 1);
  const sorted = [...counts].sort(([a], [b]) => a - b);
  return SparseCells.of(
    sorted.map(([cell]) => cell),
    sorted.map(([, count]) => count),
  );
}

function content(calls: number, failed: number, latencyUs: number): StepWindow {
  return stepWindow(
    { calls, failed },
    [0, failed],
    cells(new Array(calls).fill(latencyUs)),
    SparseCells.EMPTY,
  );
}

function fill(
  store: WindowStore<StepWindow>,
  fromMs: number,
  toMs: number,
  calls: number,
  latencyUs: number,
): void {
  for (let startMs = fromMs; startMs < toMs; startMs += 100)
    store.add({ startMs, widthMs: 100, content: content(calls, 1, latencyUs) });
}

describe("sparse cells", () => {
  it("count as far as they can, and never into the next cell", () => {
    const most = SparseCells.of([7, CELLS_MAX - 1], [2 ** 40, 2 ** 36]);
    const both = most.plus(most);
    expect([...both.cells()]).toEqual([7, CELLS_MAX - 1]);
    expect([...both.counts()]).toEqual([2 ** 37 - 1, 2 ** 37 - 1]);
  });

  const values = fc.array(fc.nat(5_000_000), { maxLength: 60 });

  it("add up to the histogram of all values, with its percentiles", () => {
    fc.assert(
      fc.property(values, values, (some, more) => {
        const both = cells(some).plus(cells(more));
        const histogram = new Histogram();
        for (const us of [...some, ...more]) histogram.record(us);
        expect(both.total).toBe(histogram.count);
        both.cells().forEach((cell, at) => {
          expect(both.counts()[at]).toBe(histogram.countOfCell(cell));
        });
        const p95 = both.quantile(0.95);
        if (p95 === null) expect(histogram.count).toBe(0);
        else expect(Math.abs(p95 - histogram.quantile(0.95))).toBeLessThanOrEqual(p95 / 1_000 + 1);
      }),
    );
  });

  it("can be subtracted from each other, and equal those of a histogram", () => {
    fc.assert(
      fc.property(values, values, values, (some, more, rest) => {
        const histogram = new Histogram();
        for (const us of [...some, ...more, ...rest]) histogram.record(us);
        const all = SparseCells.ofHistogram(histogram);
        const parts = [some, more, rest].map(cells);
        const sum = SparseCells.sum(parts);
        expect([...all.cells()]).toEqual([...sum.cells()]);
        expect([...all.counts()]).toEqual([...sum.counts()]);
        const left = all.minus(cells(more)).minus(cells(rest));
        expect([...left.cells()]).toEqual([...cells(some).cells()]);
        expect([...left.counts()]).toEqual([...cells(some).counts()]);
        const fractions = [0.1, 0.5, 0.95, 1];
        const one = fractions.map((fraction) => all.quantile(fraction));
        expect(all.quantiles(fractions)).toEqual(one.filter((found) => found !== null));
        expect(SparseCells.quantilesOfSum(parts, fractions)).toEqual(all.quantiles(fractions));
      }),
    );
  });
});

const LATE_BETWEEN = [
  { at: 2, calls: 2, kinds: [], latencyUs: 1, looked: false },
  { at: 0, calls: 20, kinds: [], latencyUs: 0, looked: false },
  { at: 8, calls: 20, kinds: [], latencyUs: 0, looked: true },
  { at: 1200, calls: 6, kinds: [], latencyUs: 0, looked: false },
  { at: 16, calls: 14, kinds: [], latencyUs: 0, looked: false },
];

const EMPTY_WINDOW = { calls: 0, kinds: [], latencyUs: 0 };
const AGAIN_AFTER_LOOK = [
  { ...EMPTY_WINDOW, at: 709, looked: false },
  { ...EMPTY_WINDOW, at: 110, looked: true },
  { ...EMPTY_WINDOW, at: 709, looked: false },
];

describe("windows over time", () => {
  it("are the same whether read while they arrive or once", () => {
    const window = fc.record({
      at: fc.nat(1_300),
      calls: fc.nat(30),
      kinds: fc.array(fc.nat(2), { maxLength: 2 }),
      latencyUs: fc.nat(1_000_000),
      looked: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(window, { maxLength: 60 }), (windows) => {
        const [watched, unseen] = [newStore(), newStore()];
        for (const { at, calls, kinds, latencyUs, looked } of windows) {
          const latency = cells(new Array(calls).fill(latencyUs));
          const content = stepWindow({ calls }, kinds, latency, SparseCells.EMPTY);
          for (const store of [watched, unseen])
            store.add({ startMs: at * 100, widthMs: 100, content });
          if (looked) summariseSeries(watched, secondsAt, KINDS);
        }
        const once = summariseSeries(unseen, secondsAt, KINDS);
        expect(summariseSeries(watched, secondsAt, KINDS)).toEqual(once);
        // Parts that are not summed yet count individually.
        for (const store of [watched, unseen]) store.list();
        expect(watched.bytes).toBe(unseen.bytes);
      }),
      // A late window between others, which end at the same empty one as before; one that arrives again after a read.
      { examples: [[LATE_BETWEEN], [AGAIN_AFTER_LOOK]] },
    );
  });

  it("are 100 ms wide while they fit, with gaps as zero and without latency", () => {
    const store = newStore();
    fill(store, 500, 700, 10, 1_000);
    fill(store, 900, 1_000, 4, 2_000);
    const summary = summariseSeries(store, secondsAt, KINDS);
    expect(summary.windowMs).toBe(100);
    expect(summary.atSeconds).toEqual([0.5, 0.6, 0.7, 0.8, 0.9]);
    expect(summary.requests).toEqual([10, 10, 0, 0, 4]);
    expect(summary.failed).toEqual([1, 1, 0, 0, 1]);
    expect(summary.p50).toEqual([1, 1, null, null, 2]);
    expect(summary.errors).toEqual({ timeout: [1, 1, 0, 0, 1] });
  });

  it("are folded when there are too many, and lose nothing", () => {
    const store = newStore();
    fill(store, 0, 200_000, 3, 5_000);
    const summary = summariseSeries(store, secondsAt, KINDS);
    expect(summary.windowMs).toBe(400);
    expect(summary.requests.length).toBeLessThanOrEqual(WINDOWS_MAX);
    expect(summary.requests.reduce((sum, n) => sum + n, 0)).toBe(6_000);
    expect(new Set(summary.requests)).toEqual(new Set([12]));
  });

  it("stay bounded and exact in their counts for any order of times", () => {
    const event = fc.record({ window: fc.nat(4_000), calls: fc.nat(5) });
    fc.assert(
      fc.property(fc.array(event, { maxLength: 60 }), fc.nat(3), (events, shrinks) => {
        const store = newStore();
        for (const { calls, window } of events)
          store.add({ startMs: window * 100, widthMs: 100, content: content(calls, 0, window) });
        for (let i = 0; i < shrinks; i++) store.shrink();
        const { requests, atSeconds, windowMs } = summariseSeries(store, secondsAt, KINDS);
        expect(requests.length).toBeLessThanOrEqual(WINDOWS_MAX);
        const total = events.reduce((sum, one) => sum + one.calls, 0);
        expect(requests.reduce((sum, n) => sum + n, 0)).toBe(total);
        for (const [at, count] of requests.entries()) {
          const start = (atSeconds[at] ?? 0) * 1_000;
          const inside = events.filter(
            ({ window }) => window * 100 >= start - 1e-6 && window * 100 < start + windowMs - 1e-6,
          );
          expect(count).toBe(inside.reduce((sum, one) => sum + one.calls, 0));
        }
        // Sent again from the start, each window once, whatever its width.
        const listed = store.list().reduce((sum, one) => sum + one.content.calls, 0);
        expect(listed).toBe(total);
        expect(store.bytes).toBeGreaterThanOrEqual(0);
      }),
    );
  });

  it("of 24 hours stay bounded, each exact, and the last minute fine (AD-23.1, AD-23.5)", () => {
    const store = newStore();
    const random = new Random("24 hours");
    /** Counted separately, independent of folding. */
    const perStretch = new Map<number, number>();
    const [dayMs, stepMs, foldedMs] = [24 * 3_600_000, 500, 204_800];
    let bytesMax = 0;
    for (let startMs = 0; startMs < dayMs; startMs += stepMs) {
      const calls = 25 + random.below(51);
      const latency = SparseCells.of([cellOf(1_000 + random.below(4) * 1_000)], [calls]);
      const window = stepWindow({ calls, requests: calls }, [], latency, SparseCells.EMPTY);
      store.add({ startMs, widthMs: 100, content: window });
      const stretch = Math.floor(startMs / foldedMs);
      perStretch.set(stretch, (perStretch.get(stretch) ?? 0) + calls);
      // The store is full after the first minute, and must not grow from then on.
      if (startMs > 120_000) bytesMax = Math.max(bytesMax, store.bytes);
    }
    expect(store.widthMs).toBe(foldedMs);
    const folded = store.folded();
    expect(folded.length).toBeLessThanOrEqual(WINDOWS_MAX);
    expect(folded.map(({ content: { calls } }) => calls)).toEqual([...perStretch.values()]);
    for (const { content } of folded) expect(content.latency.total).toBe(content.calls);
    const hot = store.list(dayMs - 60_000);
    expect(hot.map(({ widthMs }) => widthMs)).toEqual(new Array(120).fill(100));
    expect(bytesMax).toBeLessThan(1_000_000);
  });

  it("release memory down to one window, and lose no call", () => {
    const store = newStore();
    fill(store, 0, 100_000, 2, 1_000);
    const before = store.bytes;
    while (store.shrink());
    expect(store.bytes).toBeLessThan(before / 20);
    expect(store.folded().map((one) => one.content.calls)).toEqual([2_000]);
  });

  it("report the recent rate and latencies, and silence as zero", () => {
    const store = newStore();
    fill(store, 0, 5_000, 10, 1_000);
    fill(store, 5_000, 6_000, 50, 9_000);
    expect(recentRates(store, 1_000, 6_000)).toEqual({ ratePerSecond: 500, failedPerSecond: 10 });
    expect(recentLatency(store, 1_000, 6_000)[0]).toBeCloseTo(9, 1);
    expect(recentRates(store, 2_000, 6_000)).toMatchObject({ ratePerSecond: 300 });
    expect(recentRates(store, 1_000, 60_000)).toMatchObject({ ratePerSecond: 0 });
    expect(recentLatency(store, 1_000, 60_000)).toEqual([null, null, null]);
    // No more time than has passed: the mean of 6 s, not of 10.
    expect(recentRates(store, 10_000, 6_000).ratePerSecond).toBeCloseTo(1_000 / 6, 6);
  });
});

describe("percentiles for charts", () => {
  it("need 20 values for p95 and 100 for p99: a dozen have neither", () => {
    const store = newStore();
    for (let at = 0; at < 40; at++)
      store.add({ startMs: at * 100, widthMs: 100, content: content(12, 0, 1_000 * (at + 1)) });
    const { p95, p99, steady } = summariseSeries(store, secondsAt, KINDS);
    // Window by window both are the longest of twelve.
    expect(p95).toEqual(p99);
    expect(new Set(p95).size).toBe(40);
    expect(new Set(steady.p95).size).toBe(20);
    expect(new Set(steady.p99).size).toBe(4);
    expect(steady.p99.every((value) => value !== null)).toBe(true);
  });

  it("are absent with fewer values in total", () => {
    const store = newStore();
    fill(store, 0, 500, 3, 1_000);
    const { steady } = summariseSeries(store, secondsAt, KINDS);
    expect(steady).toEqual({ p95: Array(5).fill(null), p99: Array(5).fill(null) });
  });
});
