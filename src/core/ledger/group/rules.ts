/**
 * Replication rules that can be disabled one at a time. Production always runs with all of them; the simulator flips
 * one to plant a mutant and shows that its checkers detect it. The names S-1..21 are those of the audit of the first
 * design (docs/internals/vsr.md).
 */

export interface VsrRules {
  /** No primary without grants of a quorum. (S-1, VSR-13) */
  readonly viewChangeQuorum: boolean;
  /** The new primary takes over the chosen log. (S-2, VSR-14) */
  readonly adoptLog: boolean;
  /** A replica has the whole log of a view before it acks in it. (S-3, VSR-15) */
  readonly installBeforeAck: boolean;
  /** Logs are compared by their last normal view first, then by length. (S-4, VSR-14) */
  readonly adoptByNormalView: boolean;
  /** A view has one owner; messages of another sender for it are ignored. (S-5, VSR-2) */
  readonly ownerByView: boolean;
  /** A lease comes from a quorum's promises, never from oneself. (S-6, VSR-20) */
  readonly leaseFromQuorum: boolean;
  /** A replica that made a promise grants no higher view until the promise expires. (VSR-12, VSR-20) */
  readonly promiseHonoured: boolean;
  /** Old views are not granted. (S-7, VSR-12) */
  readonly staleViewRefused: boolean;
  /** A granted view is durable before the grant is sent. (S-8, VSR-4) */
  readonly promiseDurable: boolean;
  /** A checkpoint keeps the promised view, not only the one that was entered. (VSR-4) */
  readonly checkpointKeepsPromise: boolean;
  /** A replica that promised a higher view acks nothing of the view it left. (VSR-12) */
  readonly leftViewNotAcked: boolean;
  /** An entry is durable before its ack. (S-8, VSR-3) */
  readonly ackAfterDurable: boolean;
  /** The primary logs its entries too, and counts itself after that only. (S-9, VSR-7) */
  readonly primaryLogs: boolean;
  /** A quorum is a majority of the configured replicas. (S-10, VSR-6) */
  readonly majorityQuorum: boolean;
  /** Sequence numbers go on over views. (S-11, VSR-1) */
  readonly seqContinues: boolean;
  /** A view is entered by installing its log, not by hearing of it. (S-12, VSR-8) */
  readonly joinByInstall: boolean;
  /** Acks count in the view they were given in. (VSR-10) */
  readonly ackOfThisView: boolean;
  /** Committed entries are applied in order, once. (S-16, VSR-17) */
  readonly applyInOrder: boolean;
  /** A strong read asks a quorum whether the view is still current. (S-18, VSR-24) */
  readonly readRound: boolean;
  /** A strong read waits for a commit of the primary's own view. (S-18, VSR-24) */
  readonly readAfterOwnCommit: boolean;
  /** A restarted primary needs a new view. (VSR-30) */
  readonly restartedNeedsNewView: boolean;
  /** Nothing follows a reconfiguration in its epoch. (VSR-27) */
  readonly reconfigureIsLast: boolean;
  /** A new replica votes only once it has the log. (VSR-27) */
  readonly learnersDoNotVote: boolean;
  /** Messages of other epochs are refused. (VSR-27) */
  readonly epochChecked: boolean;
  /** A primary that resigned a view no longer leads it, and its lease is void. (VSR-16) */
  readonly resignedIsOver: boolean;
  /** A successor waits for a quorum to learn what is committed, like any candidate. (VSR-13) */
  readonly successorAsks: boolean;
  /** A primary that slept asks a quorum before its first read: another may lead by now. (VSR-24) */
  readonly wokenAsks: boolean;
}

export const VSR_RULES: VsrRules = {
  viewChangeQuorum: true,
  adoptLog: true,
  installBeforeAck: true,
  adoptByNormalView: true,
  ownerByView: true,
  leaseFromQuorum: true,
  promiseHonoured: true,
  staleViewRefused: true,
  promiseDurable: true,
  checkpointKeepsPromise: true,
  leftViewNotAcked: true,
  ackAfterDurable: true,
  primaryLogs: true,
  majorityQuorum: true,
  seqContinues: true,
  joinByInstall: true,
  ackOfThisView: true,
  applyInOrder: true,
  readRound: true,
  readAfterOwnCommit: true,
  restartedNeedsNewView: true,
  reconfigureIsLast: true,
  learnersDoNotVote: true,
  epochChecked: true,
  resignedIsOver: true,
  successorAsks: true,
  wokenAsks: true,
};
