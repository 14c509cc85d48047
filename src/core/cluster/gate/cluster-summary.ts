/** What a result says about the datacenters that it was made in. */

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

/** Of a datacenter that left nothing. */
const NO_TOTALS = totalsOf([], 0, 0);
/** The last ones of a job that was changed all the time. */
const CHANGES_MAX = 100;

/** What is worth telling of a job's log, and how. */
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

/** A datacenter calls a job by an id of its own; whoever looks knows that of the gates. */
export function ofJob(live: LiveRun | null, job: string): LiveRun | null {
  return live === null ? null : { ...live, summary: { ...live.summary, runId: job } };
}

/** The gate that took the last result. */
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
