import { describe, expect, it } from "vitest";
import type { StepSummary } from "../core/load/results/model.ts";
import { syntheticRun } from "../core/load/results/testing/synthetic-run.ts";
import type { SparseCells } from "../core/load/stats/sparse-cells.ts";
import { cellsOf } from "./cells.ts";
import { FrameBuilder, summaryFrame } from "./frame.ts";
import type { Frame, Point } from "./reporter.ts";

const [early, late] = [5, 20].map((seconds) => syntheticRun({ seed: "frames", seconds }));
if (early === undefined || late === undefined) throw new Error("there are two runs");

function find(frame: Frame, scope: Point["scope"], figure: string, step?: string): Point {
  const found = frame.points.find(
    (point) => point.scope === scope && point.figure === figure && point.labels["step"] === step,
  );
  if (found === undefined) throw new Error(`no ${scope} ${figure}`);
  return found;
}

describe("a frame", () => {
  it("has totals and increments of counters", () => {
    const frames = new FrameBuilder();
    const first = find(frames.next(early, 1_000, null), "step", "requests", "search");
    const second = find(frames.next(late, 2_000, null), "step", "requests", "search");
    const [before, after] = [early, late].map((run) => run.workflows[0]?.steps[1]?.requests ?? 0);
    expect(first).toMatchObject({ kind: "counter", total: before, increment: before });
    expect(second).toMatchObject({ total: after, increment: (after ?? 0) - (before ?? 0) });
  });

  it("has the latencies of its own interval, and those since the beginning", () => {
    const frames = new FrameBuilder();
    frames.next(early, 1_000, null);
    const again = find(frames.next(early, 2_000, null), "step", "latency_ms", "pay");
    if (again.kind !== "distribution") throw new Error("latencies are a distribution");
    const pay = early.workflows[1]?.steps[2];
    expect(again.figures.count).toBe(0);
    expect(again.total?.cells.total).toBe(pay?.latencyMs.count);
  });

  it("has the percentiles of the summary in its first interval, to a cell's width", () => {
    const frame = new FrameBuilder().next(late, 1_000, null);
    for (const { name, steps } of late.workflows)
      for (const step of steps) {
        const point = frame.points.find(
          ({ figure, labels }) =>
            figure === "latency_ms" && labels["step"] === step.name && labels["workflow"] === name,
        );
        if (point?.kind !== "distribution") throw new Error("latencies are a distribution");
        for (const figure of ["p50", "p95", "p99"] as const)
          expect(point.figures[figure] / step.latencyMs[figure]).toBeCloseTo(1, 2);
      }
  });

  it("is the same whether latencies arrive in windows or as counts", () => {
    const known = new Map<StepSummary, SparseCells>();
    const workflows = late.workflows.map((workflow) => ({
      ...workflow,
      steps: workflow.steps.map(({ windows, ...step }) => {
        known.set(step, cellsOf(windows?.histograms ?? []));
        return step;
      }),
    }));
    const bare = { ...late, workflows };
    const counted = { summary: bare, workflows: [], latencies: known };
    const withWindows = { summary: late, workflows: [] };
    const [one, other] = [new FrameBuilder(), new FrameBuilder()];
    expect(other.next(bare, 1_000, counted)).toEqual(one.next(late, 1_000, withWindows));
  });

  it("is always later than the previous one, whatever the clock says", () => {
    const frames = new FrameBuilder();
    const began = Date.parse(early.startedAt);
    const times = [began + 5_000, began + 5_000, began + 4_000].map(
      (atMs) => frames.next(early, atMs, null).atMs,
    );
    expect(times).toEqual([began + 5_000, began + 5_001, began + 5_002]);
  });

  it("carries the name and tags of the run", () => {
    const { labels } = new FrameBuilder().next(early, 1_000, null);
    expect(labels).toEqual({ run: "spring sale", run_id: early.runId, branch: "main" });
  });

  it("drops and counts series beyond 2,000", () => {
    const many = syntheticRun({ seed: "many", seconds: 1, rate: 0.1, copies: 40 });
    const frame = summaryFrame(many);
    expect(frame.points).toHaveLength(2_000);
    expect(frame.leftOut).toBeGreaterThan(0);
    // The run, its workflows and metrics come before single steps, and the outcome first of all.
    const all = many.workflows.flatMap(({ metrics }) => metrics);
    const metrics = frame.points.filter(({ scope }) => scope === "metric");
    expect(new Set(metrics.map(({ labels }) => JSON.stringify(labels))).size).toBe(all.length);
    expect(frame.points.filter(({ scope }) => scope === "workflow").length).toBeGreaterThan(10);
    expect(find(frame, "run", "passed")).toMatchObject({ value: 0 });
  });

  it("keeps tags from replacing our labels", () => {
    const [workflow] = late.workflows;
    if (workflow === undefined) throw new Error("there is a workflow");
    const tags = { run_id: "fake", step: "fake", run: "fake", error: "fake", area: "shop" };
    const steps = workflow.steps.map((step) => ({ ...step, tags }));
    const frame = summaryFrame({ ...late, tags, workflows: [{ ...workflow, steps }] });
    expect(frame.labels).toEqual({ run: "spring sale", run_id: late.runId, area: "shop" });
    for (const { labels, scope } of frame.points) {
      expect(JSON.stringify(labels)).not.toContain("fake");
      if (scope === "step") expect(labels).toMatchObject({ area: "shop" });
    }
  });
});

describe("the frame of a summary", () => {
  it("has every metric as the summary has it", () => {
    const frame = summaryFrame(late);
    const search = late.workflows[0]?.steps[1];
    const service = find(frame, "step", "service_ms", "search");
    expect(service).toMatchObject({ kind: "distribution", figures: search?.serviceMs });
    expect(find(frame, "step", "bytes_in", "search")).toMatchObject({ total: search?.bytesIn });
    expect(find(frame, "run", "requests")).toMatchObject({ total: late.totals?.requests });
    expect(find(frame, "run", "passed")).toMatchObject({ value: 0 });
  });

  it("has the metrics of workflows beside their steps, and each threshold", () => {
    const [first] = late.workflows;
    const one = first?.steps[0]?.latencyMs;
    if (first === undefined || one === undefined) throw new Error("there is a workflow");
    const group = { name: "checkout/pay", ok: 7, failed: 2, durationMs: one, activeMs: one };
    const arrivals = { targetPerSecond: 5, achievedPerSecond: 4, started: 9, missed: 1 };
    const workflow = { ...first, groups: [group], arrivals: { ...arrivals, sendLagMs: one } };
    const frame = summaryFrame({ ...late, workflows: [workflow] });
    const named = frame.points.filter(({ labels }) => labels["group"] === "checkout/pay");
    expect(named.map((point) => (point.kind === "counter" ? point.total : point.figure))).toEqual([
      ...[7, 2, "group_duration_ms", "group_active_ms"],
    ]);
    expect(find(frame, "workflow", "send_lag_ms")).toMatchObject({ figures: one });
    expect(find(frame, "workflow", "arrivals_achieved")).toMatchObject({ value: 4 });
    const judged = frame.points.filter(({ figure }) => figure === "threshold_passed");
    expect(judged.map(({ labels }) => labels["threshold"])).toEqual(
      late.thresholds.map(({ expression }) => expression),
    );
  });
});
