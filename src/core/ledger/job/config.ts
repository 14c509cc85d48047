/** Numbers around a job, one table. What a job or an event may weigh stands in `limits.ts`. */

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

export interface PlacementConfig {
  readonly replicas: number;
  /** With fewer than three gates: one replica without a GLOBAL claim, or no group at all. (VSR-28) */
  readonly fewGates: "single" | "refuse";
}

export const LEDGER_DEFAULTS: {
  readonly ackWindow: AckWindowConfig;
  readonly breaker: BreakerConfig;
  readonly antiEntropy: AntiEntropyConfig;
} = {
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
  antiEntropy: {
    intervalMs: 60_000,
    intervalJitter: 0.2,
    stepTimeoutMs: 10_000,
    roundGapMs: 1_000,
    leavesPerRoundMax: 64,
    leafPageJobs: 256,
    fetchesMax: 16,
  },
};
