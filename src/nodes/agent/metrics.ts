/** Metrics of an agent. Units are in the names. */

import { type Metric, metricFamily } from "../../host/control/prometheus.ts";
import type { Agent } from "./agent.ts";
import { peerMetrics } from "./peer-metrics.ts";

const { counter, gauge, labelled, levels, audit } = metricFamily("hyperscale_agent_");

export function agentMetrics(agent: Agent): readonly Metric[] {
  const view = agent.view();
  const { counts } = view;
  const { members, election } = agent.status();
  return [
    labelled("gauge", "members", {
      help: "Members by state",
      label: "state",
      values: Object.entries(members),
    }),
    gauge("health_score", "Local health: 0 is healthy, 7 is worst", view.healthScore),
    gauge("incarnation", "Own incarnation", view.incarnation),
    counter("probes_total", "Probe rounds begun", counts.probes),
    counter("probes_failed_total", "Probe rounds without any answer", counts.probesFailed),
    counter("probes_skipped_total", "Left out while slow", counts.probesSkipped),
    counter("indirect_probes_total", "Probes through helpers", counts.indirectProbes),
    counter("stream_fallbacks_total", "Probes answered only on a stream", counts.streamFallbacks),
    counter("suspicions_total", "Suspicions begun or learned", counts.suspicions),
    counter("deaths_total", "Members declared dead", counts.deaths),
    counter("gossip_deaths_total", "Deaths learned by gossip", counts.gossipInformedDeaths),
    counter("refutations_total", "Own refutations", counts.refutations),
    counter("push_pulls_total", "Whole-table exchanges", counts.pushPulls),
    counter("stale_states_total", "Embedded states refused as old", counts.staleStates),
    gauge("gossip_queue_length", "Updates waiting to be sent", counts.queueLength),
    counter("gossip_dropped_total", "Updates dropped by a full queue", counts.queueDropped),
    gauge(
      "election_term",
      "Term of the group we vote in; 0 when we vote in none",
      election?.term ?? 0,
    ),
    gauge("election_leading", "1 while we lead our group", election?.state === "leader" ? 1 : 0),
    gauge("loop_lag_last_seconds", "Lateness of the last timer", agent.lag.lastMs / 1_000),
    gauge("loop_lag_max_seconds", "Latest timer since the start", agent.lag.maxMs / 1_000),
    labelled("counter", "alarms_total", {
      help: "Warnings and alarms",
      label: "code",
      values: agent.process.alarmCounts,
    }),
    ...levels("degradation", agent.process.restraint.view()),
    ...peerMetrics(view),
    ...transportMetrics(agent),
    ...audit(agent.audited),
  ];
}

function transportMetrics({ process, socketCounts: sockets }: Agent): readonly Metric[] {
  const { counts: traffic, guardCounts: guard } = process.datagrams;
  const streams = process.exchanges.counts;
  const refused = streams.refused + sockets.connectionsRefused;
  const plaintext = process.ring.encryption === "aes-256-gcm" ? 0 : 1;
  return [
    counter("datagrams_sent_total", "Datagrams sent", traffic.datagramsSent),
    counter("datagrams_received_total", "Datagrams received", traffic.datagramsReceived),
    counter("datagram_bytes_sent_total", "Bytes sent in datagrams", traffic.bytesSent),
    counter("datagram_bytes_received_total", "Bytes received in datagrams", traffic.bytesReceived),
    counter("datagrams_undecodable_total", "Authentic but unreadable", traffic.undecodable),
    counter("datagrams_dropped_total", "Not sent: too many waited", sockets.datagramsDropped),
    counter("datagrams_oversized_total", "Datagrams above the size limit", traffic.oversized),
    counter("messages_unsupported_total", "Of a kind not served here", process.unsupported),
    labelled("counter", "packets_refused_total", {
      help: "Packets refused",
      label: "why",
      values: guard.refused,
    }),
    gauge("sessions", "Sender sessions remembered against replay", guard.sessions),
    gauge("packets_held", "Packets waiting for a greeting", guard.held),
    gauge("streams_open", "Accepted connections open", streams.open),
    counter("streams_accepted_total", "Connections accepted", streams.accepted),
    counter("streams_refused_total", "Connections refused or broken", refused),
    gauge("plaintext", "1 while any plaintext is sent or accepted", plaintext),
  ];
}
