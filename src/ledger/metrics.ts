/** Metrics of a ledger node. Units are in the names. */

import { type Metric, metricFamily } from "../host/control/prometheus.ts";
import type { HostStatus } from "./status.ts";

const { counter, gauge, labelled, audit } = metricFamily("hyperscale_ledger_");

/** `status` is null before the node has recovered. */
export function ledgerMetrics(status: HostStatus | null): readonly Metric[] {
  const ready = gauge("ready", "1 while the node serves", status === null ? 0 : 1);
  if (status === null) return [ready];
  const { ledger, counts, wal, peers } = status;
  const up = peers.map((peer) => [peer.name, peer.heard ? 1 : 0] as const);
  return [
    ready,
    gauge("jobs", "Jobs in memory", ledger.jobs),
    gauge("archived_jobs", "Jobs in the archive", status.archivedJobs),
    gauge("groups_leading", "Groups this node is primary of", ledger.leading),
    counter("requests_total", "Requests taken", counts.requests),
    counter("answers_total", "Requests answered", counts.answers),
    gauge("requests_waiting", "Requests without an answer yet", status.waiting),
    counter("commits_total", "Entries applied", counts.commits),
    counter("alarms_total", "Alarms raised", counts.alarms),
    counter("batches_shed_total", "Batches of peers refused by a slow disk", counts.shed),
    gauge("log_queue_bytes", "Bytes waiting for the log", wal.queueBytes),
    gauge("log_durable_lag_records", "Records written, not yet durable", wal.durableLag),
    gauge("log_durable_p99_seconds", "From written to durable, p99", wal.durableP99Ms / 1_000),
    counter("log_syncs_total", "Syncs of the log", wal.syncs),
    gauge(
      "timer_lag_seconds",
      "Latest timer since status or metrics were last asked",
      status.timerLagMs / 1_000,
    ),
    gauge(
      "clock_ahead_seconds",
      "This clock ahead of the peer furthest behind; 0 while they agree within 5 s",
      status.clockAheadMs / 1_000,
    ),
    labelled("gauge", "peer_heard", {
      help: "1 while the peer's connection to us is open",
      label: "peer",
      values: up,
    }),
    ...audit(status.audit),
  ];
}
