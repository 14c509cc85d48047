/**
 * Election messages: pre-votes, votes, heartbeats and their acks. All are datagrams; all carry the sender's term, and a
 * pre-vote carries the term it would have. (C20-14)
 */

import type { NodeId, Term } from "../../base/ids.ts";

export type ElectionMessage =
  | {
      /** "Would you vote for me?" Changes no term on either side. (LEAD-2) */
      readonly kind: "preVote";
      /** The term the candidate would take: its own + 1. */
      readonly term: Term;
      /** Pairs the reply with this attempt. */
      readonly round: number;
    }
  | {
      readonly kind: "preVoteReply";
      /** The voter's own term. */
      readonly term: Term;
      readonly round: number;
      readonly granted: boolean;
    }
  | { readonly kind: "vote"; readonly term: Term; readonly round: number }
  | {
      readonly kind: "voteReply";
      readonly term: Term;
      readonly round: number;
      readonly granted: boolean;
    }
  | {
      /** The leader is alive; renews its lease when a quorum acks. */
      readonly kind: "heartbeat";
      readonly term: Term;
      readonly sequence: number;
    }
  | { readonly kind: "heartbeatAck"; readonly term: Term; readonly sequence: number }
  | {
      /** The leader gives up its lease now: followers may elect at once. */
      readonly kind: "stepDown";
      readonly term: Term;
    };

export interface ElectionPacket {
  readonly from: NodeId;
  /** Which group elects: managers of one datacenter, gates. */
  readonly group: string;
  /** Digest of the voters that the sender counts; empty if the sender does not report it. */
  readonly electorate: string;
  readonly message: ElectionMessage;
}

export const GROUP_BYTES_MAX = 64;
/** Odd sizes make sense; more than this many voters slow every decision for no gain. */
export const VOTERS_MAX = 31;
