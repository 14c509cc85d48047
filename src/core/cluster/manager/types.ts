/**
 * What a manager hears and asks for. It stands over the ledger node of its process: `propose` goes to that
 * node as a request, and what the node says (`leads`, `applied`, `answer`) comes back as input, in the order
 * in which the node said it.
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
  /** All managers of the datacenter, this one included, in the same order everywhere; one, three or five. */
  readonly managers: readonly NodeId[];
  /** Where clients reach them, by their names. */
  readonly addresses: Readonly<Record<string, string>>;
  /** Of this process, to make event ids of its own; never the same twice. */
  readonly boot: string;
  /** Names of the kinds of failures, in the order that the cores number them. */
  readonly errorKinds: readonly string[];
  readonly version: string;
  /** Of this manager, for the results. */
  readonly machine: {
    readonly node: string;
    readonly platform: string;
    readonly cpuModel: string;
  };
  readonly config: ManagerConfig;
  /** All, unless said. */
  readonly rules?: ManagerRules;
}

export interface ManagerConfig {
  /**
   * Milliseconds without a word after which a worker is taken for lost, with its share of the load.
   * Shorter than the pauses of a busy worker's event loop: a worker is given up for nothing.
   */
  readonly workerTimeoutMs: number;
  /**
   * Milliseconds within which every worker that lives has called a manager that has just begun.
   * Shorter than workers take: jobs lose cores that are well when their manager starts again.
   */
  readonly rejoinMs: number;
  /** Milliseconds for which a lost worker is remembered, so that people see what is missing. */
  readonly lostWorkerMs: number;
  /** Milliseconds that a core may take from its order to `loaded`, fetching the files included. */
  readonly loadTimeoutMs: number;
  /** Milliseconds for which the share of a lost core is kept for one that becomes free. */
  readonly shareKeptMs: number;
  /** Milliseconds before an order without an answer is sent again. */
  readonly orderRetryMs: number;
  /**
   * Milliseconds after which a worker that lives and answers nothing about a job has lost the cores of this job;
   * its other jobs are not touched. Longer than any answer takes; what a dead worker costs is `workerTimeoutMs`.
   */
  readonly orderTimeoutMs: number;
  /** Milliseconds before an entry that was not committed is proposed again. */
  readonly proposeRetryMs: number;
  /** Executor processes per core of a worker: more when workflows of a job need them side by side. */
  readonly processesPerCoreMax: number;
  /**
   * Requests, cores to open and unconfirmed news that may wait at a worker, for each of its cores. At nine tenths of it
   * the others come first, at all of it the worker gets nothing. Lower: workers that are well are passed over.
   */
  readonly queuedPerCoreMax: number;
  readonly quotas: Quotas;
  /** When a job is taken to be stuck, and how long a gate is waited for. */
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
  /** Of the ledger node of this process. */
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
      /** What became of it: "rejected" when it changed nothing. */
      readonly outcome: string;
      /** It was on our disk when this process began. */
      readonly isRecovered: boolean;
    }
  /** The answer to `propose`. */
  | { readonly kind: "proposed"; readonly token: number; readonly answer: LedgerAnswer }
  | { readonly kind: "heartbeat"; readonly heartbeat: WorkerHeartbeat }
  /** It has ended its connection. */
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
  /** Of `keepBlob` and `replicateBlobs`: a quorum of the managers has them, this one included. */
  | { readonly kind: "blobsReady"; readonly hashes: readonly BlobHash[] }
  /** Of `replicateBlobs`: no manager that can be reached has them. */
  | { readonly kind: "blobsAbsent"; readonly hashes: readonly BlobHash[] }
  /** Of `keepBlob`: why it cannot be kept here. */
  | { readonly kind: "blobNotKept"; readonly hash: BlobHash; readonly problem: string }
  /** Of `readBlob`; null when no manager that can be reached has it. */
  | { readonly kind: "blobRead"; readonly hash: BlobHash; readonly bytes: Uint8Array | null }
  /** Of another manager. */
  | PeerNews
  /** How late this process comes to its timers. */
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
  /** Keep it durably, here and on a quorum of the managers: `blobsReady` or `blobNotKept` follows. */
  | { readonly kind: "keepBlob"; readonly hash: BlobHash; readonly bytes: Uint8Array }
  /** Fetched from another manager when it is not here: `blobRead` follows. */
  | { readonly kind: "readBlob"; readonly hash: BlobHash }
  /** Have them on a quorum of the managers: `blobsReady` or `blobsAbsent` follows for each, or nothing. */
  | { readonly kind: "replicateBlobs"; readonly hashes: readonly BlobHash[] }
  /** These are needed, and no others: all that must not be dropped to make room. */
  | { readonly kind: "pinBlobs"; readonly hashes: readonly BlobHash[] }
  /** Others shall lead from now on. */
  | { readonly kind: "giveUp" }
  /** The job of this group is over, and its datacenter knows: nobody has to watch over it. */
  | { readonly kind: "mayRest"; readonly group: GroupId }
  /** The jobs of these groups are forgotten, says this group: nobody will ask for them. */
  | { readonly kind: "forget"; readonly groups: readonly GroupId[]; readonly by: GroupId }
  | {
      readonly kind: "log";
      readonly level: "info" | "warn" | "error";
      readonly event: string;
      readonly fields: Readonly<Record<string, string | number>>;
    };

export interface GroupLookup {
  /** A group that this node replicates; null when it replicates none of that name. */
  find(group: GroupId): GroupView | null;
  /** Of all groups that it replicates. */
  names(): Iterable<GroupId>;
}

interface GroupView {
  /** Its folded state. */
  readonly application: Application;
  /** Who leads it, as far as this node knows. */
  readonly primary: NodeId | null;
  /** Its folded state may lack what is committed: it follows nobody, or leads and has committed nothing yet. */
  readonly isBehind: boolean;
}
