/** Thresholds over a stretch of time are a function of windows: the time of the checks does not matter. */

import fc from "fast-check";
import { expect, it } from "vitest";
import { cellOf, Histogram } from "../stats/histogram.ts";
import { MetricTotals } from "../stats/metrics.ts";
import { SparseCells } from "../stats/sparse-cells.ts";
import { StepTotals } from "../stats/step-stats.ts";
import { WindowStore } from "../stats/window-store.ts";
import { STEP_RULES, type StepWindow, stepWindow } from "../stats/windows.ts";
import { metricSource } from "./metric-source.ts";
import { type MetricSource, ThresholdJudge } from "./threshold-judge.ts";
import { parseThreshold } from "./thresholds.ts";
import type { WorkflowData } from "./workflow-data.ts";

interface WindowCounts {
  readonly calls: number;
  readonly failed: number;
  readonly latencyUs: number;
}

const anyWindow = fc.record({
  calls: fc.integer({ min: 1, max: 20 }),
  failed: fc.integer({ min: 0, max: 1 }),
  latencyUs: fc.integer({ min: 0, max: 500_000 }),
});

function content({ calls, failed, latencyUs }: WindowCounts): StepWindow {
  const cells = SparseCells.of([cellOf(latencyUs)], [calls]);
  return stepWindow({ calls, failed, requests: calls }, [failed], cells, SparseCells.EMPTY);
}

/** State of the workflow when `known` windows are complete. */
function sourceOf(windows: readonly WindowCounts[], known: number, ended: boolean) {
  const store = new WindowStore(STEP_RULES);
  const totals = new StepTotals(1, false);
  for (const [at, one] of windows.slice(0, known).entries()) {
    store.add({ startMs: at * 100, widthMs: 100, content: content(one) });
    totals.tally.counts[0] = totals.ok + one.calls - one.failed;
    totals.failed[0] = (totals.failed[0] ?? 0) + one.failed;
    totals.latency.record(one.latencyUs, one.calls);
  }
  const step = { number: 0, name: "s", protocol: "http", tags: {}, totals, windows: store };
  const data: WorkflowData = {
    name: "w",
    mix: null,
    startedAtSeconds: 0,
    measuredFromSeconds: 0,
    elapsedSeconds: known / 10,
    steps: [step],
    measures: true,
    aside: [],
    checks: [],
    groups: [],
    namesOverflowed: false,
    iterations: 0,
    iterationsInside: 0,
    iterationsInterrupted: 0,
    unanswered: { calls: 0, iterations: 0, iterationsOver: 0, shareMax: null, users: null },
    arrivals: null,
    metrics: new MetricTotals(),
    iterationsMissed: null,
    counters: [],
    ended,
    faults: [],
  };
  return metricSource([data], { cpu: 0, lag: new Histogram() }, ["status"]);
}

function judgeOf(text: string): ThresholdJudge {
  const parsed = parseThreshold(text);
  if (!parsed.ok) throw new Error(parsed.problem);
  return new ThresholdJudge(
    parsed.threshold,
    { expression: text, abortOnFail: true, afterMs: 0 },
    "w",
  );
}

const OVER = 5;

it.each([
  [
    "requests.rate over 500ms > 60/s",
    (part: readonly WindowCounts[]) => sum(part, "calls") / 0.5,
    Math.min,
  ],
  [
    "errors.rate over 500ms < 4%",
    (part: readonly WindowCounts[]) => (100 * sum(part, "failed")) / sum(part, "calls"),
    Math.max,
  ],
])("%s is the worst of all stretches, whenever it was checked", (text, figure, worst) => {
  fc.assert(
    fc.property(
      fc.array(anyWindow, { minLength: OVER, maxLength: 40 }),
      fc.array(fc.nat(40), { maxLength: 20 }),
      (windows, looks) => {
        const judge = judgeOf(text);
        for (const known of looks.toSorted((a, b) => a - b).filter((n) => n < windows.length))
          judge.observe(sourceOf(windows, known, false));
        const { actual } = judge.judge(sourceOf(windows, windows.length, true));
        const stretches = windows
          .slice(OVER - 1)
          .map((_, at) => figure(windows.slice(at, at + OVER)));
        expect(actual).toBeCloseTo(worst(...stretches), 6);
      },
    ),
  );
});

it("uses the percentile of the stretch's own calls, and ends the run when it is complete", () => {
  const quick = { calls: 100, failed: 0, latencyUs: 1_000 };
  const slow = { calls: 100, failed: 0, latencyUs: 800_000 };
  const windows = [...new Array(20).fill(quick), ...new Array(5).fill(slow)];
  const judge = judgeOf("latency.p95 over 500ms < 300ms");
  expect(judge.observe(sourceOf(windows, 20, false))).toBe(false);
  expect(judge.latest).toMatchObject({ holds: true });
  expect(judge.observe(sourceOf(windows, 21, false))).toBe(true);
  expect(judge.judge(sourceOf(windows, 25, true)).actual).toBeCloseTo(800, 0);
});

function sum(part: readonly WindowCounts[], key: "calls" | "failed"): number {
  return part.reduce((all, one) => all + one[key], 0);
}

it("ends stretches at every check, at most a fifth too long, where windows lack the metric", () => {
  const parsed = parseThreshold("orders.count over 1s < 1");
  if (!parsed.ok) throw new Error(parsed.problem);
  const { threshold } = parsed;
  const spec = { expression: "", abortOnFail: false, afterMs: 0 };
  fc.assert(
    fc.property(
      fc.array(fc.nat(9), { minLength: 200, maxLength: 400 }),
      fc.array(fc.integer({ min: 1, max: 10 }), { minLength: 100, maxLength: 100 }),
      (perTenMs, gaps) => {
        /** Orders up to a time, in steps of 10 ms. */
        const upTo = [0];
        for (const count of perTenMs) upTo.push((upTo.at(-1) ?? 0) + count);
        const between = (from: number, to: number) =>
          (upTo[to] ?? 0) - (upTo[Math.max(0, from)] ?? 0);
        const judge = new ThresholdJudge(threshold, spec, null);
        const sourceAt = (at: number): MetricSource => ({
          measuredMs: () => at * 10,
          read: () => {
            const count = upTo[at] ?? 0;
            return { kind: "count", count, inside: count, seconds: at / 100 };
          },
        });
        let [at, least, most] = [0, 0, 0];
        for (const gap of gaps) {
          if (at + gap > perTenMs.length) break;
          at += gap;
          judge.observe(sourceAt(at));
          if (at < 100) continue;
          least = Math.max(least, between(at - 100, at));
          most = Math.max(most, between(at - 120, at));
        }
        fc.pre(at >= 100);
        const worst = judge.judge(sourceAt(at)).actual ?? Number.NaN;
        expect(worst).toBeGreaterThanOrEqual(least);
        expect(worst).toBeLessThanOrEqual(most);
      },
    ),
  );
});
