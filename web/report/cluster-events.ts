/** Cluster events of a job, as marks of the charts. */

import type { RunSummary } from "../../src/core/load/results/model.ts";
import type { ChartEvent } from "../shared/charts.ts";

/** A change reported by another gate than the previous one means that the leader changed, too. */
export function clusterEvents({ cluster, startedAt }: RunSummary): ChartEvent[] {
  const began = Date.parse(startedAt);
  let leader: string | null = null;
  return (cluster?.changes ?? []).flatMap(({ at, by, what }): ChartEvent[] => {
    const atSeconds = (Date.parse(at) - began) / 1_000;
    const before = leader;
    leader = by;
    if (!Number.isFinite(atSeconds)) return [];
    const change = { atSeconds, kind: "job", workflow: null, text: `${what} (${by})` };
    if (before === null || before === by) return [change];
    const text = `${by} leads the job after ${before}`;
    return [{ atSeconds, kind: "leader changed", workflow: null, text }, change];
  });
}
