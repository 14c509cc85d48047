/**
 * Interface of one group's replica: inputs, effects, records and views.
 *
 * The driver's contract: `persist` effects reach the log of this node in order, and `durable` reports how many of them,
 * counted from the start of this process, are safe by now. The machine itself holds back everything that depends on a
 * record that is not durable yet, so all other effects may be carried out at once, in order.
 */

import type { NodeId } from "../../base/ids.ts";
import type { GroupSnapshot, LogEntry, VsrMessage } from "./messages.ts";

/** Records about a group in a node's log; folding them in order yields `GroupImage`. */
export type VsrRecord =
  /** Appended at its index; nothing follows it yet. */
  | { readonly kind: "entry"; readonly entry: LogEntry }
  | { readonly kind: "promise"; readonly view: number }
  | {
      /** The group's log becomes: its own up to `keep`, or the snapshot if any, then these entries. */
      readonly kind: "newView";
      readonly epoch: number;
      readonly members: readonly NodeId[];
      readonly view: number;
      readonly keep: number;
      readonly snapshot: GroupSnapshot | null;
      readonly entries: readonly LogEntry[];
    }
  | { readonly kind: "commitMark"; readonly seq: number }
  | {
      /** The group starts, or continues with other replicas. */
      readonly kind: "epoch";
      readonly epoch: number;
      readonly members: readonly NodeId[];
      /** Has no log yet and does not vote. */
      readonly learner: boolean;
    }
  /** Two committed histories were seen: the group stays stopped here, over restarts too. (LEDG-6) */
  | { readonly kind: "broken"; readonly why: string };

/** The durable part of a replica. */
export interface GroupImage {
  readonly epoch: number;
  readonly members: readonly NodeId[];
  readonly learner: boolean;
  readonly knownView: number;
  readonly lastNormalView: number;
  readonly snapshot: GroupSnapshot | null;
  /** Contiguous, beginning right after the snapshot's tail. */
  readonly entries: readonly LogEntry[];
  /** At least this much is committed. */
  readonly commitMark: number;
  /** Why the group is stopped here for good; null when it is not. */
  readonly broken: string | null;
}

export interface Operation {
  readonly eventId: string;
  readonly wall: number;
  readonly logical: number;
  readonly data: Uint8Array;
}

export type VsrInput =
  | { readonly kind: "message"; readonly from: NodeId; readonly message: VsrMessage }
  | { readonly kind: "durable"; readonly count: number }
  | { readonly kind: "tick" }
  | { readonly kind: "propose"; readonly operations: readonly Operation[] }
  /** A strong read: answered by `readReady` or `readFailed` with the same token. */
  | { readonly kind: "read"; readonly token: number }
  | { readonly kind: "reconfigure"; readonly eventId: string; readonly members: readonly NodeId[] }
  /** The state up to `snapshot.seq` is kept elsewhere; the log below it may go. (VSR-31) */
  | { readonly kind: "compact"; readonly snapshot: GroupSnapshot }
  /** A local request needs the group and is sent to another replica. */
  | { readonly kind: "wake" }
  /** Nothing is left to do in a group that was to stay awake: it may sleep from now on, like any other. */
  | { readonly kind: "mayRest" }
  /** Persists the known commit index. */
  | { readonly kind: "mark" }
  /** Let another lead; means nothing unless this replica does. */
  | { readonly kind: "giveUp" }
  /** Someone has seen two committed histories of this group: it must not go on here. (LEDG-6) */
  | { readonly kind: "stop"; readonly why: string };

export type RefusalReason =
  | "notPrimary"
  | "windowFull"
  | "reconfiguring"
  | "retired"
  /** More than one member added or removed, a duplicate name, none, or too many. (VSR-27) */
  | "badMembers"
  /** Too few of the remaining members have the log of this view by now. */
  | "notReady";

export type VsrEffect =
  | { readonly kind: "send"; readonly to: NodeId; readonly message: VsrMessage }
  | { readonly kind: "persist"; readonly record: VsrRecord }
  /** Apply it. In order, each sequence number once. */
  | {
      readonly kind: "committed";
      readonly entry: LogEntry;
      /** At the primary: who holds it durably now. Empty elsewhere. */
      readonly copies: readonly NodeId[];
    }
  /** Forget the applied state and take this one. */
  | { readonly kind: "restored"; readonly snapshot: GroupSnapshot }
  | { readonly kind: "accepted"; readonly eventId: string; readonly seq: number }
  | {
      readonly kind: "refused";
      readonly eventId: string;
      readonly reason: RefusalReason;
      readonly primary: NodeId | null;
    }
  | { readonly kind: "tookOver"; readonly view: number; readonly lastSeq: number }
  /** Entries proposed here and not yet committed may or may not commit later. (VSR-16, VSR-17) */
  | { readonly kind: "steppedDown"; readonly view: number; readonly why: string }
  | { readonly kind: "readReady"; readonly token: number; readonly seq: number }
  | { readonly kind: "readFailed"; readonly token: number; readonly primary: NodeId | null }
  | { readonly kind: "epochChanged"; readonly epoch: number; readonly members: readonly NodeId[] }
  /** This node is no replica of the group any more. */
  | { readonly kind: "retired"; readonly epoch: number }
  /** A message of this peer was dropped for counters that no run of the protocol gives. */
  | { readonly kind: "implausible"; readonly from: NodeId; readonly why: string }
  /** Two different entries were committed at one place: the group stops here for good. (LEDG-6) */
  | { readonly kind: "broken"; readonly why: string };

export type VsrStatus = "normal" | "viewChange" | "retired" | "broken";

export interface VsrView {
  readonly epoch: number;
  readonly members: readonly NodeId[];
  readonly status: VsrStatus;
  readonly view: number;
  readonly lastNormalView: number;
  /** May propose and answer strong reads. */
  readonly primary: boolean;
  readonly primaryId: NodeId | null;
  readonly lastSeq: number;
  readonly durableSeq: number;
  readonly commit: number;
  /** On this node's own clock; null without a lease. */
  readonly leaseUntil: number | null;
}
