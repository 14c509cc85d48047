/**
 * The numbers of leadership, one table. `standard` is for members near each other and fails over within
 * 3 s, `wide` is for members far apart, `dc` fails over in about a second. (LEAD-14)
 */

import { assert } from "../../base/assert.ts";

export type ElectionProfileName = "standard" | "wide" | "dc";

export interface ElectionConfig {
  readonly heartbeatMs: number;
  /** A leader acts this long after a heartbeat that a quorum acked, measured from when it was sent. */
  readonly leaseMs: number;
  /** Followers keep faith at least this long; must outlast the lease under the worst clock drift. */
  readonly leaderTimeoutMs: number;
  /** Uniform extra on the timeout. */
  readonly leaderTimeoutJitterMs: number;
  readonly preVoteTimeoutMs: number;
  readonly voteTimeoutMs: number;
  /** Delay per point of health score, and head start per point of priority. (LEAD-9) */
  readonly healthStepMs: number;
  readonly priorityStepMs: number;
  /** Members with a higher health score do not run for election. (LEAD-1) */
  readonly healthScoreMax: number;
  /** More changes of leader than this inside the window start a cooldown. (LEAD-12) */
  readonly flapChangesMax: number;
  readonly flapWindowMs: number;
  readonly flapCooldownMs: number;
  readonly flapCooldownMaxMs: number;
  /** Clocks run apart by at most this fraction. */
  readonly clockDriftMax: number;
  readonly syncRetryMs: number;
  /** A node that cannot sync turns active for votes after this many attempts. (C20-15) */
  readonly syncAttemptsMax: number;
}

const common = {
  healthScoreMax: 4,
  flapChangesMax: 4,
  flapWindowMs: 60_000,
  flapCooldownMs: 30_000,
  flapCooldownMaxMs: 120_000,
  clockDriftMax: 0.1,
  syncAttemptsMax: 5,
} as const;

export const ELECTION_PROFILES: Readonly<Record<ElectionProfileName, ElectionConfig>> = {
  standard: {
    ...common,
    heartbeatMs: 500,
    leaseMs: 1_600,
    leaderTimeoutMs: 2_000,
    leaderTimeoutJitterMs: 600,
    preVoteTimeoutMs: 500,
    voteTimeoutMs: 500,
    healthStepMs: 100,
    priorityStepMs: 100,
    syncRetryMs: 1_000,
  },
  wide: {
    ...common,
    heartbeatMs: 2_000,
    leaseMs: 8_000,
    leaderTimeoutMs: 10_000,
    leaderTimeoutJitterMs: 4_000,
    preVoteTimeoutMs: 4_000,
    voteTimeoutMs: 4_000,
    healthStepMs: 400,
    priorityStepMs: 400,
    syncRetryMs: 2_000,
  },
  dc: {
    ...common,
    heartbeatMs: 150,
    leaseMs: 550,
    leaderTimeoutMs: 700,
    leaderTimeoutJitterMs: 400,
    preVoteTimeoutMs: 200,
    voteTimeoutMs: 200,
    healthStepMs: 50,
    priorityStepMs: 50,
    syncRetryMs: 500,
  },
};

/** The election that goes with a profile of membership: what an agent of that profile runs. */
export const ELECTION_OF: Readonly<Record<"lan" | "wan" | "local" | "dc", ElectionProfileName>> = {
  lan: "standard",
  wan: "wide",
  local: "dc",
  dc: "dc",
};

export function checkElectionConfig(config: ElectionConfig): void {
  assert(config.heartbeatMs * 2 < config.leaseMs, "a lease survives one lost heartbeat");
  // L4: the holder's belief ends before a quorum's promise does, even if our clock is slow and theirs fast.
  const promiseMs = config.leaderTimeoutMs * (1 - config.clockDriftMax);
  const beliefMs = config.leaseMs * (1 + config.clockDriftMax);
  assert(beliefMs < promiseMs, "the leader's lease ends before its followers' patience");
  assert(config.flapCooldownMs <= config.flapCooldownMaxMs, "cooldown grows up to its maximum");
}
