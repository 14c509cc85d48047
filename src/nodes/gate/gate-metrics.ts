/** Health of all gates as seen by this gate, itself included, as metrics. (AD-19) */

import type { GateWatchView } from "../../core/cluster/gate/gate-peers.ts";
import { type Metric, metricFamily } from "../../host/control/prometheus.ts";

const PREFIX = "hyperscale_gate_health_";
const { counter } = metricFamily(PREFIX);

/** Null before the process is composed. */
export function gateMetrics(view: GateWatchView | null): readonly Metric[] {
  if (view === null) return [];
  return [
    {
      ...{ name: `${PREFIX}decision`, type: "gauge" },
      help: "1: what becomes of new work for this gate",
      samples: view.gates.map(({ decision, label, name }) => ({
        labels: { gate: name, decision, label },
        value: 1,
      })),
    },
    counter("evictions_total", "Gates that were given up until they answer", view.evicted),
    counter("evictions_held_total", "Not given up since most failed at once", view.held),
  ];
}
