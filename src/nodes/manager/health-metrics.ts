/** Metrics of workers that did not advance. */

import type { HealthCounts } from "../../core/cluster/overload/health-counters.ts";
import { type Metric, metricFamily } from "../../host/control/prometheus.ts";

const { counter, labelled } = metricFamily("hyperscale_worker_");
const manager = metricFamily("hyperscale_manager_");

/** Alert on 1: results of jobs go to the other managers until there is space. */
export function diskMetric(problem: string | null): Metric {
  const help = "Whether the last result could not be stored on the disk of this manager";
  return manager.gauge("disk_failed", help, problem === null ? 0 : 1);
}

export function healthMetrics(counts: HealthCounts): readonly Metric[] {
  const { denied, evicted, granted, grantedMs, held } = counts;
  const seconds = grantedMs / 1_000;
  return [
    counter("extensions_granted_total", "Requests of workers for more time that were met", granted),
    counter("extensions_granted_seconds_total", "How much more time that was", seconds),
    labelled("counter", "extensions_denied_total", {
      ...{ help: "Requests for more time that were denied", label: "reason", values: denied },
    }),
    labelled("counter", "evictions_total", {
      ...{ help: "Workers that were given up", label: "cause", values: evicted },
    }),
    labelled("counter", "evictions_held_total", {
      help: "Workers that were kept because more than half failed at once",
      ...{ label: "cause", values: held },
    }),
  ];
}
