/** The arithmetic of the report's charts, compared with the raw samples. */

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { moved } from "../../web/shared/charts.ts";
import { clockAt } from "../../web/shared/clock.ts";
import {
  heatMapOf,
  percentileLine,
  type Range,
  rangeCounts,
  snapRange,
  stretchOf,
  sumTracks,
  trackOf,
} from "../../web/shared/tracks.ts";
import { measuredStep, rawQuantile } from "./measured-step.ts";

const run = measuredStep("tracks", 60, 400);
const track = trackOf(run.windows);

describe("ranges of response times", () => {
  it.each([
    [0, 60],
    [37, 41],
  ] as Range[])("from %d s to %d s hold each success once, where its raw sample is", (from, to) => {
    const bounds = [5, 20, 80];
    const raw = run.samples.filter(({ atSeconds }) => atSeconds >= from && atSeconds < to);
    const { failed } = stretchOf(track, [from, to]);
    const counts = rangeCounts(track, [from, to], bounds);
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(raw.length - failed.count);
    // Only samples in a cell that a bound cuts may be on its other side.
    const near = (ms: number) => bounds.some((bound) => Math.abs(ms - bound) / bound < 0.001);
    const doubtful = raw.filter(({ us }) => near(us / 1_000)).length;
    bounds.forEach((bound, at) => {
      const below = raw.filter(({ failed: bad, us }) => !bad && us / 1_000 <= bound).length;
      const counted = counts.slice(0, at + 1).reduce((sum, count) => sum + count, 0);
      expect(Math.abs(counted - below)).toBeLessThanOrEqual(doubtful);
    });
  });
});

describe("a stretch of time", () => {
  it.each([
    [0, 60],
    [10, 20],
    [37, 41],
    [59, 60],
  ] as Range[])(
    "from %d s to %d s has the percentiles of its raw samples to 0.1 percent",
    (from, to) => {
      const { all, failed } = stretchOf(track, [from, to]);
      const raw = run.samples.filter(({ atSeconds }) => atSeconds >= from && atSeconds < to);
      const latencies = raw.map(({ us }) => us / 1_000);
      expect(all.count).toBe(raw.length);
      for (const [figure, fraction] of [
        ["p50", 0.5],
        ["p95", 0.95],
        ["p99", 0.99],
        ["p99_9", 0.999],
      ] as const) {
        const exact = rawQuantile(latencies, fraction);
        expect(Math.abs(all[figure] - exact) / exact).toBeLessThan(0.001);
      }
      expect(failed.count).toBe(raw.filter((sample) => sample.failed).length);
    },
  );

  it("is moved to whole windows", () => {
    expect(snapRange(track, [10.4, 19.2])).toEqual([10, 20]);
    expect(snapRange(track, [10, 20])).toEqual([10, 20]);
  });

  it("of several steps is all of their calls", () => {
    const other = measuredStep("other", 60, 90);
    const both = stretchOf(sumTracks([track, trackOf(other.windows)]), [5, 25]).all;
    const raw = [...run.samples, ...other.samples]
      .filter(({ atSeconds }) => atSeconds >= 5 && atSeconds < 25)
      .map(({ us }) => us / 1_000);
    expect(both.count).toBe(raw.length);
    const exact = rawQuantile(raw, 0.99);
    expect(Math.abs(both.p99 - exact) / exact).toBeLessThan(0.001);
  });
});

describe("the heat map", () => {
  it("has every call in exactly one band of its column", () => {
    const { columns } = heatMapOf(track);
    const sums = columns.map((column) => column.reduce((sum, count) => sum + count, 0));
    expect(sums).toEqual(track.latency.map(({ total }) => total));
    expect(sums.reduce((sum, count) => sum + count, 0)).toBe(run.samples.length);
  });

  it("is true for any latencies", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(60_000_000), { minLength: 1, maxLength: 50 }), (latencies) => {
        const upToMs = [...new Set(latencies)].sort((a, b) => a - b).map((us) => us / 1_000);
        const histogram = { upToMs, count: upToMs.map(() => 2) };
        const one = trackOf({ windowMs: 1_000, atSeconds: [0], histograms: [histogram] });
        const sum = heatMapOf(one).columns[0]?.reduce((all, count) => all + count, 0);
        expect(sum).toBe(2 * upToMs.length);
      }),
    );
  });
});

describe("a percentile over time", () => {
  it("is of at least as many values as it needs: p95 of 20, p99 of 100", () => {
    const rare = measuredStep("rare", 60, 30);
    const thin = trackOf(rare.windows);
    const p99 = percentileLine(thin, "p99");
    // Thirty a second: stretches of four windows, each with one value.
    const stretches = p99.filter((value, at) => value !== p99[at - 1]).length;
    expect(stretches).toBeLessThanOrEqual(15);
    expect(p99.every((value) => value !== null)).toBe(true);
    expect(new Set(percentileLine(thin, "p50")).size).toBeGreaterThan(30);
  });

  it("is left out where there are never enough values, and does not bridge a gap", () => {
    const histogram = { upToMs: [1], count: [60] };
    const apart = trackOf({
      windowMs: 1_000,
      atSeconds: [0, 9],
      histograms: [histogram, histogram],
    });
    expect(percentileLine(apart, "p99")).toEqual([null, null]);
    const side = trackOf({
      windowMs: 1_000,
      atSeconds: [0, 1],
      histograms: [histogram, histogram],
    });
    expect(percentileLine(side, "p99").every((value) => value !== null)).toBe(true);
  });
});

describe("stretches of windows that begin at half a second", () => {
  const halves = { ...track, starts: [0.5, 1.5, 2.5, 3.5, 4.5, 5.5], windowSeconds: 1 };
  const charts = {
    ...{ full: [0.5, 6.5] as Range, range: [0.5, 3.5] as Range, windowSeconds: 1 },
    ...{ setRange: () => {}, scale: "linear" as const, events: [] },
  };

  it("are printed with their fraction", () => {
    expect([clockAt(0.5, 1), clockAt(3.5, 1), clockAt(4, 1)]).toEqual(["0:00.5", "0:03.5", "0:04"]);
  });

  it("keep their width when they are moved", () => {
    const later = moved(charts, 0.5);
    expect(later === null ? null : snapRange(halves, later)).toEqual([2.5, 5.5]);
    expect(moved({ ...charts, range: [2.5, 5.5] }, -0.5)).toEqual([0.5, 3.5]);
  });
});
