/** OTLP output as read by an independent decoder. */

import { describe, expect, it } from "vitest";
import { syntheticRun } from "../../core/load/results/testing/synthetic-run.ts";
import { FrameBuilder, summaryFrame } from "../frame.ts";
import type { WorkflowPhase } from "../reporter.ts";
import { readOtlp } from "../testing/otlp-reader.ts";
import { otlpRequest } from "./otlp.ts";
import { SPANS_MAX, spansRequest } from "./otlp-spans.ts";

interface Attribute {
  readonly key: string;
  readonly value: { readonly stringValue: string };
}

interface HistogramPoint {
  readonly attributes: readonly Attribute[];
  readonly count: string;
  readonly sum: number;
  readonly scale: number;
  readonly zeroCount: string;
  readonly positive: { readonly offset: number; readonly bucketCounts: readonly string[] };
}

interface ReadMetrics {
  readonly resourceMetrics: readonly [
    {
      readonly scopeMetrics: readonly [
        {
          readonly metrics: readonly {
            readonly name: string;
            readonly unit: string;
            readonly sum?: { readonly dataPoints: readonly { readonly asDouble: number }[] };
            readonly exponentialHistogram?: { readonly dataPoints: readonly HistogramPoint[] };
          }[];
        },
      ];
    },
  ];
}

interface ReadSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly name: string;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly events: readonly { readonly name: string }[];
  readonly status: { readonly code: number; readonly message: string };
}

const run = syntheticRun({ seed: "otlp", seconds: 10, rate: 0.5 });
const beganMs = Date.parse(run.startedAt);
const frame = new FrameBuilder().next(run, beganMs + 10_000, null);

/** Computed as a reader of the protocol does: the upper end of the bucket that the rank falls into. */
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

