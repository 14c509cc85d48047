/** Cluster jobs of which only some datacenters did their part. */

import type { ClusterSummary, RunSummary } from "./model.ts";

/** Statuses of a datacenter that did its part. */
const WHOLE: readonly string[] = ["COMPLETED", "CANCELLED"];

/** "dc2 is LOST"; null when all of the load was generated, or the run was on one machine. */
export function partialOf({ cluster }: Pick<RunSummary, "cluster">): string | null {
  const broken = brokenDatacenters(cluster);
  if (broken.length === 0) return null;
  return broken.map(({ name, status }) => `${name} is ${status}`).join(", ");
}

function brokenDatacenters(cluster: ClusterSummary | undefined): ClusterSummary["datacenters"] {
  return (cluster?.datacenters ?? []).filter(({ status }) => !WHOLE.includes(status));
}
