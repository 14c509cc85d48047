/**
 * The rules of membership that can be broken one at a time. Production always runs with all of them;
 * the simulator flips one to plant a mutant and shows that its checkers see the difference.
 */

export interface SwimRules {
  /** Alive at an equal incarnation never wins. (B-27, SWIM-9) */
  readonly equalAliveLoses: boolean;
  /** Suspect and dead below the known incarnation are ignored. (B-32) */
  readonly staleAccusationIgnored: boolean;
  /** A refutation is above the accusation, not only above our own number. (B-34) */
  readonly refuteAboveAccusation: boolean;
  /** A start continues above the persisted ceiling. (SWIM-10) */
  readonly resumeAboveCeiling: boolean;
  /** The ceiling is written before a higher incarnation is announced. */
  readonly persistBeforeTelling: boolean;
  /** Evidence about a dead member raises the stored incarnation. (B-36) */
  readonly deadEvidenceRaises: boolean;
  /** The dead and the missing seeds are tried again, for ever. (B-52a) */
  readonly reconnect: boolean;
  /** A dead line of a push/pull only suspects. (B-38) */
  readonly syncDeadSuspects: boolean;
  /** One accuser counts once. (B-3, HFD-12) */
  readonly accusersDistinct: boolean;
  /** A failed probe asks helpers. (B-17) */
  readonly askHelpers: boolean;
  /** A suspect can still be cleared: a refutation cancels the clock. (B-8, B-28) */
  readonly refutationClears: boolean;
  /** We answer only pings that name us. (B-21) */
  readonly pingNamesTarget: boolean;
  /** Acks are matched with the round they answer. (B-23) */
  readonly ackMatchesRound: boolean;
  /** A leaving member does not refute its own departure. (B-37) */
  readonly leaveIsFinal: boolean;
  /** Unconfirmed members are never accused. (CONF-2) */
  readonly unconfirmedProtected: boolean;
  /** A stalled loop discounts its own probes and clocks. (1.7) */
  readonly lagDiscounted: boolean;
  /** Each update is sent up to its limit, not once. */
  readonly retransmit: boolean;
  /** Stale embedded states are refused. (EMB-5) */
  readonly statesVersioned: boolean;
  /** The suspicion timeout waits for its deadline. */
  readonly suspicionWaits: boolean;
  /** The queue and the tables stay within their caps. (M6) */
  readonly boundsHeld: boolean;
  /** Refuting announces the new incarnation. */
  readonly refutationTold: boolean;
}

export const SWIM_RULES: SwimRules = {
  equalAliveLoses: true,
  staleAccusationIgnored: true,
  refuteAboveAccusation: true,
  resumeAboveCeiling: true,
  persistBeforeTelling: true,
  deadEvidenceRaises: true,
  reconnect: true,
  syncDeadSuspects: true,
  accusersDistinct: true,
  askHelpers: true,
  refutationClears: true,
  pingNamesTarget: true,
  ackMatchesRound: true,
  leaveIsFinal: true,
  unconfirmedProtected: true,
  lagDiscounted: true,
  retransmit: true,
  statesVersioned: true,
  suspicionWaits: true,
  boundsHeld: true,
  refutationTold: true,
};
