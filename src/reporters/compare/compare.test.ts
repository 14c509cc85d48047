import { describe, expect, it } from "vitest";
import type { RunSummary, StepSummary } from "../../core/load/results/model.ts";
import { syntheticRun } from "../../core/load/results/testing/synthetic-run.ts";
import { type CompareOptions, compareRuns, METRICS } from "./compare.ts";
import { comparisonText } from "./comparison-text.ts";

const options: CompareOptions = { limit: 0.05, errorLimit: 0.001, metrics: METRICS };
const healthy = (seed: string, more = {}) =>
  syntheticRun({ seed, healthy: true, seconds: 30, ...more });
const before = healthy("before");
const same = healthy("same");
const slower = healthy("slower", { slowdown: 1.25, errors: 3 });

const onlyStep = (run: RunSummary, change: (step: StepSummary) => StepSummary): RunSummary => ({
  ...run,
  workflows: run.workflows.map((workflow) => ({ ...workflow, steps: workflow.steps.map(change) })),
});

describe("comparing two runs", () => {
  it("finds a target that became slower in every step, without a change of the rate", () => {
    const { rows, regressions } = compareRuns(before, slower, options);
    const medians = rows.filter(({ metric }) => metric === "p50");
    expect(medians.map(({ result }) => result)).toEqual(Array(7).fill("regression"));
    expect(
      rows.filter(({ metric }) => metric === "rate").map(({ result }) => result),
    ).not.toContain("regression");
    expect(rows.find((row) => row.step === "pay" && row.metric === "errors")?.result).toBe(
      "regression",
    );
    expect(regressions).toBeGreaterThan(15);
  });

  it("calls the same change the other way round an improvement", () => {
    const { regressions, improvements } = compareRuns(slower, before, options);
    expect(regressions).toBe(0);
    expect(improvements).toBeGreaterThan(15);
  });

  it("finds a lower rate", () => {
    const fewer = healthy("fewer", { rate: 0.8 });
    const rates = compareRuns(before, fewer, { ...options, metrics: ["rate"] }).rows;
    expect(rates.map(({ result }) => result)).toEqual(Array(7).fill("regression"));
    expect(rates[0]?.change).toBeCloseTo(-0.2, 1);
  });

  it("reports no change when nothing changed", () => {
    expect(compareRuns(before, same, options).regressions).toBe(0);
    const { rows } = compareRuns(before, before, options);
    expect(rows.every(({ p, change }) => p === 1 && change === 0)).toBe(true);
    // Holds for a file compared with itself, too: "same" is what the interval shows, not a lack of data.
    for (const { interval, metric, result } of rows) {
      const limit = metric === "errors" ? options.errorLimit : options.limit;
      const inside = interval === null || (interval[0] >= -limit && interval[1] <= limit);
      expect(result).toBe(inside ? "same" : "unclear");
    }
  });

  it("raises a false alarm in few of many comparisons of equal runs, with any limit", () => {
    // Seeded, so this is a fixed figure; at 5 % three or more of twelve is one chance in fifty.
    const strict = { ...options, limit: 0, errorLimit: 0 };
    const run = (seed: string) => syntheticRun({ seed, healthy: true, seconds: 20 });
    const alarms = Array.from({ length: 12 }, (_, i) => {
      const { regressions, improvements } = compareRuns(run(`a${i}`), run(`b${i}`), strict);
      return regressions + improvements > 0 ? 1 : 0;
    });
    expect(alarms.reduce<number>((sum, alarm) => sum + alarm, 0)).toBeLessThan(3);
  });

  it("gives the same table for the same files", () => {
    expect(compareRuns(before, slower, options)).toEqual(compareRuns(before, slower, options));
  });

  it("tolerates changes within the limit", () => {
    const { rows, regressions } = compareRuns(before, slower, {
      ...options,
      limit: 0.6,
      errorLimit: 1,
    });
    expect(regressions).toBe(0);
    expect(rows.map(({ result }) => result)).toContain("within limit");
  });

  it("does not judge from too little data, and says so", () => {
    const short = syntheticRun({ seed: "short", healthy: true, seconds: 3, slowdown: 2 });
    const { rows, regressions } = compareRuns(before, short, {
      ...options,
      metrics: ["rate", "p99"],
    });
    expect(rows.map(({ result }) => result)).toEqual(Array(14).fill("too little data"));
    expect(regressions).toBe(0);
  });

  it("finds failures even in a run too short for anything else", () => {
    const broken = onlyStep(syntheticRun({ seconds: 2, healthy: true }), (step) => ({
      ...step,
      ok: 0,
      failed: step.requests,
    }));
    const { rows } = compareRuns(before, broken, { ...options, metrics: ["errors"] });
    expect(rows.map(({ result }) => result)).toEqual(Array(7).fill("regression"));
  });

  it("calls a step that stopped answering a regression", () => {
    const silent = onlyStep(same, (step) =>
      step.name === "pay"
        ? {
            ...step,
            requests: 0,
            ok: 0,
            failed: 0,
            ratePerSecond: 0,
            latencyMs: { ...step.latencyMs, count: 0 },
          }
        : step,
    );
    const { rows } = compareRuns(before, silent, options);
    const pay = rows.filter(({ step }) => step === "pay");
    expect(pay.map(({ result }) => result)).toEqual([
      "regression",
      ...Array(4).fill("too little data"),
    ]);
  });

  it("raises no alarm for one more failure among thousands", () => {
    const one = onlyStep(before, (step) => ({ ...step, failed: 0, ok: step.requests, errors: {} }));
    const two = onlyStep(one, (step) => ({ ...step, failed: 1, ok: step.requests - 1 }));
    const { rows } = compareRuns(one, two, { ...options, errorLimit: 0, metrics: ["errors"] });
    expect(rows.map(({ result }) => result)).toEqual(Array(7).fill("unclear"));
  });

  it("lists steps that only one run has, and conditions that differ", () => {
    const other: RunSummary = {
      ...same,
      workflows: same.workflows.slice(0, 1).map((each) => ({ ...each, load: "8 virtual users" })),
      environment: { ...same.environment, cores: 1 },
      generator: { ...same.generator, limited: true },
    };
    const { onlyBefore, onlyAfter, untrusted, warnings } = compareRuns(before, other, options);
    expect(onlyBefore).toEqual(["checkout / sign in", "checkout / add to cart", "checkout / pay"]);
    expect(onlyAfter).toEqual([]);
    expect(untrusted.join("\n")).toMatch(/run after is not to be trusted: the load generator was/);
    expect(warnings.join("\n")).toMatch(/executor cores changed: 2 before, 1 after/);
    expect(warnings.join("\n")).toMatch(/load of browse changed/);
  });
});

describe("the comparison as text", () => {
  const side = { file: "a.json", name: "shop.ts", startedAt: before.startedAt, verdict: "passed" };
  const text = (color: boolean) =>
    comparisonText(compareRuns(before, slower, options), { before: side, after: side, color });

  it("ends with the verdict and aligns its columns", () => {
    const lines = text(false).trimEnd().split("\n");
    expect(lines.findLast((line) => line.includes("beyond the limit"))).toMatch(
      /^✗ \d+ regressions/,
    );
    const rows = lines.filter((line) => /[·✗✓] (regression|same|unclear|within)/.test(line));
    expect(rows).toHaveLength(35);
    expect(new Set(rows.map((line) => line.search(/[·✗✓] /))).size).toBe(1);
  });

  it("uses escape codes only on request", () => {
    expect(text(false)).not.toContain("\u001b");
    expect(text(true)).toContain("\u001b[31m");
  });
});
