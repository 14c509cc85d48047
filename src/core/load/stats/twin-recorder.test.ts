import { describe, expect, it } from "vitest";
import { Random } from "../../base/random.ts";
import { Histogram } from "./histogram.ts";
import { TrackedHistogram } from "./tracked-histogram.ts";
import { TwinRecorder } from "./twin-recorder.ts";

function cellsOf(histogram: Histogram): [number, number][] {
  const cells: [number, number][] = [];
  histogram.forEachCell((cell, count) => cells.push([cell, count]));
  return cells;
}

describe("TwinRecorder", () => {
  it("fills each histogram as its own values would have, and returns the window of the first", () => {
    const random = new Random("twins");
    const twins = new TwinRecorder();
    const tracked = [new TrackedHistogram(), new TrackedHistogram()] as const;
    const expected = [new Histogram(), new Histogram()] as const;
    for (let frame = 1; frame <= 5; frame++) {
      const window = new Histogram();
      for (let i = 0; i < 500; i++) {
        const first = random.float() * 10 ** random.below(8);
        const second = random.pick([first, first, first * 0.7, first + 1, -1]);
        twins.record(first, second);
        expected[0].record(first);
        window.record(first);
        if (second >= 0) expected[1].record(second);
      }
      const cells = twins.fold(...tracked, frame);
      expect([...cells.cells()].map((cell, at) => [cell, cells.counts()[at]])).toEqual(
        cellsOf(window),
      );
    }
    for (const at of [0, 1] as const) {
      const { histogram } = tracked[at];
      expect(cellsOf(histogram)).toEqual(cellsOf(expected[at]));
      expect([histogram.count, histogram.min, histogram.max]).toEqual([
        expected[at].count,
        expected[at].min,
        expected[at].max,
      ]);
      expect(histogram.sum).toBeCloseTo(expected[at].sum, 3);
    }
  });

  it("folds nothing into the second histogram without a second value", () => {
    const twins = new TwinRecorder();
    const [first, second] = [new TrackedHistogram(), new TrackedHistogram()];
    twins.record(5, -1);
    twins.fold(first, second, 1);
    twins.fold(first, second, 2);
    expect([first.histogram.count, second.histogram.count]).toEqual([1, 0]);
    expect([first.changedIn, second.changedIn]).toEqual([1, 0]);
  });
});
