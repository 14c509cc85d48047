/** Which manager a gate calls in each datacenter, and its circuit breakers, under the names of AD-28. */

import type { CallsView } from "../../core/cluster/gate/calls.ts";
import { CIRCUIT_STATES } from "../../core/cluster/messages.ts";
import { type Metric, metricFamily } from "../../host/control/prometheus.ts";

const POOL = "hyperscale_discovery_";
const { counter, labelled } = metricFamily(POOL);
const circuits = metricFamily("hyperscale_circuit_");
const HEALTH = "hyperscale_manager_health_";
const health = metricFamily(HEALTH);
/** Role of the called nodes. */
const ROLE = "manager";

/** Null before the process is composed. */
export function callsMetrics(views: readonly CallsView[] | null): readonly Metric[] {
  if (views === null) return [];
  return [...poolMetrics(views), ...circuitMetrics(views), ...healthMetrics(views)];
}

/** Acceptance of new work per manager. (AD-19) */
function healthMetrics(views: readonly CallsView[]): readonly Metric[] {
  const of = (name: string, help: string, value: (view: CallsView) => number): Metric =>
    health.labelled("counter", name, {
      ...{ help, label: "datacenter" },
      values: views.map((view) => [view.datacenter, value(view)] as const),
    });
  return [
    {
      ...{ name: `${HEALTH}decision`, type: "gauge" },
      help: "1: what becomes of new work for this manager",
      samples: views.flatMap(({ datacenter, health: seen }) =>
        seen.managers.map(({ decision, label, manager }) => ({
          labels: { datacenter, manager, decision, label },
          value: 1,
        })),
      ),
    },
    of(
      "evictions_total",
      "Managers that were given up until they answer",
      ({ health: { evicted } }) => evicted,
    ),
    of(
      "evictions_held_total",
      "Not given up since most failed at once",
      ({ health: { held } }) => held,
    ),
  ];
}

function poolMetrics(views: readonly CallsView[]): readonly Metric[] {
  const pools = views.map(({ pool }) => pool);
  const primary = pools.reduce((sum, { primaries }) => sum + primaries.length, 0);
  const backup = pools.reduce((sum, { backups }) => sum + backups.length, 0);
  return [
    gauges("candidate_set_size", "Managers that could be asked", views, ({ datacenter, pool }) => [
      { labels: { role: ROLE, datacenter }, value: pool.candidates },
    ]),
    labelled("counter", "candidate_set_changes_total", {
      help: "Changes of the managers that could be asked",
      label: "reason",
      values: summed(pools.map(({ changes }) => changes)),
    }),
    labelled("counter", "locality_tier_selected_total", {
      help: "Managers chosen to be asked, by where they are",
      label: "tier",
      values: summed(pools.map(({ tiers }) => tiers)),
    }),
    {
      ...{ name: `${POOL}pool_connections`, type: "gauge" },
      help: "Managers that are asked in turn, and those that would be next",
      samples: Object.entries({ primary, backup }).map(([state, value]) => ({
        labels: { state, role: ROLE },
        value,
      })),
    },
    {
      ...{ name: `${POOL}pool_promotions_total`, type: "counter" },
      help: "Backups that took the place of another",
      samples: [
        {
          labels: { from_state: "backup", to_state: "primary" },
          value: pools.reduce((sum, { promotions }) => sum + promotions, 0),
        },
      ],
    },
    labelled("counter", "pool_evictions_total", {
      help: "Managers that are not asked until they answer a probe",
      label: "reason",
      values: summed(pools.map(({ evictions }) => evictions)),
    }),
    counter(
      "pool_evictions_held_total",
      "Evictions that did not happen since more than half did badly at once",
      pools.reduce((sum, { held }) => sum + held, 0),
    ),
    gauges("peer_ewma_latency_ms", "Of its answers", views, ({ datacenter, pool }) =>
      pool.peers.flatMap(({ latencyMs, name }) =>
        latencyMs === null ? [] : [{ labels: { peer_id: name, datacenter }, value: latencyMs }],
      ),
    ),
    gauges("peer_error_rate", "Of its last requests", views, ({ pool }) =>
      pool.peers.map(({ errorRate, name }) => ({ labels: { peer_id: name }, value: errorRate })),
    ),
  ];
}

function circuitMetrics(views: readonly CallsView[]): readonly Metric[] {
  const of = (name: string, help: string, value: (view: CallsView) => number): Metric =>
    circuits.labelled("gauge", name, {
      ...{ help, label: "datacenter" },
      values: views.map((view) => [view.datacenter, value(view)] as const),
    });
  return [
    of("state", `${CIRCUIT_STATES.join(", ")}: 0 to 2`, ({ circuit }) =>
      CIRCUIT_STATES.indexOf(circuit.state),
    ),
    of("operations_queued", "Wait for it to close", ({ circuit }) => circuit.queued),
    of("calls_in_flight", "Without an answer", ({ circuit }) => circuit.inFlight),
  ];
}

type Samples = Extract<Metric, { readonly samples: unknown }>["samples"];

function gauges(
  name: string,
  help: string,
  views: readonly CallsView[],
  samplesOf: (view: CallsView) => Samples,
): Metric {
  return { name: POOL + name, help, type: "gauge", samples: views.flatMap(samplesOf) };
}

function summed(
  counts: readonly Readonly<Record<string, number>>[],
): readonly (readonly [string, number])[] {
  const names = Object.keys(counts[0] ?? {});
  return names.map((name) => [name, counts.reduce((sum, one) => sum + (one[name] ?? 0), 0)]);
}
