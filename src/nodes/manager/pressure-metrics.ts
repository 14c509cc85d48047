/** How hard-pressed a gate or a manager is, and whom it refused, as metrics. (AD-22.8) */

import { BACKPRESSURE_LEVELS } from "../../core/cluster/overload/backpressure.ts";
import type { PressureView } from "../../core/cluster/overload/request-guard.ts";
import { OVERLOAD_STATES } from "../../core/cluster/views.ts";
import { type Metric, metricFamily } from "../../host/control/prometheus.ts";

const { counter, gauge, labelled, levels } = metricFamily("hyperscale_pressure_");

/** Null before the process is composed. */
export function pressureMetrics(view: PressureView | null): readonly Metric[] {
  if (view === null) return [];
  return [
    gauge("state", `${OVERLOAD_STATES.join(", ")}: 0 to 3`, OVERLOAD_STATES.indexOf(view.state)),
    gauge("requests_in_flight", "Requests of clients and gates without an answer", view.inFlight),
    ...classMetrics(view.classes),
    labelled("counter", "requests_shed_total", {
      help: "Requests refused because there was too much to do",
      label: "priority",
      values: Object.entries(view.shed),
    }),
    counter("requests_rate_limited_total", "Requests refused by rate", view.rateLimited),
    gauge("fill_ratio", "Of its core or its fullest queue, the fuller", view.fill),
    gauge("log_seconds", "How long the log takes now, p99 of the last 10 s", view.logMs / 1_000),
    gauge(
      "backpressure_level",
      `Backpressure level sent to reporters of metrics: ${BACKPRESSURE_LEVELS.join(", ")}: 0 to 3`,
      view.backpressure,
    ),
    ...levels("degradation", view.degradation),
  ];
}

/** Metrics per class of requests. (AD-32, BEX-8) */
function classMetrics(classes: PressureView["classes"]): readonly Metric[] {
  const all = Object.entries(classes);
  const label = "priority";
  return [
    labelled("gauge", "class_in_flight", {
      ...{ help: "Requests of this class without an answer", label },
      values: all.map(([priority, { inFlight }]) => [priority, inFlight] as const),
    }),
    labelled("counter", "class_acquired_total", {
      ...{ help: "Requests of this class that were taken on", label },
      values: all.map(([priority, { acquired }]) => [priority, acquired] as const),
    }),
    labelled("gauge", "class_limit", {
      ...{ help: "How many of this class may be under way; 0 is any number", label },
      values: all.map(([priority, { limit }]) => [priority, limit] as const),
    }),
  ];
}
