/**
 * Inputs and effects of a manager. It runs on top of the ledger node of its process: `propose` is sent to that node as
 * a request, and outputs of the node (`leads`, `applied`, `answer`) come back as inputs in the same order.
 */

import type { NodeId } from "../../base/ids.ts";
import type { GroupId, LogEntry } from "../../ledger/group/messages.ts";
import type { Application } from "../../ledger/node/application.ts";
import type { LedgerAnswer, LedgerRequest } from "../../ledger/node/messages.ts";
import type { Extended, Extension } from "../extension-messages.ts";
import type { GateAnswer, GateRequest } from "../gate-messages.ts";
import type {
  Announce,
  Announced,
  BlobHash,
  ClientAnswer,
  ClientRequest,
  Drain,
  Events,
  Orders,
  Refusal,
  Taken,
  WorkerHeartbeat,
} from "../messages.ts";
import type { TimeoutLimits } from "../overload/job-timeout.ts";
import type { PeerNews } from "./peers.ts";
import type { ManagerRules } from "./rules.ts";
import { NO_QUOTAS, type Quotas } from "./tenants.ts";

export interface ManagerOptions {
  readonly self: NodeId;
  /** Lower-case letters, digits and dashes. */
  readonly datacenter: string;
  /** All managers of the datacenter including this one, in the same order everywhere; one, three or five. */
  readonly managers: readonly NodeId[];
  /** Client addresses by manager name. */
  readonly addresses: Readonly<Record<string, string>>;
  /** Unique id of this process, the prefix of its event ids. */
  readonly boot: string;
  /** Names of failure kinds, in the order in which cores number them. */
  readonly errorKinds: readonly string[];
  readonly version: string;
  /** Machine of this manager, for the results. */
  readonly machine: {
    readonly node: string;
    readonly platform: string;
    readonly cpuModel: string;
  };
  readonly config: ManagerConfig;
  /** Default: all rules on. */
  readonly rules?: ManagerRules;
}

export interface ManagerConfig {
  /**
   * Milliseconds without a message after which a worker is declared lost, with its share of the load. If shorter than
   * the pauses of a busy worker's event loop, healthy workers are given up.
   */
  readonly workerTimeoutMs: number;
  /**
   * Milliseconds within which every live worker has called a manager that has just started. If shorter than workers
   * take, jobs lose healthy cores when their manager restarts.
   */
  readonly rejoinMs: number;
  /** Milliseconds for which a lost worker stays listed, so that operators see what is missing. */
  readonly lostWorkerMs: number;
  /** Milliseconds that a core may take from its order to `loaded`, including the download of files. */
  readonly loadTimeoutMs: number;
  /** Milliseconds for which the share of a lost core is kept for a core that becomes free. */
  readonly shareKeptMs: number;
  /** Milliseconds before an unanswered order is resent. */
  readonly orderRetryMs: number;
  /**
   * Milliseconds after which a live worker that answers nothing about a job loses the cores of this job; its other jobs
   * are unaffected. Must be longer than any answer takes; a dead worker is detected by `workerTimeoutMs`.
   */
  readonly orderTimeoutMs: number;
  /** Milliseconds before an uncommitted entry is proposed again. */
  readonly proposeRetryMs: number;
  /** Executor processes per core of a worker: more than one when workflows of a job need them in parallel. */
  readonly processesPerCoreMax: number;
  /**
   * Requests, cores to open and unconfirmed events that may wait on a worker, per core. At nine tenths of it other
   * workers are preferred, at all of it the worker gets nothing. If too low, healthy workers are passed over.
   */
  readonly queuedPerCoreMax: number;
  readonly quotas: Quotas;
  /** When a job counts as stuck, and how long to wait for a gate. */
  readonly timeouts: TimeoutLimits;
}

export const MANAGER_DEFAULTS: ManagerConfig = {
  workerTimeoutMs: 3_000,
  rejoinMs: 8_000,
  lostWorkerMs: 900_000,
  loadTimeoutMs: 60_000,
  shareKeptMs: 60_000,
  orderRetryMs: 1_000,
  orderTimeoutMs: 20_000,
  proposeRetryMs: 500,
  processesPerCoreMax: 4,
  queuedPerCoreMax: 50,
  quotas: NO_QUOTAS,
  timeouts: { stuckMs: 120_000, gateSilentMs: 300_000 },
};

