/**
 * The public face of the election machine.
 *
 * The driver's contract is that of membership: effects run in order, and after `persistVote` nothing
 * of this machine leaves until the write is durable (E2, E3). If the write fails the process ends.
 */

import type { NodeId, Term } from "../../base/ids.ts";
import type { ElectionConfig } from "./config.ts";
import type { ElectionMessage } from "./messages.ts";

export interface ElectionOptions {
  readonly self: NodeId;
  /** The configured electorate, self included. Liveness never changes it. (AD-3, QUOR-10) */
  readonly voters: readonly NodeId[];
  /** Term and vote on disk; term 0 and no vote on a fresh one. */
  readonly durable: DurableVote;
  readonly config: ElectionConfig;
  /** A higher priority runs earlier. */
  readonly priority: number;
  /** False for a node that holds all state it needs (the first start of a cluster of one). */
  readonly mustSync: boolean;
}

export interface DurableVote {
  readonly term: Term;
  readonly votedFor: NodeId | null;
}

export type ElectionState = "follower" | "preCandidate" | "candidate" | "leader";

/** A joining node is SYNCING until it has the leader's state; it votes, and does not count in data quorums. (MEMB-2) */
export type SyncMode = "syncing" | "active" | "draining";

export type ElectionInput =
  | { readonly kind: "start" }
  | { readonly kind: "tick" }
  | {
      readonly kind: "message";
      readonly from: NodeId;
      /** Digest of the voters that the sender counts. */
      readonly electorate: string;
      readonly message: ElectionMessage;
    }
  /** A member of our group reports, outside elections, which voters it counts. */
  | { readonly kind: "electorate"; readonly from: NodeId; readonly electorate: string }
  /** Local health from membership: the score, and whether we are alive in our own and others' eyes. */
  | { readonly kind: "health"; readonly score: number; readonly alive: boolean }
  /** Give leadership up (draining, degraded, leaving). */
  | { readonly kind: "resign" }
  | { readonly kind: "syncDone" }
  | { readonly kind: "syncFailed" }
  | { readonly kind: "drain" };

export type ElectionEffect =
  | { readonly kind: "send"; readonly to: NodeId; readonly message: ElectionMessage }
  | { readonly kind: "persistVote"; readonly vote: DurableVote }
  | {
      readonly kind: "leaderChanged";
      readonly leader: NodeId | null;
      readonly term: Term;
      readonly why: string;
    }
  | { readonly kind: "becameLeader"; readonly term: Term }
  | { readonly kind: "lostLeadership"; readonly term: Term; readonly why: string }
  /** Ask the leader for state (stream); answer with `syncDone` or `syncFailed`. */
  | { readonly kind: "requestSync"; readonly leader: NodeId }
  | { readonly kind: "modeChanged"; readonly mode: SyncMode }
  | { readonly kind: "flapping"; readonly changes: number; readonly cooldownMs: number }
  | {
      readonly kind: "alarm";
      readonly code: ElectionAlarm;
      readonly from: NodeId;
      readonly about: string;
    };

export type ElectionAlarm =
  | "TERM_JUMP" // a term far above what anyone counted; refused
  | "TERM_EXHAUSTED" // the term is at its bound: nobody can be elected any more
  | "ELECTORATE_MISMATCH"; // a member of the group counts other voters; its votes do not count

export interface ElectionView {
  readonly state: ElectionState;
  readonly mode: SyncMode;
  readonly term: Term;
  readonly votedFor: NodeId | null;
  readonly leader: NodeId | null;
  /** Until when this leader may act, on its own clock; null unless leading with a quorum. (L4) */
  readonly leaseUntil: number | null;
  readonly quorum: number;
  readonly coolingDownUntil: number | null;
  /** Digest of the configured voters. */
  readonly electorate: string;
  /** Count of each alarm, including those suppressed by rate limiting. */
  readonly alarms: ReadonlyMap<ElectionAlarm, number>;
}
