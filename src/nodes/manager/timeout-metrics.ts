/** Metrics of job timeouts, under the names of AD-34; gates and managers count their own part. */

import type { TimeoutCount, TimeoutView } from "../../core/cluster/overload/timeout-counters.ts";
import { type Metric, metricFamily } from "../../host/control/prometheus.ts";

const { counter, gauge, labelled } = metricFamily("hyperscale_");

interface Family {
  readonly name: string;
  readonly label: string;
  readonly help: string;
}

const MANAGER: Partial<Record<TimeoutCount, Family>> = {
  checks: {
    ...{ name: "job_timeout_checks_total", label: "strategy" },
    help: "Looks at jobs that might have run out of time",
  },
  detected: {
    ...{ name: "job_timeouts_detected_total", label: "reason" },
    help: "Jobs found to have taken too long, or to be stuck",
  },
  reportsSent: {
    ...{ name: "job_timeout_reports_sent_total", label: "datacenter" },
    help: "Overdue jobs reported to their gates",
  },
  reportsFailed: {
    ...{ name: "job_timeout_reports_failed_total", label: "datacenter" },
    help: "Overdue jobs that no gate decided on",
  },
  fenceRejected: {
    ...{ name: "timeout_fence_token_rejections_total", label: "reason" },
    help: "Decisions of gates about reports of another leader",
  },
  stopped: {
    ...{ name: "timeout_tracking_stopped_total", label: "reason" },
    help: "Clocks that ended, by the end of their jobs",
  },
  cleaned: {
    ...{ name: "worker_extensions_cleaned_total", label: "reason" },
    help: "Workers with more time that are gone",
  },
};

const GATE: Partial<Record<TimeoutCount, Family>> = {
  globalDeclared: {
    ...{ name: "gate_global_timeouts_declared_total", label: "reason" },
    help: "Jobs timed out over all datacenters",
  },
  progressReceived: {
    ...{ name: "gate_dc_progress_reports_received_total", label: "datacenter" },
    help: "Answers about jobs that run",
  },
  timeoutReceived: {
    ...{ name: "gate_dc_timeout_reports_received_total", label: "datacenter" },
    help: "Overdue jobs reported by datacenters",
  },
};

export function timeoutMetrics(
  role: "gate" | "manager",
  { active, counts }: TimeoutView,
): readonly Metric[] {
  const families = Object.entries(role === "gate" ? GATE : MANAGER).map(([of, family]) =>
    labelled("counter", family.name, {
      ...{ help: family.help, label: family.label },
      values: counts[of as TimeoutCount],
    }),
  );
  const clocks = gauge("timeout_strategies_active_count", "Clocks of jobs that run", active);
  if (role === "gate") return [...families, clocks];
  const transfers = counts.leaderTransfers.get("") ?? 0;
  const help = "Clocks that another leader has gone on with";
  return [...families, clocks, counter("timeout_leader_transfers_total", help, transfers)];
}
