/** Where a gate sends jobs, and why, as metrics under the names of AD-36. */

import type { RoutingView } from "../../core/cluster/gate/datacenters.ts";
import { type Metric, metricFamily } from "../../host/control/prometheus.ts";

const PREFIX = "hyperscale_routing_";
const { counter, labelled } = metricFamily(PREFIX);

/** Null before the process is composed. */
export function routingMetrics(view: RoutingView | null): readonly Metric[] {
  if (view === null) return [];
  const { counts, scores } = view;
  return [
    pairs("decisions_total", "Jobs given to a datacenter", ["bucket", "reason"], counts.decisions),
    labelled("counter", "switch_total", {
      help: "Changes of the datacenter that is asked first",
      label: "reason",
      values: counts.switches,
    }),
    counter(
      "hold_down_blocks_total",
      "Changes that wait until the present datacenter was held for long enough",
      counts.holdDownBlocks,
    ),
    pairs(
      "fallback_used_total",
      "Jobs that another datacenter took after one had not",
      ["from_dc", "to_dc"],
      counts.fallbacks,
    ),
    labelled("gauge", "score", {
      help: "Of each datacenter, when it was last compared; lower is asked first",
      label: "dc_id",
      values: scores.map(({ name, score }) => [name, score] as const),
    }),
    {
      name: `${PREFIX}score_component`,
      help: "What the score is the product of",
      type: "gauge",
      samples: scores.flatMap(({ load, name, quality, upperMs }) =>
        Object.entries({ rtt_ucb: upperMs, load, quality }).map(([component, value]) => ({
          labels: { dc_id: name, component },
          value,
        })),
      ),
    },
  ];
}

function pairs(
  name: string,
  help: string,
  [first, second]: readonly [string, string],
  counts: ReadonlyMap<string, ReadonlyMap<string, number>>,
): Metric {
  const samples = [...counts].flatMap(([one, others]) =>
    [...others].map(([other, value]) => ({ labels: { [first]: one, [second]: other }, value })),
  );
  return { name: PREFIX + name, help, type: "counter", samples };
}
