/**
 * The rules of leadership that can be broken one at a time. Production always runs with all of them;
 * the simulator flips one to plant a mutant and shows that its checkers see the difference.
 */

export interface ElectionRules {
  /** One vote per term. (E2) */
  readonly oneVotePerTerm: boolean;
  /** Term and vote are durable before any message that depends on them. (E2, E3) */
  readonly persistVotes: boolean;
  /** Decisions need a majority of the configured voters. (E4) */
  readonly quorumConfigured: boolean;
  /** One voter counts once. */
  readonly votersDistinct: boolean;
  /** A candidate requests pre-votes first. (AD-5.1) */
  readonly preVoteFirst: boolean;
  /** A pre-vote changes no term. (E5) */
  readonly preVoteKeepsTerm: boolean;
  /** Neither pre-votes nor votes are granted against a live lease. (LEAD-3, L4) */
  readonly promiseHonoured: boolean;
  /** After a restart a voter waits as if it had just promised. */
  readonly restartWaits: boolean;
  /** A leader that lost its quorum stops. (E7) */
  readonly stepDownWithoutQuorum: boolean;
  /** A higher term always wins. (LEAD-4) */
  readonly higherTermWins: boolean;
  /** The lease counts from when a heartbeat was sent, not from when its acks came. (L4) */
  readonly leaseFromSend: boolean;
  /** Replies count only for the round and term they answer. */
  readonly repliesMatchRound: boolean;
  /** Unhealthy members do not run for election. (LEAD-1) */
  readonly healthGate: boolean;
  /** Heartbeats of older terms are refused. */
  readonly staleLeaderRefused: boolean;
}

export const ELECTION_RULES: ElectionRules = {
  oneVotePerTerm: true,
  persistVotes: true,
  quorumConfigured: true,
  votersDistinct: true,
  preVoteFirst: true,
  preVoteKeepsTerm: true,
  promiseHonoured: true,
  restartWaits: true,
  stepDownWithoutQuorum: true,
  higherTermWins: true,
  leaseFromSend: true,
  repliesMatchRound: true,
  healthGate: true,
  staleLeaderRefused: true,
};
