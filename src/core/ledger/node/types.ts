/**
 * Interface of a ledger node: configuration, inputs, effects and status.
 *
 * The driver's contract: `append` effects reach the node's write-ahead log in order, and `durable` reports how many of
 * them, counted from the start of this process, are safe. Everything that must wait for the disk waits inside. Inputs
 * are passed with `take`; `flush`, called before the driver waits for anything, returns all effects since the last one,
 * so that one turn's work shares messages.
 */

import type { NodeId } from "../../base/ids.ts";
import type { VsrConfig } from "../group/config.ts";
import type { GroupId, LogEntry } from "../group/messages.ts";
import type { VsrRules } from "../group/rules.ts";
import type { AntiEntropyConfig } from "../job/config.ts";
import type { JobState } from "../job/job-state.ts";
import type { Site } from "../job/placement.ts";
import type { IdempotencyConfig } from "../keys/config.ts";
import type { GateCacheStats } from "../keys/gate-cache.ts";
import type { IdempotencyRules } from "../keys/rules.ts";
import type { GroupKind } from "./application.ts";
import type { LedgerAnswer, LedgerRequest, NodeMessage } from "./messages.ts";
import type { NodeRules } from "./rules.ts";
import type { WatchItem, WatchRequest } from "./watch.ts";

/** All nodes of a ledger should have the same numbers, and must have the same `replicas` and `fewGates`. */
export interface LedgerNodeConfig {
  /** Settings of every group's replica. */
  readonly vsr: VsrConfig;
  /** How long the shards remember a key: longer than any client retries. */
  readonly idempotency: IdempotencyConfig;
  /** How long each node remembers what the shards answered; must forget before they do. */
  readonly gateCache: IdempotencyConfig;
  /** How often nodes compare their jobs. */
  readonly antiEntropy: AntiEntropyConfig;
  /**
   * Replicas per group, odd: 3 survives the loss of one, 5 of two. Used when a group is founded; existing groups keep
   * theirs. It must be the same on all nodes of one ledger: they find a job's group by it.
   */
  readonly replicas: number;
  /** With fewer than three nodes: run groups of one, which survive no loss, or refuse jobs. (VSR-28) */
  readonly fewGates: "single" | "refuse";
  /**
   * Datacenters where jobs may run; empty: anywhere. A submission that names another is rejected, and a keyed one for
   * good, whatever another node's list says. Nodes may differ while the list is changed. (IDEM-23)
   */
  readonly datacenters: readonly string[];
  /**
   * Milliseconds after which a pending request is answered with "unknown" or "retry". Keep it above the time of a view
   * change, or clients notice every failover.
   */
  readonly requestTimeoutMs: number;
  /** Milliseconds before a request is sent again to another node; must fit into `requestTimeoutMs`. */
  readonly routeRetryMs: number;
  /**
   * Entries by which a group's log grows before it is folded into a snapshot. Larger: longer recovery and
   * more memory per group. Smaller: more work, and slow replicas need snapshots. Above `vsr.tailEntries`.
   */
  readonly compactEntries: number;
  /** Milliseconds after its end at which a job leaves memory for the archive. (G-14) */
  readonly retentionMs: number;
  /** Times in the own log that are further ahead of the clock are neither followed nor waited for. (HLC-5) */
  readonly recoveredAheadMsMax: number;
}

export interface LedgerOptions {
  readonly self: NodeId;
  /** Every node of the ledger, this one included, as configured. */
  readonly sites: readonly Site[];
  readonly config: LedgerNodeConfig;
  /** Unique id of this process, used to create event ids; never reused. */
  readonly boot: string;
  readonly rules: LedgerRules;
  /** Kinds of groups beside jobs and shards; the same on all nodes of a ledger. */
  readonly kinds?: readonly GroupKind[];
  /**
   * Extracts the part of a job's description that makes it the same job under one key; default: all of it. The same on
   * all nodes.
   */
  readonly identityOf?: (spec: Uint8Array) => Uint8Array;
  /** The idempotency shards; default: all of them. A simulation needs few. */
  readonly shards?: readonly number[];
}

