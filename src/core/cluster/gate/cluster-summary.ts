/** Cluster section of a result: the datacenters that contributed to it. */

import { isoText } from "../../base/civil.ts";
import type { JobEventKind } from "../../ledger/job/events.ts";
import type { JobState } from "../../ledger/job/job-state.ts";
import { trailEntries } from "../../ledger/job/trail.ts";
import type { LiveRun } from "../../load/results/live.ts";
import type { ClusterChange, ClusterSummary, RunSummary } from "../../load/results/model.ts";
import { totalsOf } from "../../load/results/summarise.ts";
import { datacentersOfEvents } from "./job-events.ts";
import { partsOf } from "./job-parts.ts";
import type { JobSpec } from "./spec.ts";

/** Totals of a datacenter without a result. */
const NO_TOTALS = totalsOf([], 0, 0);
/** Maximum number of changes; the last ones are kept. */
const CHANGES_MAX = 100;

/** Event kinds to show, with their text. */
const CHANGES: Readonly<Partial<Record<JobEventKind, string>>> = {
  JobCreated: "submitted",
  JobQueued: "queued",
  JobDispatched: "dispatched",
  JobAccepted: "accepted",
  JobStarted: "started",
  JobSetUpValue: "a workflow began",
  JobPaused: "paused",
  JobResumed: "resumed",
  JobScaled: "scaled",
  JobCancellationRequested: "cancelled",
  JobDcResult: "datacenter ended",
  JobCompleted: "ended",
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
    leader: leaderOf(state),
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

/** Replaces the datacenter's own job id by that of the gates, which clients know. */
export function ofJob(live: LiveRun | null, job: string): LiveRun | null {
  return live === null ? null : { ...live, summary: { ...live.summary, runId: job } };
}

/** Gate that recorded the last result. */
function leaderOf({ trail }: JobState): string | null {
  const last = [...trailEntries(trail)].findLast(({ kind }) => kind === "JobDcResult");
  return last?.hlc.node ?? null;
}

function changesOf(state: JobState): readonly ClusterChange[] {
  const places = datacentersOfEvents(state);
  const all = [...trailEntries(state.trail)].flatMap(({ eventId, hlc, kind, outcome }) => {
    const said = CHANGES[kind];
    if (said === undefined || outcome !== "applied") return [];
    const where = places.get(eventId);
    const what = where === undefined ? said : `${said}: ${where}`;
    return [{ at: isoText(hlc.wallMs), by: hlc.node, what }];
  });
  return all.slice(-CHANGES_MAX);
}
