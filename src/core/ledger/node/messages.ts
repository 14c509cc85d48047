/**
 * Client requests to the ledger, its answers, and the messages between its nodes. A request may reach any node: that
 * node finds the group's primary and relays the answer.
 */

import type { NodeId } from "../../base/ids.ts";
import type { GroupId, VsrMessage } from "../group/messages.ts";
import type { AntiEntropyMessage } from "../job/anti-entropy.ts";
import type { ConditionFailure } from "../job/condition.ts";
import type { Durability } from "../job/durability.ts";
import type { JobCreated, JobEvent } from "../job/events.ts";
import type { JobId } from "../job/job-id.ts";
import type { JobState } from "../job/job-state.ts";
import type { SubmissionAnswer } from "../keys/decide.ts";
import type { WatchItem, WatchRequest } from "./watch.ts";

/** The four read levels. (SESS-1..4) */
export type ReadLevel = "EVENTUAL" | "SESSION" | "BOUNDED_STALENESS" | "STRONG";

export const READ_LEVELS: readonly ReadLevel[] = [
  "EVENTUAL",
  "SESSION",
  "BOUNDED_STALENESS",
  "STRONG",
];

export type LedgerRequest =
  /** Create a job. With a key it is created once however often it is sent; empty: without that promise. */
  | {
      readonly kind: "submit";
      readonly key: string;
      readonly spec: Uint8Array;
      readonly assignedDcs: readonly string[];
    }
  /**
   * Any later event. Fence and time are set by the primary; those in the event name its origin. If its condition is
   * false the answer is "conflict".
   */
  | { readonly kind: "append"; readonly event: JobEvent; readonly durability: Durability }
  | {
      readonly kind: "read";
      readonly jobId: JobId;
      readonly level: ReadLevel;
      /** SESSION: at least this much must be folded in. */
      readonly minSeq: number;
      /** BOUNDED_STALENESS: how old the answer may be. */
      readonly staleMs: number;
    }
  /** An operation of a group of a registered kind. */
  | {
      readonly kind: "propose";
      readonly group: GroupId;
      readonly eventId: string;
      readonly data: Uint8Array;
      /**
       * Replicas that found the group if it is new; empty: it must exist. A founder must always name the same replicas,
       * from configuration or from what another group has committed. (VSR-26)
       */
      readonly members: readonly NodeId[];
    }
  /** The whole state of a group of a registered kind, confirmed by a quorum. */
  | { readonly kind: "inspect"; readonly group: GroupId }
  /** One replica of a group is replaced by another node. (VSR-27) */
  | {
      readonly kind: "replace";
      readonly group: GroupId;
      readonly eventId: string;
      readonly leaving: NodeId;
      readonly joining: NodeId;
    };

/** Requests from one node to another. */
export type PeerRequest =
  | LedgerRequest
  /** Start the job's group with this event as entry 0, or confirm that it exists. (IDEM-22) */
  | {
      readonly kind: "found";
      readonly members: readonly NodeId[];
      readonly created: JobCreated;
      readonly required: Durability;
    };

export type LedgerAnswer =
  | {
      readonly kind: "committed";
      readonly jobId: string;
      readonly eventId: string;
      readonly seq: number;
      /** Effect of the event: applied, noop, rejected with its reason, … */
      readonly outcome: string;
      readonly reason: string | null;
      /** The same event was committed before. */
      readonly duplicate: boolean;
      /** The level really reached, and the level required. (DUR-2, PIPE-5) */
      readonly level: Durability;
      readonly required: Durability;
      readonly view: number;
    }
  /** The event's condition did not hold and never will: it has changed nothing. */
  | {
      readonly kind: "conflict";
      readonly jobId: string;
      readonly eventId: string;
      readonly reason: ConditionFailure;
      /** The job's current index, and the fence of its current owner. */
      readonly seq: number;
      readonly fence: number;
    }
  /** The event may or may not commit: retry with the same event id. (VSR-11) */
  | {
      readonly kind: "unknown";
      readonly eventId: string;
      readonly level: Durability;
      readonly why: string;
    }
  /**
   * For cancels: the job's watchers were notified to stop, and this node proposes the cancel until it commits. (G-18)
   */
  | {
      readonly kind: "passedOn";
      readonly jobId: string;
      readonly eventId: string;
      readonly why: string;
    }
  | { readonly kind: "submitted"; readonly answer: SubmissionAnswer }
  | {
      readonly kind: "job";
      readonly state: JobState;
      /** The job has left memory: this is its state from then, and it is no longer replicated. */
      readonly archived: boolean;
      readonly servedBy: NodeId;
      readonly primary: NodeId | null;
      readonly view: number;
      readonly members: readonly NodeId[];
    }
  | {
      readonly kind: "state";
      readonly group: GroupId;
      readonly seq: number;
      readonly view: number;
      /** As its application writes it. */
      readonly bytes: Uint8Array;
    }
  | { readonly kind: "founded"; readonly seq: number; readonly level: Durability }
  | { readonly kind: "notFound"; readonly jobId: string }
  /** Between nodes only: not here, but there. */
  | { readonly kind: "redirect"; readonly primary: NodeId | null }
  /** Nothing was decided and nothing written; the same request may be sent again. */
  | { readonly kind: "retry"; readonly why: string }
  /** Wrong in itself; sending it again changes nothing. */
  | { readonly kind: "refused"; readonly code: string; readonly message: string };

export type NodeMessage =
  | { readonly kind: "vsr"; readonly group: GroupId; readonly message: VsrMessage }
  | { readonly kind: "request"; readonly id: number; readonly request: PeerRequest }
  | { readonly kind: "answer"; readonly id: number; readonly answer: LedgerAnswer }
  | { readonly kind: "compare"; readonly message: AntiEntropyMessage }
  /** A cancel that no quorum has confirmed yet, for the job's watchers. (G-18) */
  | { readonly kind: "stop"; readonly event: JobEvent }
  /** The job that you still run has long ended; this is how. */
  | { readonly kind: "archived"; readonly state: JobState }
  /** A joined node introduces itself; its directory's identity is in its link's greeting. (VSR-30) */
  | { readonly kind: "introduction" }
  /** The answer: we have written it down, durably. */
  | { readonly kind: "acquainted" }
  /** Only between a client and its node: begins a watch, or ends it when there is no request. */
  | { readonly kind: "watch"; readonly id: number; readonly request: WatchRequest | null }
  | { readonly kind: "watched"; readonly id: number; readonly item: WatchItem };
