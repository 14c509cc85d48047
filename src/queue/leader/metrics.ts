/** Counters of a node and their Prometheus text. (TQ-44) */

import type { EventType } from "../../core/queue/states.ts";
import type { ClusterStatus } from "../api/types.ts";

const SECONDS_BUCKETS = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800,
];

export class QueueMetrics {
  readonly #transitions = new Map<EventType, number>();
  readonly queueDelay = new SecondsHistogram();
  readonly runTime = new SecondsHistogram();
  retries = 0;
  lateResults = 0;
  leaderChanges = 0;

  transition(eventType: EventType): void {
    this.#transitions.set(eventType, (this.#transitions.get(eventType) ?? 0) + 1);
  }

  text(status: ClusterStatus, leases: number): string {
    const lines: string[] = [];
    const family = (
      name: string,
      kind: string,
      help: string,
      samples: readonly [string, number][],
    ) => {
      lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} ${kind}`);
      for (const [labels, value] of samples) lines.push(`${name}${labels} ${value}`);
    };
    const nodesBy = (wanted: string) =>
      status.nodes.filter((node) => node.status === wanted).length;
    family(
      "hyperscale_queue_tasks",
      "gauge",
      "Tasks in the database by state.",
      Object.entries(status.counts).map(([state, count]) => [`{state="${state}"}`, count]),
    );
    family("hyperscale_queue_leases", "gauge", "Task leases held, as this leader knows.", [
      ["", leases],
    ]);
    family(
      "hyperscale_queue_nodes",
      "gauge",
      "Nodes by status.",
      ["healthy", "stale", "dead"].map((name) => [`{status="${name}"}`, nodesBy(name)]),
    );
    family("hyperscale_queue_leader_epoch", "gauge", "Epoch of the present leader.", [
      ["", status.leader?.epoch ?? 0],
    ]);
    family(
      "hyperscale_queue_transitions_total",
      "counter",
      "Task events written by this node as leader.",
      [...this.#transitions].map(([type, count]) => [`{event="${type}"}`, count]),
    );
    family(
      "hyperscale_queue_retries_total",
      "counter",
      "Attempts that followed a failed or lost one.",
      [["", this.retries]],
    );
    family(
      "hyperscale_queue_late_results_total",
      "counter",
      "Results refused because their lease was lost.",
      [["", this.lateResults]],
    );
    family("hyperscale_queue_leader_changes_total", "counter", "Times this node became leader.", [
      ["", this.leaderChanges],
    ]);
    lines.push(
      ...this.queueDelay.text("hyperscale_queue_delay_seconds", "From ready to assigned."),
      ...this.runTime.text("hyperscale_queue_run_seconds", "Execution time of finished attempts."),
    );
    return `${lines.join("\n")}\n`;
  }
}

class SecondsHistogram {
  readonly #counts = new Array<number>(SECONDS_BUCKETS.length + 1).fill(0);
  #sum = 0;
  #count = 0;

  add(seconds: number): void {
    let at = 0;
    while (at < SECONDS_BUCKETS.length && seconds > (SECONDS_BUCKETS[at] ?? 0)) at++;
    this.#counts[at] = (this.#counts[at] ?? 0) + 1;
    this.#sum += seconds;
    this.#count++;
  }

  text(name: string, help: string): readonly string[] {
    const lines = [`# HELP ${name} ${help}`, `# TYPE ${name} histogram`];
    let below = 0;
    for (const [at, bound] of SECONDS_BUCKETS.entries()) {
      below += this.#counts[at] ?? 0;
      lines.push(`${name}_bucket{le="${bound}"} ${below}`);
    }
    lines.push(
      `${name}_bucket{le="+Inf"} ${this.#count}`,
      `${name}_sum ${this.#sum}`,
      `${name}_count ${this.#count}`,
    );
    return lines;
  }
}
