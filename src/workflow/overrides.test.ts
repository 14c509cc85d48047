/** Flags of the command line against every load model. */

import { expect, it } from "vitest";
import type { LoadOverrides } from "../core/load/job/load-overrides.ts";
import type { LoadPlan } from "../core/load/plan/load.ts";
import { http } from "../protocols/http1/index.ts";
import { manifestOf } from "./definition.ts";
import { overrideManifest, overridePlan, overrideSettings } from "./overrides.ts";
import { workflow } from "./workflow.ts";

const closed: LoadPlan = { kind: "vus", stages: [{ durationMs: 1_000, from: 5, to: 5 }] };
const ramp: LoadPlan = {
  kind: "vus",
  stages: [
    { durationMs: 1_000, from: 0, to: 8 },
    { durationMs: 3_000, from: 8, to: 8 },
  ],
};
const open: LoadPlan = {
  kind: "rate",
  stages: [{ durationMs: 1_000, from: 50, to: 50 }],
  vusMax: 100,
};
const shared: LoadPlan = { kind: "shared", vus: 4, iterations: 100, durationMsMax: 60_000 };
const perUser: LoadPlan = { kind: "perUser", vus: 4, iterations: 9, durationMsMax: 60_000 };
const flat = (durationMs: number, n: number) => [{ durationMs, from: n, to: n }];

it.each<[string, LoadPlan, LoadOverrides, LoadPlan]>([
  ["nothing changes nothing", ramp, {}, ramp],
  ["--vus", closed, { vus: 9 }, { kind: "vus", stages: flat(1_000, 9) }],
  [
    "--vus flattens stages over their time",
    ramp,
    { vus: 9 },
    { kind: "vus", stages: flat(4_000, 9) },
  ],
  ["--duration", closed, { durationMs: 500 }, { kind: "vus", stages: flat(500, 5) }],
  [
    "--duration keeps the shape of stages",
    ramp,
    { durationMs: 8_000 },
    {
      kind: "vus",
      stages: [
        { durationMs: 2_000, from: 0, to: 8 },
        { durationMs: 6_000, from: 8, to: 8 },
      ],
    },
  ],
  [
    "--rate makes a closed model open",
    closed,
    { rate: 10 },
    { kind: "rate", stages: flat(1_000, 10), vusMax: 100 },
  ],
  [
    "--rate and --max-vus",
    open,
    { rate: 10, maxVus: 3 },
    { kind: "rate", stages: flat(1_000, 10), vusMax: 3 },
  ],
  ["--max-vus alone", open, { maxVus: 7 }, { ...open, vusMax: 7 }],
  ["--vus closes an open model", open, { vus: 2 }, { kind: "vus", stages: flat(1_000, 2) }],
  [
    "--iterations",
    ramp,
    { iterations: 50 },
    { kind: "shared", vus: 8, iterations: 50, durationMsMax: 3_600_000 },
  ],
  [
    "--iterations within --duration",
    closed,
    { iterations: 50, vus: 2, durationMs: 9_000 },
    { kind: "shared", vus: 2, iterations: 50, durationMsMax: 9_000 },
  ],
  ["--vus of shared iterations", shared, { vus: 2 }, { ...shared, vus: 2 }],
  ["--duration of shared iterations", shared, { durationMs: 5 }, { ...shared, durationMsMax: 5 }],
  [
    "--vus of iterations per user",
    perUser,
    { vus: 2, durationMs: 7 },
    { ...perUser, vus: 2, durationMsMax: 7 },
  ],
  [
    "a flow without a load model takes that of the flags",
    { kind: "once", durationMsMax: 9 },
    { vus: 5 },
    { kind: "vus", stages: [{ durationMs: 10_000, from: 5, to: 5 }] },
  ],
])("%s", (_name, plan, overrides, expected) => {
  expect(overridePlan(plan, overrides)).toEqual(expected);
});

it("replaces timeouts and certificates of calls, and keeps the same settings object when nothing changes", () => {
  const { settings } = workflow("a", { vus: 1, duration: "1s", timeout: "9s" }).definition;
  expect(overrideSettings(settings, { vus: 3 })).toBe(settings);
  expect(overrideSettings(settings, { timeoutMs: 50 })).toEqual({ ...settings, timeoutMs: 50 });
  expect(overrideSettings(settings, { insecure: true })).toEqual({ ...settings, insecure: true });
});

it("reflects the overrides in the manifest for planning", () => {
  const flow = workflow("a", { vus: 4, duration: "1s", warmup: "1s" })
    .step("s", http.get("http://127.0.0.1/"))
    .step("t", http.get("http://127.0.0.1/"));
  const manifest = manifestOf(flow.definition);
  expect([manifest.connectionsMax, manifest.corrected]).toEqual([8, false]);
  const changed = overrideManifest(manifest, {
    rate: 10,
    maxVus: 30,
    warmupMs: 0,
    gracefulStopMs: 1,
  });
  expect(changed).toMatchObject({
    connectionsMax: 60,
    corrected: true,
    warmupMs: 0,
    gracefulStopMs: 1,
  });
});
