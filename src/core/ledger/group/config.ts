/** The numbers of replication, one table. */

import { assert } from "../../base/assert.ts";

export interface VsrConfig {
  /** How long a replica that acked promises to grant no higher view; 0 switches leases off. (VSR-20) */
  readonly leaseMs: number;
  /** Any two clocks run apart by at most this fraction. */
  readonly clockDriftMax: number;
  readonly leaseMarginMs: number;
  /** Heartbeat of an idle primary; at most a third of the lease. (VSR-21) */
  readonly renewMs: number;
  /** Heartbeat while entries wait for a quorum, so that what was lost is asked for again. */
  readonly retransmitMs: number;
  /** Replicas learn of a commit at the latest this long after it, when nothing else is sent. */
  readonly commitNoticeMs: number;
  /** A candidate gives up and takes a higher view after this. */
  readonly viewChangeTimeoutMs: number;
  /** Uniform extra before the next attempt. */
  readonly viewChangeBackoffMs: number;
  /** The i-th backup waits i times this after the lease ran out. (VSR-19) */
  readonly rankDelayMs: number;
  /** An unanswered request for a log is repeated after this. */
  readonly fetchRetryMs: number;
  /** Entries and bytes a primary keeps in flight. (VSR-33) */
  readonly windowEntries: number;
  readonly windowBytes: number;
  /** Entries and bytes of one message. */
  readonly batchEntries: number;
  readonly batchBytes: number;
  /** Answer strong reads from the lease alone. Off: unsafe after a machine was suspended. (VSR-25) */
  readonly leaseReads: boolean;
  /** Log entries kept below a snapshot, so that a replica slightly behind needs no snapshot. */
  readonly tailEntries: number;
}

export const VSR_DEFAULTS: VsrConfig = {
  leaseMs: 10_000,
  clockDriftMax: 0.01,
  leaseMarginMs: 100,
  renewMs: 3_000,
  retransmitMs: 500,
  commitNoticeMs: 100,
  viewChangeTimeoutMs: 10_000,
  viewChangeBackoffMs: 2_000,
  rankDelayMs: 500,
  fetchRetryMs: 500,
  // At 80 ms of round trip 25,000 commits a second; 1,024 would be the least for 10,000.
  windowEntries: 2_048,
  windowBytes: 4 * 1_048_576,
  batchEntries: 256,
  batchBytes: 262_144,
  leaseReads: false,
  tailEntries: 256,
};

export function checkVsrConfig(config: VsrConfig): void {
  const { leaseMs, renewMs, retransmitMs } = config;
  assert(leaseMs === 0 || renewMs * 3 <= leaseMs, "a lease is renewed three times before it ends");
  assert(retransmitMs <= renewMs, "what was lost is repeated before the next idle heartbeat");
  assert(config.batchEntries <= config.windowEntries, "a message holds no more than the window");
  assert(!config.leaseReads || leaseMs > 0, "reads by lease need a lease");
}
