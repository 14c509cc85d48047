import { expect, it } from "vitest";
import type { ThresholdOutcome } from "../../core/load/results/model.ts";
import { syntheticRun } from "../../core/load/results/testing/synthetic-run.ts";
import { annotations } from "./annotations.ts";

const run = { ...syntheticRun({ seconds: 1, rate: 0.2 }), title: "nightly: shop" };
const missed: ThresholdOutcome = {
  ...{ expression: "latency.p99 < 200ms", actual: 312, actualText: "312 ms", passed: false },
  ...{ workflow: "shop", implicit: false, aborted: false },
};

it("reports every missed threshold as an error of the job", () => {
  const thresholds = [missed, { ...missed, passed: true }];
  expect(annotations({ ...run, verdict: "failed", thresholds })).toEqual([
    "::error title=nightly%3A shop failed::shop: latency.p99 < 200ms, but it was 312 ms",
  ]);
});

it("adds none for a run that passed, and no more than GitHub shows", () => {
  expect(annotations({ ...run, verdict: "passed", thresholds: [] })).toEqual([]);
  const many = Array.from({ length: 50 }, () => missed);
  expect(annotations({ ...run, verdict: "failed", thresholds: many })).toHaveLength(10);
});

it("escapes names that would begin another command", () => {
  const workflow = "a\n::set-env name=x::y%";
  const [line] = annotations({ ...run, verdict: "failed", thresholds: [{ ...missed, workflow }] });
  expect(line).not.toContain("\n");
  expect(line).toContain("a%0A::set-env name=x::y%25");
});

it("reports the reasons of the run when no threshold explains it", () => {
  const interrupted = {
    ...run,
    verdict: "interrupted",
    thresholds: [],
    reasons: ["stopped"],
  } as const;
  expect(annotations(interrupted)).toEqual([
    "::warning title=nightly%3A shop interrupted::stopped",
  ]);
});
