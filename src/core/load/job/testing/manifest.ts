/** A manifest for tests: everything irrelevant to the test has a plain value. */

import type { WorkflowManifest } from "../manifest.ts";

export function manifest(
  name: string,
  over: Partial<Omit<WorkflowManifest, "name">> = {},
): WorkflowManifest {
  return {
    name,
    load: { kind: "vus", stages: [{ durationMs: 1_000, from: 4, to: 4 }] },
    startAfterMs: 0,
    warmupMs: 0,
    gracefulStopMs: 5_000,
    setupMsMax: 60_000,
    teardownMsMax: 60_000,
    priority: "auto",
    dependsOn: [],
    isTest: true,
    parts: [],
    mix: null,
    flow: null,
    steps: [],
    checks: [],
    metrics: [],
    provides: [],
    uses: [],
    thresholds: [],
    corrected: false,
    connectionsMax: 6,
    targets: [],
    ...over,
  };
}
