import { describe, expect, it } from "vitest";
import { Random } from "../../base/random.ts";
import { Histogram } from "../stats/histogram.ts";
import { MetricTotals } from "../stats/metrics.ts";
import { SparseCells } from "../stats/sparse-cells.ts";
import { STATUS_OTHER, StepTotals } from "../stats/step-stats.ts";
import { WindowStore } from "../stats/window-store.ts";
import { STEP_RULES, stepWindow } from "../stats/windows.ts";
import { implicitGates } from "./gates.ts";
import type { ThresholdOutcome } from "./model.ts";
import { distribution, histogramSummary, judge, summariseStep } from "./summarise.ts";
import { parseThreshold, ThresholdJudge } from "./thresholds.ts";
import type { WorkflowData } from "./workflow-data.ts";

describe("a distribution", () => {
  it("is in milliseconds, ascending, and zero when empty", () => {
    const histogram = new Histogram();
    for (let us = 1; us <= 10_000; us++) histogram.record(us);
    const { count, min, mean, p50, p99, p99_99, max } = distribution(histogram);
    expect({ count, min, mean, max }).toEqual({ count: 10_000, min: 0.001, mean: 5.001, max: 10 });
    expect(p50).toBeCloseTo(5, 1);
    expect(p99).toBeCloseTo(9.9, 1);
    expect(p99_99).toBeLessThanOrEqual(max);
    expect(new Set(Object.values(distribution(new Histogram())))).toEqual(new Set([0]));
  });

  it("becomes buckets of two significant digits that lose nothing", () => {
    const histogram = new Histogram();
    const random = new Random("buckets");
    const values = Array.from({ length: 5_000 }, () =>
      Math.floor(100 * Math.exp(random.float() * 10)),
    );
    for (const us of values) histogram.record(us);
    const { upToMs, count } = histogramSummary(histogram);
    expect(count.reduce((sum, n) => sum + n, 0)).toBe(5_000);
    expect(upToMs.toSorted((a, b) => a - b)).toEqual(upToMs);
    expect(new Set(upToMs).size).toBe(upToMs.length);
    for (const bound of upToMs) expect(Number(bound.toPrecision(2))).toBeCloseTo(bound, 9);
    // The buckets agree with the raw values to the width of a fine cell.
    let seen = 0;
    for (const [at, bound] of upToMs.entries()) {
      seen += count[at] ?? 0;
      const low = values.filter((us) => us <= bound * 1_000 * 0.998).length;
      const high = values.filter((us) => us <= bound * 1_000 * 1.002).length;
      expect(seen).toBeGreaterThanOrEqual(low);
      expect(seen).toBeLessThanOrEqual(high);
    }
  });
});

describe("a step", () => {
  it("is summarised with errors and statuses by name, and consistent sums", () => {
    const totals = new StepTotals(2, true);
    totals.tally.counts[0] = 7;
    totals.failed[1] = 3;
    totals.tally.keyed.set(503, 3).set(200, 7).set(STATUS_OTHER, 1);
    for (let i = 0; i < 10; i++) {
      totals.latency.record(5_000);
      totals.service.record(1_000);
    }
    const windows = new WindowStore(STEP_RULES);
    const content = stepWindow({ calls: 10, failed: 3 }, [], SparseCells.EMPTY, SparseCells.EMPTY);
    windows.add({ startMs: 0, widthMs: 100, content });
    const time = { windows, secondsAt: (ms: number) => ms / 1_000 };
    const step = summariseStep("home", "http", { a: "b" }, totals, time, 4, ["reset", "timeout"]);
    expect(step).toMatchObject({
      name: "home",
      protocol: "http",
      tags: { a: "b" },
      requests: 10,
      ok: 7,
      failed: 3,
      errors: { timeout: 3 },
      statuses: { "200": 7, "503": 3, other: 1 },
      ratePerSecond: 2.5,
      latencyMs: { p50: 5 },
      serviceMs: { p50: 1 },
      series: { requests: [10], failed: [3] },
      histogram: { count: [10] },
    });
    expect(Object.keys(step.errors)).toEqual(["timeout"]);
  });
});

