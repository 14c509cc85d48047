/**
 * What a gate keeps of its jobs' statistics: the aggregates of the last hour per job and datacenter, for
 * status pages and reports. One datacenter sends two a second, so an hour of it is some thousand numbers.
 */

import type { StatsConfig } from "./config.ts";
import type { JobId } from "./job-id.ts";
import type { AggregatedJobStats } from "./stats.ts";

export type GateStatsEffect = {
  readonly kind: "log";
  readonly path: string;
  readonly record: AggregatedJobStats;
};

interface JobHistory {
  /** In the order of arrival; times are the gate's own. */
  readonly rows: { readonly at: number; readonly stats: AggregatedJobStats }[];
  readonly latest: Map<string, AggregatedJobStats>;
}

export class GateStats {
  readonly #config: StatsConfig;
  readonly #jobs = new Map<JobId, JobHistory>();

  constructor(config: StatsConfig) {
    this.#config = config;
  }

  get sizes(): { readonly jobs: number; readonly rows: number } {
    let rows = 0;
    for (const job of this.#jobs.values()) rows += job.rows.length;
    return { jobs: this.#jobs.size, rows };
  }

  /** `at` is the gate's clock: managers' clocks do not decide how long something is kept. */
  add(stats: AggregatedJobStats, at: number): readonly GateStatsEffect[] {
    const known = this.#jobs.get(stats.jobId);
    if (known === undefined && this.#jobs.size >= this.#config.jobsMax) return [];
    const job: JobHistory = known ?? { rows: [], latest: new Map() };
    this.#jobs.set(stats.jobId, job);
    job.rows.push({ at, stats });
    if (job.rows.length > this.#config.gateRowsPerJobMax) job.rows.shift();
    job.latest.set(stats.dcId, stats);
    const { gateStatsUseLogger, statsLogPath } = this.#config;
    return gateStatsUseLogger ? [{ kind: "log", path: statsLogPath, record: stats }] : [];
  }

  /** The newest word of each datacenter. */
  latest(jobId: JobId): readonly AggregatedJobStats[] {
    return [...(this.#jobs.get(jobId)?.latest.values() ?? [])];
  }

  history(jobId: JobId, from: number, to: number): readonly AggregatedJobStats[] {
    const rows = this.#jobs.get(jobId)?.rows ?? [];
    return rows.filter(({ at }) => at >= from && at <= to).map(({ stats }) => stats);
  }

  /** Forgets what is older than the retention, and jobs of which nothing is left. */
  prune(now: number): void {
    const oldest = now - this.#config.gateStatsRetentionMs;
    for (const [jobId, job] of this.#jobs) {
      const keep = job.rows.findIndex(({ at }) => at >= oldest);
      if (keep < 0) this.#jobs.delete(jobId);
      else if (keep > 0) job.rows.splice(0, keep);
    }
  }
}
