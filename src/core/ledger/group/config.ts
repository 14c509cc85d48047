/** The numbers of replication, one table. */

import { assert } from "../../base/assert.ts";

/**
 * All replicas of a group should have the same numbers; `leaseMs`, `clockDriftMax` and `leaseMarginMs`
 * must be the same where `leaseReads` is on.
 */
export interface VsrConfig {
  /**
   * How long a replica that acked a message promises to grant no higher view, in milliseconds on its own clock. After a
   * crash of the primary the group has no leader for about this long. 0 switches leases off: then a silent primary is
   * replaced after two heartbeats. Safety does not depend on it unless `leaseReads` is on. (VSR-20)
   */
  readonly leaseMs: number;
  /**
   * Any two clocks run apart by at most this fraction of the time that passes. Read only where the
   * primary works out until when its lease holds. Do not lower it below what the machines guarantee.
   */
  readonly clockDriftMax: number;
  /** Milliseconds by which a primary ends its own lease early, as margin for rounding and timer lag. */
  readonly leaseMarginMs: number;
  /**
   * Milliseconds between heartbeats of an idle primary; at most a third of the lease, so that two may
   * be lost. Every group sends them, so a node with many groups pays for a small value. (VSR-21)
   */
  readonly renewMs: number;
  /**
   * Milliseconds between heartbeats while entries or reads wait for a quorum, so that lost messages are requested
   * again; also the minimum time between two answers to the same gap. Keep it above the round trip between replicas, or
   * everything is sent twice.
   */
  readonly retransmitMs: number;
  /** Replicas learn of a commit at the latest this many milliseconds after it, when nothing else is sent. */
  readonly commitNoticeMs: number;
  /** Milliseconds after which a candidate without a quorum gives up and takes a higher view. */
  readonly viewChangeTimeoutMs: number;
  /** Upper bound in milliseconds of the uniform pause before the next attempt; keeps candidates apart. */
  readonly viewChangeBackoffMs: number;
  /**
   * The i-th backup waits i times this many milliseconds after the lease expired before it runs for a view. Keep it
   * above the round trip, or backups compete with each other. (VSR-19)
   */
  readonly rankDelayMs: number;
  /** Milliseconds after which an unanswered request for a log is repeated. */
  readonly fetchRetryMs: number;
  /**
   * Entries that a primary keeps in flight, that is proposed and not committed. It bounds memory and
   * the throughput of one group: at most `windowEntries` per round trip. (VSR-33)
   */
  readonly windowEntries: number;
  /** Bytes of these entries; whichever bound is met first stops proposals. */
  readonly windowBytes: number;
  /** Entries of one message; at most the window. */
  readonly batchEntries: number;
  /** Bytes of one message, but for a single entry that is larger. */
  readonly batchBytes: number;
  /**
   * Answer strong reads from the lease alone, without asking a quorum. Leave it off: a machine that is
   * suspended and resumed believes in a lease that is over, and its reads are then stale. (VSR-25)
   */
  readonly leaseReads: boolean;
  /**
   * Milliseconds without work after which a group sleeps: no heartbeat, no timer, until the first request
   * or message. Lower: less to do for idle jobs, and more that have to be woken. Infinite: never.
   */
  readonly idleMs: number;
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
  idleMs: 30_000,
  tailEntries: 256,
};

/** Relations between the numbers; a replica with a configuration that breaks one is never made. */
export function checkVsrConfig(config: VsrConfig): void {
  const { leaseMs, renewMs, retransmitMs, clockDriftMax, leaseMarginMs } = config;
  assert(renewMs > 0, "a primary does not send heartbeats without a pause");
  assert(leaseMs === 0 || renewMs * 3 <= leaseMs, "a lease is renewed three times before it ends");
  assert(retransmitMs <= renewMs, "what was lost is repeated before the next idle heartbeat");
  assert(clockDriftMax >= 0 && clockDriftMax < 1, "the clock drift is a fraction");
  assert(
    leaseMs === 0 || leaseMarginMs < leaseMs * (1 - clockDriftMax),
    "drift and margin leave something of a lease",
  );
  assert(config.batchEntries >= 1 && config.batchBytes > 0, "a message holds an entry");
  assert(config.batchEntries <= config.windowEntries, "a message holds no more than the window");
  assert(config.windowBytes > 0, "the window has room");
  assert(config.idleMs >= renewMs, "a group that sleeps has been idle for a heartbeat");
  assert(config.tailEntries >= 0, "the tail of a log has a length");
  assert(!config.leaseReads || leaseMs > 0, "reads by lease need a lease");
}
