/**
 * Messages between the replicas of one group. Every message names its epoch; a receiver in another epoch rejects it.
 * Entries always travel in contiguous runs.
 */

import type { Brand } from "../../base/brand.ts";
import type { NodeId } from "../../base/ids.ts";

/** A job's id, or the name of an idempotency shard. */
export type GroupId = Brand<string, "GroupId">;

export const GROUP_ID_BYTES_MAX = 128;
export const EVENT_ID_BYTES_MAX = 128;
/** Replicas of one group; odd, 2f + 1. */
export const MEMBERS_MAX = 7;

export type EntryKind = "op" | "noop" | "reconfigure";

/** One place of a group's log. It keeps the view it was first prepared in, for ever. */
export interface LogEntry {
  readonly seq: number;
  /** The epoch it was proposed in: a reconfiguration leads out of this one. */
  readonly epoch: number;
  readonly view: number;
  readonly kind: EntryKind;
  /** Names the event over all retries: the same id is the same event. (EVT-2, VSR-11) */
  readonly eventId: string;
  readonly wall: number;
  readonly logical: number;
  readonly data: Uint8Array;
  /** Only of a `reconfigure`: the next epoch's replicas. */
  readonly members: readonly NodeId[];
}

/** Folded state up to and including `seq`; replaces all entries below. */
export interface GroupSnapshot {
  readonly seq: number;
  readonly bytes: Uint8Array;
}

export type PrepareStatus = "success" | "staleView" | "wrongSequence" | "notOwner";

export type VsrMessage =
  | {
      /** Primary to replica: these entries follow what you have. Doubles as lease renewal. */
      readonly kind: "prepare";
      readonly epoch: number;
      readonly view: number;
      readonly entries: readonly LogEntry[];
      readonly commit: number;
      /** The primary's own monotonic clock, echoed in the answer. (VSR-20) */
      readonly sentAt: number;
    }
  | {
      /** Answer to `prepare` and to `commit`. */
      readonly kind: "prepareResponse";
      readonly epoch: number;
      readonly status: PrepareStatus;
      readonly view: number;
      /** The next sequence number this replica can take. */
      readonly expected: number;
      /** Everything up to here is durable, in this view's log. (I6) */
      readonly acked: number;
      /** -1 when nothing was received from this view's primary yet. */
      readonly sentAt: number;
      readonly round: number;
    }
  | {
      /** Heartbeat, commit number and lease renewal in one; may be lost freely. (VSR-10, VSR-21) */
      readonly kind: "commit";
      readonly epoch: number;
      readonly view: number;
      readonly commit: number;
      /** The primary's last entry: a replica behind it requests the rest. (VSR-9) */
      readonly last: number;
      readonly sentAt: number;
      /** Confirms the view for reads. (VSR-24) */
      readonly round: number;
      /** The last one for a while: there is nothing to do. */
      readonly sleeps: boolean;
    }
  | {
      readonly kind: "viewChange";
      readonly epoch: number;
      readonly view: number;
      /** Only asks whether the view would be granted; changes nothing anywhere. */
      readonly probe: boolean;
    }
  | {
      readonly kind: "viewChangeResponse";
      readonly epoch: number;
      /** The requested view. */
      readonly view: number;
      readonly probe: boolean;
      readonly granted: boolean;
      readonly currentView: number;
      readonly lastNormalView: number;
      readonly lastSeq: number;
      readonly commit: number;
      /** Log above `commit`, as much of it as fits one message. */
      readonly entries: readonly LogEntry[];
      /** Remaining time of the promise to the current primary. */
      readonly leaseLeftMs: number;
    }
  | {
      readonly kind: "newView";
      readonly epoch: number;
      readonly view: number;
      /** The log has entries 0 .. startSeq - 1. */
      readonly startSeq: number;
      readonly commit: number;
      /** The end of that log, above the primary's commit number, as much as fits. */
      readonly entries: readonly LogEntry[];
    }
  | {
      readonly kind: "fetchLog";
      readonly epoch: number;
      /** The view whose log is requested; 0: any committed entries. */
      readonly view: number;
      readonly from: number;
    }
  | {
      readonly kind: "logSuffix";
      readonly epoch: number;
      /** Empty when snapshot and entries are of the receiver's own, older epoch. */
      readonly members: readonly NodeId[];
      readonly view: number;
      /** The sender's log is that of this view; 0 when this is only what is committed. */
      readonly lastNormalView: number;
      /** Comes first when the log does not reach back far enough. */
      readonly snapshot: GroupSnapshot | null;
      readonly entries: readonly LogEntry[];
      readonly lastSeq: number;
      readonly commit: number;
    }
  | {
      /** The group exists and has these replicas; sent by its founder and to replicas that do not know it. */
      readonly kind: "found";
      readonly epoch: number;
      readonly members: readonly NodeId[];
    }
  | { readonly kind: "unknownGroup"; readonly epoch: number }
  | {
      /** Primary to replicas: this view has no leader any more; the successor runs for the next view it owns. */
      readonly kind: "resign";
      readonly epoch: number;
      readonly view: number;
      readonly successor: NodeId;
    }
  | {
      /** You live in an older epoch. */
      readonly kind: "newerEpoch";
      readonly epoch: number;
      readonly members: readonly NodeId[];
    };

export type VsrMessageKind = VsrMessage["kind"];
