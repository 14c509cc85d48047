/** A synthetic run as the result of a cluster. */

import { isoText } from "../../../base/civil.ts";
import { Histogram } from "../../stats/histogram.ts";
import type { RunSummary } from "../model.ts";
import { distribution } from "../summarise.ts";
import { lostAtSeconds, type SyntheticOptions, syntheticRun } from "./synthetic-run.ts";

/** `startedAt` of every synthetic run. */
const STARTED_MS = 1_773_480_413_589;

/** The same run as a job of two datacenters, the second of which was lost on the way. */
export function syntheticJob(options: SyntheticOptions = {}): RunSummary {
  const run = syntheticRun({ healthy: true, ...options });
  const seconds = run.durationSeconds - 5.2;
  const latencyMs = run.totals?.latencyMs ?? distribution(new Histogram());
  const at = (second: number): string => isoText(STARTED_MS + second * 1_000);
  const part = (name: string, status: string, share: number) => {
    const requests = Math.round((run.totals?.requests ?? 0) * share);
    const figures = { requests, failed: 0, ratePerSecond: requests / seconds, latencyMs };
    return { name, status, workers: 4, ...figures };
  };
  return {
    ...run,
    lost: [
      {
        core: 5,
        atSeconds: lostAtSeconds(seconds),
        what: "worker dc2-w3 was lost",
        cost: "16 virtual users until its share was dealt again",
        at: at(lostAtSeconds(seconds)),
        worker: "dc2-w3",
        users: 16,
        requestsNotCounted: 310,
        exact: false,
        missingMs: 1_410,
        dealtAgainTo: "dc2-w1",
      },
    ],
    cluster: {
      jobId: "job-7f2a",
      split: [
        { datacenter: "dc1", share: 0.6 },
        { datacenter: "dc2", share: 0.4 },
      ],
      datacenters: [part("dc1", "COMPLETED", 0.6), part("dc2", "LOST", 0.4)],
      startSkewMs: 12,
      changes: [
        { at: at(1), by: "gate-1", what: "dispatched to dc1, dc2" },
        { at: at(seconds / 2), by: "gate-2", what: "scaled to 1.1 of the plan" },
      ],
    },
  };
}