export interface LedgerRules {
  readonly vsr: VsrRules;
  readonly idempotency: IdempotencyRules;
  readonly node: NodeRules;
}

export type LedgerInput =
  /** The connection to a peer is established, for the first time or again. (AE-4) */
  | { readonly kind: "reached"; readonly peer: NodeId }
  | {
      readonly kind: "messages";
      readonly from: NodeId;
      /** Identity of the sender's data directory, announced when its link was opened. */
      readonly identity: string;
      readonly messages: readonly NodeMessage[];
    }
  | { readonly kind: "durable"; readonly count: number }
  | { readonly kind: "tick" }
  /** The archive's copy of this job; null if there is none. */
  | { readonly kind: "archivedState"; readonly jobId: string; readonly state: JobState | null }
  /** Let others lead all that this node leads, and comes to lead: it is about to go. */
  | { readonly kind: "giveUp" }
  /** Nothing is left to do in this group of a registered kind: it may sleep. */
  | { readonly kind: "mayRest"; readonly group: GroupId }
  /**
   * Forgets groups of registered kinds that are needed nowhere any more: they leave memory, and the next checkpoint
   * omits them. `by` names the group whose committed state says so.
   */
  | { readonly kind: "forget"; readonly groups: readonly GroupId[]; readonly by: GroupId }
  /** Nodes that should lead nothing new if others can; replaces the previous list. */
  | { readonly kind: "passOver"; readonly nodes: readonly string[] }
  | { readonly kind: "request"; readonly token: number; readonly request: LedgerRequest }
  /** Starts a watch of committed events; `room` is the initial credit in items. */
  | {
      readonly kind: "watch";
      readonly token: number;
      readonly request: WatchRequest;
      readonly room: number;
    }
  | { readonly kind: "watchRoom"; readonly token: number; readonly count: number }
  | { readonly kind: "watchEnd"; readonly token: number };

export type LedgerEffect =
  | { readonly kind: "send"; readonly to: NodeId; readonly messages: readonly NodeMessage[] }
  | {
      readonly kind: "append";
      readonly type: number;
      readonly payload: Uint8Array;
      readonly wall: number;
      readonly logical: number;
    }
  | { readonly kind: "answer"; readonly token: number; readonly answer: LedgerAnswer }
  /** Next items for a watcher, in order. */
  | { readonly kind: "watched"; readonly token: number; readonly items: readonly WatchItem[] }
  /** A group has committed an entry; for observers, archives and what acts on jobs. */
  | {
      readonly kind: "applied";
      readonly group: GroupId;
      readonly entry: LogEntry;
      readonly outcome: string;
      /** Whether the entry was already on disk when this process started. */
      readonly isRecovered: boolean;
    }
  /** This node leads a group from now on, with this fence token, or does not any more. (VSR-32) */
  | {
      readonly kind: "leads";
      readonly group: GroupId;
      readonly view: number;
      readonly leads: boolean;
    }
  /** Keep this for ever: the job leaves memory. */
  | { readonly kind: "archive"; readonly jobId: string; readonly bytes: Uint8Array }
  /** Read it again, and bring it as `archivedState`. */
  | { readonly kind: "readArchive"; readonly jobId: string }
  | { readonly kind: "alarm"; readonly group: GroupId; readonly why: string };

export interface LedgerStatus {
  readonly self: NodeId;
  readonly region: string;
  readonly jobs: number;
  readonly shards: number;
  /** Groups of registered kinds. */
  readonly others: number;
  readonly leading: number;
  readonly waiting: number;
  readonly forwarded: number;
  readonly watchers: number;
  readonly appends: number;
  readonly durable: number;
  readonly clockSkewRefused: number;
  readonly keys: GateCacheStats;
}
