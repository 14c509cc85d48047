/** When a threshold was broken, and by which series, derived from the windows of a run. */

import { describe, expect, it } from "vitest";
import type { RunSummary, ThresholdOutcome } from "../../src/core/load/results/model.ts";
import { syntheticJob } from "../../src/core/load/results/testing/synthetic-job.ts";
import { syntheticRun } from "../../src/core/load/results/testing/synthetic-run.ts";
import { beyondOf, culpritOf } from "../../web/report/beyond.ts";
import { clusterEvents } from "../../web/report/cluster-events.ts";
import { runView } from "../../web/report/run-view.ts";
import { measuredStep, runOf } from "./measured-step.ts";

function outcome(expression: string, rest: Partial<ThresholdOutcome> = {}): ThresholdOutcome {
  const base = { actual: 1, actualText: "1", workflow: null, implicit: false, aborted: false };
  return { expression, passed: false, ...base, ...rest };
}

const beyond = (summary: RunSummary, expression: string) =>
  beyondOf(outcome(expression), runView(summary));

describe("a threshold on latencies", () => {
  const run = runOf(measuredStep("beyond", 60, 400));

  it("was broken while its step was slow, and at no other time", () => {
    expect(beyond(run, "latency.p95 < 100ms")).toEqual({
      stretches: [[36, 42]],
      seconds: 6,
      measuredSeconds: 60,
    });
  });

  it("that was met in every window was never broken", () => {
    expect(beyond(run, "latency.p99 < 10s")?.stretches).toEqual([]);
  });

  it("of another workflow or step has no windows here, and of a mean none that apply", () => {
    expect(beyond(run, "latency{step=nobody}.p95 < 1ms")).toBeNull();
    expect(beyond(run, "latency.mean < 1ms")).toBeNull();
    expect(beyond(run, "not a threshold")).toBeNull();
  });
});

describe("a threshold on failures", () => {
  const run = syntheticRun({ seconds: 60, errors: 10 });
  const view = runView(run);
  const errors = outcome("errors.rate < 10%");

  it("was broken in the stall, by the step with the most failures in it", () => {
    const found = beyondOf(errors, view);
    if (found === null) throw new Error("failures have windows");
    for (const [from, to] of found.stretches) {
      expect(from).toBeGreaterThan(34);
      expect(to).toBeLessThan(41);
    }
    expect(found.seconds).toBeGreaterThan(2);
    expect(culpritOf(errors, view, found)?.name).toBe("checkout / pay");
  });

  it("of one kind counts that kind only", () => {
    expect(beyond(run, "errors{kind=tls}.rate < 10%")?.stretches).toEqual([]);
  });
});

describe("a threshold on the rate", () => {
  it("was broken where the closed model sent less", () => {
    const found = beyond(syntheticRun({ seconds: 60 }), "requests{step=search}.rate > 150/s");
    const [[from, to] = [0, 0]] = found?.stretches ?? [];
    expect(found?.stretches).toHaveLength(1);
    expect([Math.round(from), Math.round(to)]).toEqual([35, 39]);
  });
});

describe("what happened to a job", () => {
  it("is marked where it happened, with each change of the leader", () => {
    const events = clusterEvents(syntheticJob({ seconds: 20, rate: 0.1 }));
    expect(events.map(({ atSeconds, text }) => [atSeconds, text])).toEqual([
      [1, "dispatched to dc1, dc2 (gate-1)"],
      [10, "gate-2 leads the job after gate-1"],
      [10, "scaled to 1.1 of the plan (gate-2)"],
    ]);
  });

  it("is nothing where it is not known", () => {
    expect(clusterEvents(syntheticRun({ seconds: 1, rate: 0 }))).toEqual([]);
  });
});
