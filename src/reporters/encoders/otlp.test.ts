import { expect, it } from "vitest";
import { syntheticRun } from "../../core/run/results/testing/synthetic-run.ts";
import { FrameBuilder } from "../frame.ts";
import { otlpRequest } from "./otlp.ts";

interface HistogramPoint {
  readonly attributes: readonly { readonly key: string; readonly value: { stringValue: string } }[];
  readonly count: string;
  readonly scale: number;
  readonly zeroCount: string;
  readonly positive: { readonly offset: number; readonly bucketCounts: readonly string[] };
}

const run = syntheticRun({ seed: "otlp", seconds: 10, rate: 0.5 });
const frame = new FrameBuilder().next(run, Date.parse(run.startedAt) + 10_000, null);
const request = otlpRequest(frame, frame.points) as {
  resourceMetrics: [{ scopeMetrics: [{ metrics: { name: string }[] }] }];
};
const metrics = request.resourceMetrics[0].scopeMetrics[0].metrics as {
  readonly name: string;
  readonly exponentialHistogram?: { readonly dataPoints: readonly HistogramPoint[] };
}[];

/** As a reader of the protocol finds it: the upper end of the bucket that the rank falls into. */
function quantile(point: HistogramPoint, fraction: number): number {
  const base = 2 ** (2 ** -point.scale);
  const rank = Math.ceil(fraction * Number(point.count));
  let seen = Number(point.zeroCount);
  for (const [at, count] of point.positive.bucketCounts.entries()) {
    seen += Number(count);
    if (seen >= rank) return base ** (point.positive.offset + at + 1);
  }
  return Number.NaN;
}

it("exponential histograms give back the percentiles of the summary within a bucket", () => {
  const width = 2 ** (1 / 16) * 1.001;
  for (const { name, steps } of run.workflows)
    for (const step of steps) {
      const point = metrics
        .filter((metric) => metric.name === "hyperscale.step.latency")
        .flatMap(({ exponentialHistogram }) => exponentialHistogram?.dataPoints ?? [])
        .find(({ attributes }) => {
          const labels = Object.fromEntries(
            attributes.map(({ key, value }) => [key, value.stringValue]),
          );
          return labels["step"] === step.name && labels["workflow"] === name;
        });
      if (point === undefined) throw new Error(`${step.name} has a histogram`);
      expect(Number(point.count)).toBe(step.latencyMs.count);
      for (const [fraction, figure] of [
        [0.5, "p50"],
        [0.95, "p95"],
        [0.99, "p99"],
      ] as const) {
        const ratio = quantile(point, fraction) / (step.latencyMs[figure] / 1_000);
        expect(ratio).toBeGreaterThan(1 / width);
        expect(ratio).toBeLessThan(width);
      }
    }
});
