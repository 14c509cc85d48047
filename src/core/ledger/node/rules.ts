/** Rules of a node, beside those of its groups and shards, that can be disabled one at a time. */

export interface NodeRules {
  /** A peer is accepted only with the data directory it first used. (VSR-30) */
  readonly identityPinned: boolean;
  /** A node that joined takes no part before most of its peers know its data directory. (VSR-30) */
  readonly joinerWaits: boolean;
  /** An event with a condition changes its job only if the condition holds at its place. (VSR-32) */
  readonly conditionsJudged: boolean;
  /** A session's read waits for the place its client has seen. (SESS-1, SESS-3) */
  readonly sessionsWait: boolean;
  /** A cancel that was passed on is proposed until it is decided. (G-18) */
  readonly cancelsKept: boolean;
  /** A watcher without credit receives missed events later, starting at its own position. */
  readonly watchKeepsPlace: boolean;
  /** An event that comes again is known for a repetition, however long ago it came first. (EVT-2) */
  readonly oldEventsKnown: boolean;
  /** An operation of a registered kind that comes again changes its group once. (EVT-2) */
  readonly operationsOnce: boolean;
}

export const NODE_RULES: NodeRules = {
  identityPinned: true,
  joinerWaits: true,
  conditionsJudged: true,
  sessionsWait: true,
  cancelsKept: true,
  watchKeepsPlace: true,
  oldEventsKnown: true,
  operationsOnce: true,
};
