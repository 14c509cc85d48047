/** Metrics of a whole run, from results of any version. */

import type { Distribution } from "../../src/core/load/results/model.ts";
import { stretchOf } from "../shared/tracks.ts";
import type { RunView } from "./run-view.ts";

export function distributionOf({ full, summary, track }: RunView): Distribution {
  return summary.totals?.latencyMs ?? stretchOf(track, full).all;
}

export function ratePerSecond({ steps, summary }: RunView): number {
  return (
    summary.totals?.ratePerSecond ?? steps.reduce((sum, { step }) => sum + step.ratePerSecond, 0)
  );
}

/** Failures per second, by their share of all requests. */
export function failedPerSecond(view: RunView): number {
  const requests = view.steps.reduce((sum, { step }) => sum + step.requests, 0);
  const failed = view.steps.reduce((sum, { step }) => sum + step.failed, 0);
  return requests === 0 ? 0 : (ratePerSecond(view) * failed) / requests;
}