function workflow(ok: number, failed: number, checks: WorkflowData["checks"] = []): WorkflowData {
  const totals = new StepTotals(1, false);
  totals.tally.counts[0] = ok;
  totals.failed[0] = failed;
  return {
    name: "w",
    mix: null,
    startedAtSeconds: 0,
    measuredFromSeconds: 0,
    elapsedSeconds: 1,
    steps: [
      {
        name: "s",
        protocol: "http",
        tags: {},
        totals,
        windows: new WindowStore(STEP_RULES),
        number: 0,
      },
    ],
    aside: [],
    measures: true,
    checks,
    iterationsInside: 0,
    iterationsInterrupted: 0,
    groups: [],
    namesOverflowed: false,
    iterations: 1,
    unanswered: { calls: 0, iterations: 0, iterationsOver: 0, shareMax: null, users: null },
    arrivals: null,
    metrics: new MetricTotals(),
    iterationsMissed: null,
    counters: [],
    ended: true,
    faults: [],
  };
}

function declared(text: string, where: string | null): ThresholdJudge {
  const result = parseThreshold(text);
  if (!result.ok) throw new Error(result.problem);
  return new ThresholdJudge(
    result.threshold,
    { expression: text, abortOnFail: false, afterMs: 0 },
    where,
  );
}

describe("undeclared gates", () => {
  const short = (list: readonly ThresholdOutcome[]) =>
    list.map((one) => `${one.passed} ${one.actualText}`);

  it("require every check to pass and one request to succeed", () => {
    const bad = [{ name: "c", passed: 9_999_999, failed: 1 }];
    expect(short(implicitGates(workflow(0, 5, bad), []))).toEqual([
      "false >99.99 %, 1 failed",
      "false 0 of 5 succeeded",
    ]);
    const good = [{ name: "c", passed: 3, failed: 0 }];
    expect(short(implicitGates(workflow(1, 4, good), []))).toEqual([
      "true 100 %",
      "true 1 of 5 succeeded",
    ]);
    expect(short(implicitGates(workflow(0, 0), []))).toEqual(["false nothing was measured"]);
    expect(implicitGates({ ...workflow(0, 0), ended: false }, [])).toEqual([]);
  });

  it("require a finished iteration, whatever its calls did", () => {
    const own = { calls: 0, iterations: 0, iterationsOver: 4 };
    const unanswered = { ...own, shareMax: null, users: null };
    const cutOff = { ...workflow(187, 187), unanswered, iterations: 0, iterationsInterrupted: 4 };
    expect(short(implicitGates(cutOff, []))).toEqual([
      "true 187 of 374 succeeded",
      "false the end of the run cut off all 4",
    ]);
    expect(implicitGates(cutOff, [declared("iterations.count >= 0", "w")])).toHaveLength(1);
    // One ended otherwise; or began in the warm-up and was completed in the measured time.
    expect(implicitGates({ ...cutOff, iterationsInterrupted: 3 }, [])).toHaveLength(1);
    expect(implicitGates({ ...cutOff, iterationsInside: 1 }, [])).toHaveLength(1);
    expect(implicitGates({ ...cutOff, ended: false }, [])).toHaveLength(1);
  });

  it("fail when more than half of the users wait for an answer, however many calls had one", () => {
    const stuck = (calls: number, users: number | null, shareMax: number | null = null) => {
      const unanswered = { calls, iterations: 0, iterationsOver: 1_004, shareMax, users };
      return short(implicitGates({ ...workflow(1_000, calls), unanswered }, [])).slice(1);
    };
    expect(stuck(4, 4)).toEqual(["true 0.4 %, 4 of 1,004", "false 100 %, 4 of 4"]);
    expect(stuck(2, 4)).toEqual(["true 0.2 %, 2 of 1,002"]);
    expect(stuck(4, null)).toEqual(["true 0.4 %, 4 of 1,004"]);
    expect(stuck(4, 4, 1)).toEqual(["true 0.4 %, 4 of 1,004"]);
    const unanswered = { calls: 0, iterations: 3, iterationsOver: 1_000, shareMax: null, users: 4 };
    expect(short(implicitGates({ ...workflow(1_000, 0), unanswered }, [])).slice(1)).toEqual([
      "false 75 %, 3 of 4",
      "true 0.3 %, 3 of 1,000",
    ]);
  });

  it("yield only for the checks, kinds of errors and arrivals that a threshold covers", () => {
    const checks = [
      { name: "a", passed: 9, failed: 0 },
      { name: "b", passed: 0, failed: 9 },
    ];
    const missed = { missedByLosses: 0, lag: new Histogram(), waited: new Histogram() };
    const arrivals = { started: 5, missed: 95, ...missed };
    const gates = (text: string) => {
      const outcomes = implicitGates({ ...workflow(0, 5, checks), arrivals }, [
        declared(text, "w"),
      ]);
      return outcomes.filter(({ passed }) => !passed).map(({ expression }) => expression);
    };
    const all = ["checks.rate >= 100%", "every step succeeded at least once"];
    const three = [...all, "arrivals.missed.rate <= 1%"];
    expect(gates("checks{check=a}.rate > 90%")).toEqual(three);
    expect(gates("checks{check=b}.rate >= 0%")).toEqual(three.slice(1));
    expect(gates("errors{kind=timeout}.rate < 1%")).toEqual(three);
    expect(gates("errors.rate <= 100%")).toEqual([three[0], three[2]]);
    expect(gates("arrivals.count > 1")).toEqual(three);
    expect(gates("arrivals.missed.rate < 99%")).toEqual(all);
  });

  it("yield to a threshold on the same metric, but not to that of another workflow", () => {
    const checks = [{ name: "c", passed: 1, failed: 1 }];
    const gates = (...judges: ThresholdJudge[]) =>
      implicitGates(workflow(0, 5, checks), judges).length;
    expect(gates(declared("checks.rate > 40%", "w"))).toBe(1);
    expect(gates(declared("checks.rate > 40%", null), declared("errors.count < 9", "w"))).toBe(0);
    expect(gates(declared("checks.rate > 40%", "other"))).toBe(2);
    expect(gates(declared("other.checks.rate > 40%", "w"))).toBe(2);
  });
});