export type ManagerInput =
  /** Outputs of the ledger node of this process. */
  | {
      readonly kind: "leads";
      readonly group: GroupId;
      readonly view: number;
      readonly leads: boolean;
    }
  | {
      readonly kind: "applied";
      readonly group: GroupId;
      readonly entry: LogEntry;
      /** Outcome of the entry: "rejected" when it changed nothing. */
      readonly outcome: string;
      /** The entry was on disk when this process started. */
      readonly isRecovered: boolean;
    }
  /** The answer to `propose`. */
  | { readonly kind: "proposed"; readonly token: number; readonly answer: LedgerAnswer }
  | { readonly kind: "heartbeat"; readonly heartbeat: WorkerHeartbeat }
  /** The worker closed its connection. */
  | { readonly kind: "workerClosed"; readonly worker: string }
  /** Answered with the same id. */
  | { readonly kind: "events"; readonly id: number; readonly events: Events }
  /** Answered with the same id. */
  | { readonly kind: "extension"; readonly id: number; readonly extension: Extension }
  | { readonly kind: "client"; readonly id: number; readonly request: ClientRequest }
  | { readonly kind: "gate"; readonly id: number; readonly request: GateRequest }
  /** The answer to `worker`; null when none came. */
  | {
      readonly kind: "workerAnswer";
      readonly id: number;
      readonly answer: Announced | Taken | Refusal | null;
    }
  /** Follows `keepBlob` and `replicateBlobs`: a quorum of the managers has the blobs, this one included. */
  | { readonly kind: "blobsReady"; readonly hashes: readonly BlobHash[] }
  /** Follows `replicateBlobs`: no reachable manager has the blobs. */
  | { readonly kind: "blobsAbsent"; readonly hashes: readonly BlobHash[] }
  /** Follows `keepBlob`: why the blob cannot be stored here. */
  | { readonly kind: "blobNotKept"; readonly hash: BlobHash; readonly problem: string }
  /** Follows `readBlob`; null when no reachable manager has the blob. */
  | { readonly kind: "blobRead"; readonly hash: BlobHash; readonly bytes: Uint8Array | null }
  /** News of another manager. */
  | PeerNews
  /** Timer lateness of this process. */
  | { readonly kind: "late"; readonly lagMs: number }
  | { readonly kind: "tick" };

export type ManagerEffect =
  | { readonly kind: "propose"; readonly token: number; readonly request: LedgerRequest }
  /** A request over the control connection to that worker. */
  | {
      readonly kind: "worker";
      readonly id: number;
      readonly worker: string;
      readonly message: Announce | Orders | Drain;
    }
  | {
      readonly kind: "answer";
      readonly id: number;
      readonly answer: ClientAnswer | GateAnswer | Taken | Extended | Refusal;
    }
  /** Store durably, here and on a quorum of the managers: `blobsReady` or `blobNotKept` follows. */
  | { readonly kind: "keepBlob"; readonly hash: BlobHash; readonly bytes: Uint8Array }
  /** Read the blob, from another manager if it is not here: `blobRead` follows. */
  | { readonly kind: "readBlob"; readonly hash: BlobHash }
  /** Replicate to a quorum of the managers: `blobsReady` or `blobsAbsent` follows for each, or nothing. */
  | { readonly kind: "replicateBlobs"; readonly hashes: readonly BlobHash[] }
  /** The complete set of blobs that must not be dropped to free space. */
  | { readonly kind: "pinBlobs"; readonly hashes: readonly BlobHash[] }
  /** Hand leadership to others. */
  | { readonly kind: "giveUp" }
  /** The job of this group is over and recorded by its datacenter: the group may become idle. */
  | { readonly kind: "mayRest"; readonly group: GroupId }
  /** The jobs of these groups are forgotten according to group `by`: nothing will ask for them. */
  | { readonly kind: "forget"; readonly groups: readonly GroupId[]; readonly by: GroupId }
  | {
      readonly kind: "log";
      readonly level: "info" | "warn" | "error";
      readonly event: string;
      readonly fields: Readonly<Record<string, string | number>>;
    };

export interface GroupLookup {
  /** A group replicated by this node; null for others. */
  find(group: GroupId): GroupView | null;
  /** Names of all groups replicated by this node. */
  names(): Iterable<GroupId>;
}

interface GroupView {
  /** Folded state. */
  readonly application: Application;
  /** Leader as far as this node knows. */
  readonly primary: NodeId | null;
  /**
   * True when the folded state may lack committed entries: the node follows no leader, or leads and has committed
   * nothing yet.
   */
  readonly isBehind: boolean;
}
