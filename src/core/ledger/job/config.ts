/** The numbers of jobs: how nodes compare them, and where their replicas go. */

import { assert } from "../../base/assert.ts";

export interface AntiEntropyConfig {
  /** Milliseconds between two comparisons with one peer. A comparison of equal trees is one message. */
  readonly intervalMs: number;
  /** The interval varies by up to this fraction, both ways, so that nodes do not compare in step. */
  readonly intervalJitter: number;
  /** Milliseconds without progress after which a round is given up; the next starts afresh. (AE-5) */
  readonly stepTimeoutMs: number;
  /** Minimum milliseconds between two rounds with one peer, whatever triggers them. */
  readonly roundGapMs: number;
  /** Divergent leaves repaired in one round; the rest waits for the next. */
  readonly leavesPerRoundMax: number;
  /** Jobs of one leaf in one message. */
  readonly leafPageJobs: number;
  /** Jobs whose suffix is being fetched at once. */
  readonly fetchesMax: number;
}

export const ANTI_ENTROPY_DEFAULTS: AntiEntropyConfig = {
  intervalMs: 60_000,
  intervalJitter: 0.2,
  stepTimeoutMs: 10_000,
  roundGapMs: 1_000,
  leavesPerRoundMax: 64,
  leafPageJobs: 256,
  fetchesMax: 16,
};

export function checkAntiEntropyConfig(config: AntiEntropyConfig): void {
  const { intervalMs, intervalJitter, stepTimeoutMs, roundGapMs } = config;
  assert(intervalMs > 0 && stepTimeoutMs > 0, "a comparison takes time");
  assert(intervalJitter >= 0 && intervalJitter < 1, "jitter leaves an interval");
  assert(roundGapMs <= intervalMs * (1 - intervalJitter), "the gap fits into the interval");
  assert(config.leavesPerRoundMax >= 1 && config.leafPageJobs >= 1, "a round repairs something");
  assert(config.fetchesMax >= 1, "a divergent job can be fetched");
}

export interface PlacementConfig {
  /** Per group, odd. */
  readonly replicas: number;
  /** With fewer than three gates: one replica without a GLOBAL claim, or no group at all. (VSR-28) */
  readonly fewGates: "single" | "refuse";
}
