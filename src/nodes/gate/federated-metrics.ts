/** Whether a gate reaches each datacenter, as metrics under the names of AD-33a. */

import type { FederatedView } from "../../core/cluster/gate/datacenters.ts";
import { type Metric, metricFamily } from "../../host/control/prometheus.ts";

const PREFIX = "hyperscale_federated_";
const { labelled } = metricFamily(PREFIX);
const STATES = ["REACHABLE", "SUSPECTED", "UNREACHABLE"] as const;

/** Null before the process is composed. */
export function federatedMetrics(views: readonly FederatedView[] | null): readonly Metric[] {
  if (views === null) return [];
  return [
    {
      ...{ name: `${PREFIX}probe_total`, type: "counter" },
      help: "How often a datacenter was asked for its room",
      samples: views.flatMap(({ answered, datacenter: dc, unanswered }) => [
        { labels: { dc, result: "answered" }, value: answered },
        { labels: { dc, result: "unanswered" }, value: unanswered },
      ]),
    },
    labelled("gauge", "rtt_ms", {
      ...{ help: "Of the last answer", label: "dc" },
      values: views.flatMap(({ datacenter, roundTripMs }) =>
        roundTripMs === null ? [] : [[datacenter, roundTripMs] as const],
      ),
    }),
    labelled("gauge", "state", {
      ...{ help: `${STATES.join(", ")}: 0 to 2`, label: "dc" },
      values: views.map(({ datacenter, state }) => [datacenter, STATES.indexOf(state)] as const),
    }),
    {
      ...{ name: `${PREFIX}transitions_total`, type: "counter" },
      help: "Changes of that state",
      samples: views.flatMap(({ datacenter: dc, transitions }) =>
        [...transitions].map(([change, value]) => {
          const [from = "", to = ""] = change.split(" ");
          return { labels: { dc, from, to }, value };
        }),
      ),
    },
  ];
}
