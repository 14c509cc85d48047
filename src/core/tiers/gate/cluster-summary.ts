/** What a result says about the datacenters that it was made in. */

import type { JobState } from "../../ledger/job/job-state.ts";
import type { ClusterSummary, RunSummary } from "../../run/results/model.ts";
import { totalsOf } from "../../run/results/summarise.ts";

/** Of a datacenter that left nothing. */
const NO_TOTALS = totalsOf([], 0, 0);

export function clusterOf(
  { accepted, jobId, run }: JobState,
  parts: readonly { readonly datacenter: string; readonly summary: RunSummary }[],
): ClusterSummary {
  const shares = run.started?.shares ?? [];
  const all = shares.reduce((sum, { cores }) => sum + cores, 0);
  return {
    jobId,
    split: shares.map(({ cores, dcId }) => ({ datacenter: dcId, share: cores / Math.max(1, all) })),
    datacenters: run.results.map(({ dcId, finalStatus }) => {
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
  };
}
