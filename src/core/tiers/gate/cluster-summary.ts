/** What a result says about the datacenters that it was made in. */

import { isoText } from "../../base/civil.ts";
import type { JobEventKind } from "../../ledger/job/events.ts";
import type { JobState } from "../../ledger/job/job-state.ts";
import { trailEntries } from "../../ledger/job/trail.ts";
import type { ClusterChange, ClusterSummary, RunSummary } from "../../run/results/model.ts";
import { totalsOf } from "../../run/results/summarise.ts";
import { partsOf } from "./job-parts.ts";
import type { JobSpec } from "./spec.ts";

/** Of a datacenter that left nothing. */
const NO_TOTALS = totalsOf([], 0, 0);
/** The last ones of a job that was changed all the time. */
const CHANGES_MAX = 100;

/** What is worth telling of a job's log, and how. */
const CHANGES: Readonly<Partial<Record<JobEventKind, string>>> = {
  JobQueued: "queued",
  JobDispatched: "dispatched",
  JobAccepted: "accepted",
  JobStarted: "started",
  JobSetUpValue: "a workflow began",
  JobPaused: "paused",
  JobResumed: "resumed",
  JobScaled: "scaled",
  JobCancellationRequested: "cancelled",
  JobDcResult: "a datacenter ended",
};

export function clusterOf(
  state: JobState,
  { routing, submission }: JobSpec,
  parts: readonly { readonly datacenter: string; readonly summary: RunSummary }[],
  startSkewMs: number,
): ClusterSummary {
  const { accepted, jobId, run } = state;
  return {
    jobId,
    split: partsOf(submission, routing, run.dispatched).map(({ datacenter, share }) => ({
      datacenter,
      share,
    })),
    datacenters: run.results
      .toSorted((a, b) => (a.dcId < b.dcId ? -1 : 1))
      .map(({ dcId, finalStatus }) => {
        const totals =
          parts.find(({ datacenter }) => datacenter === dcId)?.summary.totals ?? NO_TOTALS;
        const { failed, latencyMs, ratePerSecond, requests } = totals;
        return {
          name: dcId,
          status: finalStatus,
          workers: accepted.find((one) => one.dcId === dcId)?.workerCount ?? 0,
          ...{ requests, failed, ratePerSecond, latencyMs },
        };
      }),
    startSkewMs,
    changes: changesOf(state),
  };
}

function changesOf({ trail }: JobState): readonly ClusterChange[] {
  const all = [...trailEntries(trail)].flatMap(({ hlc, kind, outcome }) => {
    const what = CHANGES[kind];
    if (what === undefined || outcome !== "applied") return [];
    return [{ at: isoText(hlc.wallMs), by: hlc.node, what }];
  });
  return all.slice(-CHANGES_MAX);
}