describe("the verdict", () => {
  const outcome = (passed: boolean): ThresholdOutcome => ({
    expression: "latency.p99 < 200ms",
    passed,
    actual: 312,
    actualText: "312 ms",
    workflow: "w",
    implicit: false,
    aborted: !passed,
  });
  const ran = (
    status: "completed" | "failed" | "not run" | "interrupted",
    error: string | null = null,
  ) => ({
    name: "w",
    status,
    error,
  });

  it("passes when everything did", () => {
    const input = {
      thresholds: [outcome(true)],
      workflows: [ran("completed")],
      interrupted: false,
      remarks: [],
    };
    expect(judge(input)).toEqual({ verdict: "passed", reasons: [] });
    const reasons = ["many names were counted as one"];
    expect(judge({ ...input, remarks: reasons })).toEqual({ verdict: "passed", reasons });
  });

  it("names the threshold with its value, and the workflow that failed or was skipped", () => {
    const workflows = [ran("failed", "no token"), ran("not run", 'not run because "a" failed')];
    expect(
      judge({ thresholds: [outcome(false)], workflows, interrupted: false, remarks: [] }),
    ).toEqual({
      verdict: "failed",
      reasons: [
        'latency.p99 < 200ms did not hold in workflow "w": 312 ms, and ended the run',
        'workflow "w" failed: no token',
        'workflow "w" was not run: not run because "a" failed',
      ],
    });
  });

  it("stays interrupted when it was", () => {
    const workflows = [ran("interrupted"), ran("not run")];
    expect(
      judge({ thresholds: [outcome(false)], workflows, interrupted: true, remarks: [] }),
    ).toMatchObject({
      verdict: "interrupted",
      reasons: ["the run was interrupted", expect.stringContaining("312 ms")],
    });
  });
});
