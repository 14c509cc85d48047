/** Counters of a node, as metrics. (TQ-44) */

import { Activity } from "../../core/queue/activity.ts";
import type { EventType, TaskState } from "../../core/queue/states.ts";
import { Histogram, type Metric, metricFamily } from "../../host/control/prometheus.ts";
import type { AuditCounts } from "../../host/ports/audit.ts";
import type { ClusterStatus } from "../api/types.ts";

const SECONDS_BUCKETS = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800,
];
const NODE_STATUSES = ["healthy", "stale", "dead"] as const;
const { counter, gauge, histogram, labelled, audit } = metricFamily("hyperscale_queue_");

export class QueueMetrics {
  readonly #transitions = new Map<EventType, number>();
  /** Shown on the page; the others are for Prometheus. */
  readonly activity = new Activity();
  readonly queueDelay = new Histogram(SECONDS_BUCKETS);
  readonly runTime = new Histogram(SECONDS_BUCKETS);
  retries = 0;
  lateResults = 0;
  leaderChanges = 0;

  transition(eventType: EventType, to: TaskState): void {
    this.activity.moved(eventType, to);
    this.#transitions.set(eventType, (this.#transitions.get(eventType) ?? 0) + 1);
  }

  /** From ready to assigned. */
  waited(ms: number): void {
    this.queueDelay.add(ms / 1_000);
    this.activity.waited(ms);
  }

  all(status: ClusterStatus, audited: AuditCounts): readonly Metric[] {
    const nodes = NODE_STATUSES.map(
      (name) => [name, status.nodes.filter((node) => node.status === name).length] as const,
    );
    const none = Object.fromEntries(status.nodes.map((node) => [node.node_id, 0]));
    return [
      labelled("gauge", "tasks", {
        help: "Tasks in the database by state.",
        label: "state",
        values: Object.entries(status.counts),
      }),
      labelled("gauge", "leases", {
        help: "Tasks that each node holds leased.",
        label: "node",
        values: Object.entries({ ...none, ...status.leases }),
      }),
      labelled("gauge", "nodes", {
        help: "Nodes by status.",
        label: "status",
        values: nodes,
      }),
      gauge("leader_epoch", "Epoch of the present leader.", status.leader?.epoch ?? 0),
      labelled("counter", "transitions_total", {
        help: "Task events written by this node as leader.",
        label: "event",
        values: this.#transitions,
      }),
      counter("retries_total", "Attempts that followed a failed or lost one.", this.retries),
      counter(
        "late_results_total",
        "Results refused because their lease was lost.",
        this.lateResults,
      ),
      counter("leader_changes_total", "Times this node became leader.", this.leaderChanges),
      histogram("delay_seconds", "From ready to assigned.", this.queueDelay),
      histogram("run_seconds", "Execution time of finished attempts.", this.runTime),
      ...audit(audited),
    ];
  }
}
