import { describe, expect, it } from "vitest";
import { syntheticRun } from "../../core/load/results/testing/synthetic-run.ts";
import { bucketsOf, mergeHistograms, quantileOf, shareAt } from "./quantiles.ts";

const steps = syntheticRun({ seconds: 10 }).workflows.flatMap((workflow) => workflow.steps);

describe("percentiles read from a summary's histogram", () => {
  it("agree with the exact ones to the two digits the histogram has", () => {
    for (const { histogram, latencyMs } of steps) {
      const buckets = bucketsOf(histogram);
      for (const [fraction, exact] of [
        [0.5, latencyMs.p50],
        [0.95, latencyMs.p95],
        [0.99, latencyMs.p99],
      ] as const) {
        expect(Math.abs(quantileOf(buckets, fraction) / exact - 1)).toBeLessThan(0.1);
      }
    }
  });

  it("are inverted by the share below", () => {
    const buckets = bucketsOf({ upToMs: [1, 1.1, 5, 10], count: [10, 0, 50, 40] });
    for (const fraction of [0.05, 0.2, 0.5, 0.61, 0.99]) {
      expect(shareAt(buckets, quantileOf(buckets, fraction))).toBeCloseTo(fraction, 10);
    }
    expect(shareAt(buckets, 3)).toBe(0.1);
    expect(shareAt(buckets, 100)).toBe(1);
    expect(quantileOf(buckets, 2)).toBe(10);
  });

  it("of several steps come from merged counts, not from averages", () => {
    const merged = mergeHistograms(steps.map(({ histogram }) => histogram));
    const total = merged.count.reduce((sum, count) => sum + count, 0);
    expect(total).toBe(steps.reduce((sum, { requests }) => sum + requests, 0));
    expect(merged.upToMs).toEqual(merged.upToMs.toSorted((a, b) => a - b));
    expect(quantileOf(bucketsOf(mergeHistograms([])), 0.5)).toBe(0);
  });
});
