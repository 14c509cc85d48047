/**
 * The numbers of the ledger, one table; times in milliseconds. What a job or an event may weigh
 * stands in `limits.ts`.
 */

import { assert } from "../../base/assert.ts";
import { HLC_DRIFT_MS_MAX } from "../../base/hlc.ts";

export interface PipelineConfig {
  /** After this long a level that was not reached is "outcome unknown", never "failed". (PIPE-3) */
  readonly regionalTimeoutMs: number;
  readonly globalTimeoutMs: number;
  /** Proposals are repeated until confirmed, with waits doubling from the first to the last. (PIPE-4) */
  readonly retryMsFirst: number;
  readonly retryMsMax: number;
  /** Each wait is longer by up to this fraction, so that many do not come at once. */
  readonly retryJitter: number;
  /** Entries not yet confirmed at their last level. Beyond it submissions are refused. */
  readonly entriesMax: number;
}

export interface AckWindowConfig {
  readonly initialWindowMs: number;
  readonly extensionsMax: number;
  readonly extensionMs: number;
  readonly healthCheckOnExpire: boolean;
  /** A health check without an answer by then counts as unhealthy. */
  readonly healthCheckTimeoutMs: number;
  readonly windowsMax: number;
}

export interface BreakerConfig {
  readonly failureThreshold: number;
  readonly successThreshold: number;
  readonly openTimeoutMs: number;
  readonly halfOpenProbesMax: number;
  readonly queueMax: number;
  readonly queueTimeoutMs: number;
  /** Queued operations per replay message: one at a time would not drain 1,000 in 60 s over a long way. */
  readonly replayBatchMax: number;
  readonly inFlightMax: number;
}

export interface StatsConfig {
  readonly workerBatchIntervalMs: number;
  readonly workerBatchEventsMax: number;
  readonly managerAggregateIntervalMs: number;
  readonly managerSampleRate: number;
  readonly gateStatsRetentionMs: number;
  /** Two a second of some seven datacenters; beyond it the oldest go before their time. */
  readonly gateRowsPerJobMax: number;
  readonly gateStatsUseLogger: boolean;
  readonly statsLogPath: string;
  /** Workflows of one job whose status is remembered apart; beyond it they are counted, not told apart. */
  readonly workflowsPerJobMax: number;
  readonly jobsMax: number;
  /** Detailed samples per job and window. */
  readonly samplesMax: number;
}

export interface AntiEntropyConfig {
  readonly intervalMs: number;
  /** The interval varies by up to this fraction, both ways. */
  readonly intervalJitter: number;
  /** A round without any progress for this long is given up; the next one starts afresh. (AE-5) */
  readonly stepTimeoutMs: number;
  /** Two rounds with one peer are at least this far apart, whatever asks for them. */
  readonly roundGapMs: number;
  /** Divergent leaves repaired in one round; the rest waits for the next. */
  readonly leavesPerRoundMax: number;
  /** Jobs of one leaf in one message. */
  readonly leafPageJobs: number;
  /** Jobs whose suffix is being fetched at once. */
  readonly fetchesMax: number;
}

export interface SessionConfig {
  readonly stalenessMs: number;
  /** Jobs a session remembers having written, and having read. */
  readonly jobsMax: number;
}

export interface ArchiveConfig {
  /** A job is archived this long after it ended. (G-14) */
  readonly archiveAfterMs: number;
  /** Null: archived jobs are kept for ever. */
  readonly retentionMs: number | null;
  /** (job, event) pairs kept in memory. (LEDG-8) */
  readonly historyMax: number;
  readonly auditRowsMax: number;
}

export interface PlacementConfig {
  readonly replicas: number;
  /** With fewer than three gates: one replica without a GLOBAL claim, or no group at all. (VSR-28) */
  readonly fewGates: "single" | "refuse";
}

export interface LedgerConfig {
  readonly hlcDriftMsMax: number;
  readonly pipeline: PipelineConfig;
  readonly ackWindow: AckWindowConfig;
  readonly breaker: BreakerConfig;
  readonly stats: StatsConfig;
  readonly antiEntropy: AntiEntropyConfig;
  readonly session: SessionConfig;
  readonly archive: ArchiveConfig;
  readonly placement: PlacementConfig;
}

export const LEDGER_DEFAULTS: LedgerConfig = {
  hlcDriftMsMax: HLC_DRIFT_MS_MAX,
  pipeline: {
    regionalTimeoutMs: 5_000,
    globalTimeoutMs: 30_000,
    retryMsFirst: 1_000,
    retryMsMax: 30_000,
    retryJitter: 0.2,
    entriesMax: 100_000,
  },
  ackWindow: {
    initialWindowMs: 5_000,
    extensionsMax: 3,
    extensionMs: 5_000,
    healthCheckOnExpire: true,
    healthCheckTimeoutMs: 1_000,
    windowsMax: 200_000,
  },
  breaker: {
    failureThreshold: 5,
    successThreshold: 3,
    openTimeoutMs: 30_000,
    halfOpenProbesMax: 1,
    queueMax: 1_000,
    queueTimeoutMs: 60_000,
    replayBatchMax: 64,
    inFlightMax: 1_024,
  },
  stats: {
    workerBatchIntervalMs: 100,
    workerBatchEventsMax: 1_000,
    managerAggregateIntervalMs: 500,
    managerSampleRate: 0.1,
    gateStatsRetentionMs: 3_600_000,
    gateRowsPerJobMax: 50_000,
    gateStatsUseLogger: true,
    statsLogPath: "hyperscale.stats.log.json",
    workflowsPerJobMax: 100_000,
    jobsMax: 10_000,
    samplesMax: 1_000,
  },
  antiEntropy: {
    intervalMs: 60_000,
    intervalJitter: 0.2,
    stepTimeoutMs: 10_000,
    roundGapMs: 1_000,
    leavesPerRoundMax: 64,
    leafPageJobs: 256,
    fetchesMax: 16,
  },
  session: { stalenessMs: 1_000, jobsMax: 1_024 },
  archive: {
    archiveAfterMs: 24 * 3_600_000,
    retentionMs: null,
    historyMax: 10_000,
    auditRowsMax: 10_000,
  },
  placement: { replicas: 3, fewGates: "single" },
};

/** Relations that must hold between the numbers, whoever changed them. */
export function checkLedgerConfig(config: LedgerConfig): void {
  const { ackWindow, antiEntropy, breaker, pipeline, placement, stats } = config;
  assert(pipeline.retryMsFirst > 0, "a retry waits");
  assert(pipeline.retryMsFirst <= pipeline.retryMsMax, "waits grow up to their maximum");
  assert(ackWindow.initialWindowMs > 0 && ackWindow.extensionMs > 0, "an ack window has a length");
  assert(breaker.failureThreshold >= 1, "a breaker opens after at least one failure");
  assert(breaker.successThreshold >= 1, "a breaker closes after at least one success");
  assert(breaker.halfOpenProbesMax === 1, "one probe at a time keeps queued operations in order");
  assert(breaker.replayBatchMax >= 1, "a replay moves something");
  assert(stats.managerSampleRate >= 0 && stats.managerSampleRate <= 1, "a sample rate is a share");
  assert(stats.workerBatchIntervalMs > 0, "a worker's batch takes time");
  assert(stats.managerAggregateIntervalMs > 0, "an aggregate covers time");
  assert(antiEntropy.intervalJitter < 1, "jitter leaves an interval");
  assert(placement.replicas % 2 === 1, "a group has an odd number of replicas");
}
