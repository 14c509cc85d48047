/** Health of a gate as reported to the others: reachable datacenters, and progress of the jobs it leads. */

import type { GateHealth } from "../gate-messages.ts";
import type { GateContext } from "./context.ts";
import type { JobLeader } from "./job-leader.ts";
import { hasJobEnded } from "./status.ts";

export function ownHealth(
  { calls, datacenters }: Pick<GateContext, "calls" | "datacenters">,
  leaders: Iterable<JobLeader>,
): Omit<GateHealth, "pressure"> {
  const { names } = datacenters;
  let forwardable = 0;
  for (const leader of leaders) if (isForwardable(leader)) forwardable++;
  return {
    hasDatacenter: names.some((name) => datacenters.isHealthy(name)),
    datacenters: names.filter((name) => calls.reachedIn(name).length > 0).length,
    ...{ forwarded: datacenters.forwarded, forwardable },
  };
}

/** No datacenter has the job although there is capacity. */
function isForwardable(leader: JobLeader): boolean {
  const { state } = leader;
  if (state === null || state.run.dispatched.length > 0 || hasJobEnded(state)) return false;
  return leader.reason === null;
}