describe("metrics", () => {
  const json = otlpRequest(frame, frame.points);
  const [{ scopeMetrics }] = (readOtlp("Metrics", json) as ReadMetrics).resourceMetrics;
  const [{ metrics }] = scopeMetrics;

  it("return the percentiles of the summary within a bucket, as exponential histograms", () => {
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

  it("of the summary decode, too", () => {
    const end = summaryFrame(run);
    expect(() => readOtlp("Metrics", otlpRequest(end, end.points))).not.toThrow();
  });

  it("are rejected with an unknown field", () => {
    expect(() => readOtlp("Metrics", json.replace('"bucketCounts"', '"buckets"'))).toThrow(
      "is not in the schema",
    );
  });
});

describe("spans", () => {
  const [first] = run.workflows;
  const name = first?.name ?? "";
  const phase = (
    what: WorkflowPhase["name"],
    fromMs: number,
    toMs: number,
    more: Partial<WorkflowPhase> = {},
  ): WorkflowPhase => ({
    ...{ workflow: name, name: what, fromMs: beganMs + fromMs, toMs: beganMs + toMs },
    ...{ problem: null, stages: [], ...more },
  });
  const stage = { name: "stage at 10", fromMs: beganMs + 200, toMs: beganMs + 9_000 };
  const phases = [
    phase("prepare", 0, 100),
    phase("set-up", 100, 200),
    phase("load", 200, 9_000, { stages: [stage] }),
    phase("tear-down", 9_000, 9_500, { problem: "it broke" }),
    phase("load", 0, 5, { workflow: "another" }),
  ];
  const read = (given: readonly WorkflowPhase[]): readonly ReadSpan[] => {
    const { body } = spansRequest(run, { run: "nightly" }, given);
    const all = readOtlp("Trace", JSON.stringify(body)) as {
      readonly resourceSpans: readonly [
        { readonly scopeSpans: readonly [{ readonly spans: readonly ReadSpan[] }] },
      ];
    };
    return all.resourceSpans[0].scopeSpans[0].spans;
  };
  const spans = read(phases);
  const named = (wanted: string): ReadSpan => {
    const found = spans.find((span) => span.name === wanted);
    if (found === undefined) throw new Error(`there is a span "${wanted}"`);
    return found;
  };

  it("form one trace: the run above its workflows, and workflows above their phases", () => {
    expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1);
    expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(spans.length);
    const workflow = named(`workflow ${name}`);
    expect(named("run").parentSpanId).toBe("");
    expect(workflow.parentSpanId).toBe(named("run").spanId);
    for (const what of ["prepare", "set-up", "tear-down"])
      expect(named(what).parentSpanId).toBe(workflow.spanId);
    expect(named("stage at 10").parentSpanId).toBe(named("load").spanId);
    expect(named("workflow another").parentSpanId).toBe(named("run").spanId);
  });

  it("have the measured times, each within its parent", () => {
    expect(named("set-up").startTimeUnixNano).toBe(`${beganMs + 100}000000`);
    expect(named("set-up").endTimeUnixNano).toBe(`${beganMs + 200}000000`);
    const byId = new Map(spans.map((span) => [span.spanId, span]));
    for (const span of spans) {
      const parent = byId.get(span.parentSpanId);
      expect(BigInt(span.endTimeUnixNano)).toBeGreaterThanOrEqual(BigInt(span.startTimeUnixNano));
      if (parent === undefined) continue;
      expect(BigInt(span.startTimeUnixNano)).toBeGreaterThanOrEqual(
        BigInt(parent.startTimeUnixNano),
      );
      expect(BigInt(span.endTimeUnixNano)).toBeLessThanOrEqual(BigInt(parent.endTimeUnixNano));
    }
  });

  it("report failures", () => {
    expect(named("tear-down").status).toEqual({ code: 2, message: "it broke" });
    expect(named("set-up").status.code).toBe(1);
  });

  it("form the same trace when a run is sent again", () => {
    expect(read(phases)).toEqual(spans);
  });

  it("of a job name what its gates did with it", () => {
    const changes = [{ at: run.startedAt, by: "gate-1", what: "dispatched" }];
    const cluster = { jobId: "job-1", split: [], datacenters: [], changes };
    const { body } = spansRequest({ ...run, cluster }, {}, []);
    expect(JSON.stringify(readOtlp("Trace", JSON.stringify(body)))).toContain('"dispatched"');
  });

  it("of a job show its path through the gates below the run, despite clock skew", () => {
    const way = [
      ["submitted", 0],
      ["dispatched", 10],
      ["dispatched", 20],
      ["accepted: eu", 500],
      ["accepted: us", 700],
      ["started", 650],
      ["datacenter ended: eu", 9_000],
      ["datacenter ended: us", 9_400],
      ["ended", 9_450],
    ] as const;
    const changes = way.map(([what, ms]) => ({
      ...{ what, by: "g1", at: new Date(beganMs + ms).toISOString() },
    }));
    const cluster = { jobId: "job-1", split: [], datacenters: [], changes };
    const { body } = spansRequest({ ...run, cluster }, {}, []);
    const text = JSON.stringify(body);
    const all = readOtlp("Trace", text) as {
      readonly resourceSpans: readonly [
        { readonly scopeSpans: readonly [{ readonly spans: readonly ReadSpan[] }] },
      ];
    };
    const [whole, ...rest] = all.resourceSpans[0].scopeSpans[0].spans;
    const times = rest
      .filter(({ name: one }) => !one.startsWith("workflow"))
      .map(({ endTimeUnixNano, name: one, parentSpanId, startTimeUnixNano }) => {
        const ms = (nanos: string): number => Number(BigInt(nanos) / 1_000_000n) - beganMs;
        return [one, ms(startTimeUnixNano), ms(endTimeUnixNano), parentSpanId === whole?.spanId];
      });
    expect(times).toEqual([
      ["queue", 0, 20, true],
      ["dispatch", 10, 700, true],
      ["begin", 500, 650, true],
      ["run in datacenters", 650, 9_400, true],
      ["merge", 9_400, 9_450, true],
    ]);
  });

  it("are bounded, and dropped ones are counted", () => {
    const stages = Array.from({ length: SPANS_MAX }, () => stage);
    const { leftOut, spans: sent } = spansRequest(run, {}, [phase("load", 0, 1, { stages })]);
    expect(sent).toBe(SPANS_MAX);
    expect(leftOut).toBeGreaterThan(0);
  });
});
