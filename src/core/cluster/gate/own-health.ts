/** How a gate is, as it tells the others: whom it reaches, and what becomes of the jobs that it leads. */

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

/** No datacenter has it, and nothing is said against that one gets it: there is room. */
function isForwardable(leader: JobLeader): boolean {
  const { state } = leader;
  if (state === null || state.run.dispatched.length > 0 || hasJobEnded(state)) return false;
  return leader.reason === null;
}
