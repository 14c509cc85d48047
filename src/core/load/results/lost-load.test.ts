/** Reports of runs with lost cores: missing load, when the loss began, and whether to trust it. */

import { describe, expect, it } from "vitest";
import { manifest } from "../job/testing/manifest.ts";
import type { LoadPlan } from "../plan/load.ts";
import { StatsRecorder } from "../stats/stats-recorder.ts";
import { doubtOf, isRejected, trustOf, withTrustRequired } from "./doubt.ts";
import type { RunSummary } from "./model.ts";
import { RunAggregate } from "./run-aggregate.ts";

const SECOND = 1_000;
const RATE: LoadPlan = {
  ...{ kind: "rate", stages: [{ durationMs: 10 * SECOND, from: 100, to: 100 }], vusMax: 10 },
} as LoadPlan;
const ITERATIONS: LoadPlan = { kind: "shared", vus: 2, iterations: 1_000 } as LoadPlan;
const USERS: LoadPlan = { kind: "vus", stages: [{ durationMs: 10 * SECOND, from: 20, to: 20 }] };

/**
 * Two cores, each with half of the load; core 1 reports for the last time after `lastMs`, and its loss is noticed 3 s
 * later.
 */
function runOf(load: LoadPlan, lastMs: number | null): RunSummary {
  const isOpen = load.kind === "rate";
  const aggregate = new RunAggregate({
    ...{ runId: "run", name: "shop.ts", tags: {}, thresholds: [], errorKinds: [] },
    manifests: [manifest("shop", { load, corrected: isOpen, isTest: false, steps: [] })],
    environment: {
      ...{ hyperscale: "", node: "", platform: "", cpuModel: "", command: "", cpus: 2, cores: 2 },
    },
    ...{ abortAfterMs: null, startedAt: "2024-01-11T00:00:00.000Z" },
  });
  aggregate.setTime(0);
  aggregate.workflowStarted("shop", [0, 1]);
  const half = isOpen ? 50 : 10;
  const speak = (core: number, untilMs: number): void => {
    const recorder = new StatsRecorder({ errorKinds: 0, corrected: isOpen });
    for (let window = 1; window <= untilMs / 100; window++) {
      if (isOpen) recorder.counts.arrivalsStarted += half / 10;
      else recorder.counts.completed += half / 10;
      recorder.seal(window, { users: half, target: half, cpuMs: 10, lagMsMax: 1 });
    }
    const moment = {
      ...{ measuredMs: untilMs, warmingUp: false, target: half, arrivalsWaiting: 0 },
    };
    const vitals = { cpu: 0.1, residentBytes: 0, activeUsers: half };
    aggregate.frame("shop", core, recorder.frame(moment, true), vitals);
  };
  aggregate.setTime(lastMs ?? 0);
  if (lastMs !== null) {
    speak(1, lastMs);
    aggregate.setTime(lastMs + 3 * SECOND);
    aggregate.coreLost(1, "worker w2 was lost with core 1", { worker: "w2" });
  }
  aggregate.setTime(10 * SECOND);
  speak(0, 10 * SECOND);
  if (lastMs === null) speak(1, 10 * SECOND);
  aggregate.workflowFinished("shop", "completed", null);
  return aggregate.summary({ interrupted: false, ended: true, detail: "all" });
}

describe("a run that lost a core", () => {
  const lost = runOf(RATE, 2 * SECOND);
  const whole = runOf(RATE, null);

  it("counts the arrivals of the lost core as missed, and fails above 1 %", () => {
    const [workflow] = lost.workflows;
    const { missed, missedByLosses, started } = workflow?.arrivals ?? {};
    expect({ missed, missedByLosses, started }).toEqual({
      ...{ missed: 400, missedByLosses: 400, started: 600 },
    });
    expect(lost.verdict).toBe("failed");
    expect(lost.reasons.join()).toContain("40 %, 400 of 1,000, 400 with lost cores");
    expect(whole.workflows[0]?.arrivals?.missed).toBe(0);
    expect([whole.verdict, runOf(RATE, 9_900).verdict]).toEqual(["passed", "passed"]);
  });

  it("counts the iterations of its plan that were not made", () => {
    const fewer = { ...ITERATIONS, iterations: 120 } as LoadPlan;
    expect(runOf(fewer, 2 * SECOND).verdict).toBe("passed");
    const run = runOf({ ...ITERATIONS, iterations: 200 } as LoadPlan, 2 * SECOND);
    expect([run.verdict, run.thresholds.at(-1)?.actualText]).toEqual([
      "failed",
      "40 %, 80 of 200 of the plan",
    ]);
  });

  it("keeps the plan as its target, whatever was lost", () => {
    for (const [load, planned] of [
      [RATE, 100],
      [USERS, 20],
    ] as const) {
      const targets = runOf(load, 2 * SECOND).workflows[0]?.loadSeries?.target ?? [];
      expect(new Set(targets)).toEqual(new Set([planned]));
    }
  });

  it("dates the loss when the core last reported, not when it was noticed", () => {
    expect(lost.lost.map(({ atSeconds }) => atSeconds)).toEqual([2]);
    const events = lost.events?.filter(({ kind }) => kind === "core lost") ?? [];
    expect(events.map(({ atSeconds }) => atSeconds)).toEqual([2]);
  });

  it("is untrusted, and does not count as passed where trust is required", () => {
    const run = runOf(USERS, 2 * SECOND);
    expect(run.verdict).toBe("passed");
    expect(run.trust).toEqual({
      trusted: false,
      reasons: [{ code: "lost", text: "parts of the run were lost" }],
    });
    expect(whole.trust).toEqual({ trusted: true, reasons: [] });
    expect([run, withTrustRequired(run), withTrustRequired(whole)].map(isRejected)).toEqual([
      ...[false, true, false],
    ]);
    const { trust: _, ...former } = run;
    expect([trustOf(former), doubtOf(former)]).toEqual([run.trust, "parts of the run were lost"]);
  });
});
