/**
 * Inputs and effects of a gate. It runs on the ledger node of its process, where every job is a group: the leader of
 * the group leads the job. Datacenters are reached through their managers.
 */

import type { NodeId } from "../../base/ids.ts";
import type { GroupId } from "../../ledger/group/messages.ts";
import type { JobState } from "../../ledger/job/job-state.ts";
import type { LedgerAnswer, LedgerRequest } from "../../ledger/node/messages.ts";
import type { GateAnswer, GateHealth, GateRequest } from "../gate-messages.ts";
import type { PeerNews } from "../manager/peers.ts";
import type {
  BlobChunk,
  BlobGet,
  BlobHash,
  BlobHeld,
  BlobPut,
  ClientAnswer,
  ClientRequest,
  Refusal,
} from "../messages.ts";
import type { BackpressureLevel } from "../overload/backpressure.ts";
import type { OverloadState } from "../views.ts";
import type { JobReport } from "./job-report.ts";
import type { GateRules } from "./rules.ts";

export interface GateOptions {
  readonly self: NodeId;
  /** All gates, including this one. */
  readonly gates: readonly NodeId[];
  /** Unique id of this process, part of its event ids. */
  readonly boot: string;
  readonly version: string;
  /** Names of error kinds, in the order of their numbers in frames. */
  readonly errorKinds: readonly string[];
  /** Addresses of the gates for clients, by name. */
  readonly addresses: Readonly<Record<string, string>>;
  readonly datacenters: readonly DatacenterPlace[];
  readonly config: GateConfig;
  /** Defaults to all rules. */
  readonly rules?: GateRules;
}

export interface DatacenterPlace {
  readonly name: string;
  /** Names of its managers. */
  readonly managers: readonly string[];
}

export interface GateConfig {
  /** Milliseconds before an unanswered request is retried, possibly at another manager. */
  readonly askTimeoutMs: number;
  /** Interval of capacity requests to datacenters. */
  readonly capacityMs: number;
  /** Silence after which a datacenter gets no new jobs. */
  readonly silenceMs: number;
  /** Interval of polling a running job. */
  readonly observeMs: number;
  /** Time from the decision to start to the start: longer than an order takes to every datacenter. */
  readonly startLeadMs: number;
  /** Queue time after which a job moves to another datacenter, if that has free cores. */
  readonly queuedMs: number;
  /** Silence after the end of the plan from which a datacenter counts as lost. */
  readonly lostMs: number;
  /** Time without progress in any datacenter after which a job is timed out. (AD-34.32) */
  readonly allStuckMs: number;
  /** Interval of waking the groups of open jobs, so that none sleeps without a leader. */
  readonly wakeMs: number;
}

export const GATE_DEFAULTS: GateConfig = {
  askTimeoutMs: 3_000,
  capacityMs: 1_000,
  silenceMs: 5_000,
  observeMs: 200,
  startLeadMs: 250,
  queuedMs: 10_000,
  lostMs: 60_000,
  allStuckMs: 180_000,
  wakeMs: 5_000,
};

/** Request to a manager. */
export type ManagerMessage =
  | { readonly kind: "client"; readonly request: ClientRequest }
  | { readonly kind: "gate"; readonly request: GateRequest }
  | BlobPut
  | BlobGet;

export type ManagerAnswer = ClientAnswer | GateAnswer | BlobHeld | BlobChunk | Refusal;

export type GateInput =
  /** Leadership of a group on the ledger node of this process. */
  | {
      readonly kind: "leads";
      readonly group: GroupId;
      readonly view: number;
      readonly leads: boolean;
    }
  | { readonly kind: "applied"; readonly group: GroupId }
  /** Answer to `ledger`. */
  | { readonly kind: "ledger"; readonly token: number; readonly answer: LedgerAnswer }
  /** Answer with the same id. */
  | { readonly kind: "client"; readonly id: number; readonly request: ClientRequest }
  /** Answer to `ask`; null if none came. */
  | { readonly kind: "answered"; readonly id: number; readonly answer: ManagerAnswer | null }
  | {
      readonly kind: "link";
      readonly datacenter: string;
      readonly manager: string;
      readonly up: boolean;
    }
  /** Connection state of another gate. */
  | PeerNews
  | { readonly kind: "peerHealth"; readonly peer: NodeId; readonly health: GateHealth }
  /** Blobs that are complete here: all of them at the start, then each new one. */
  | { readonly kind: "blobsHeld"; readonly hashes: readonly BlobHash[] }
  /** Blobs dropped to free space. */
  | { readonly kind: "blobsGone"; readonly hashes: readonly BlobHash[] }
  /** Answer to `readBlob`; null if it is no longer there. */
  | { readonly kind: "blobRead"; readonly hash: BlobHash; readonly bytes: Uint8Array | null }
  /** Answer to `readPart`. */
  | {
      readonly kind: "partRead";
      readonly id: number;
      readonly total: number;
      readonly bytes: Uint8Array | null;
    }
  /** Periodic overload level of this gate. */
  | {
      readonly kind: "pressed";
      readonly level: BackpressureLevel;
      readonly state: OverloadState;
    }
  /** Periodic request of reporters for the state of jobs; answered with `report`. */
  | { readonly kind: "report" }
  | { readonly kind: "tick" };

export type GateEffect =
  | { readonly kind: "ledger"; readonly token: number; readonly request: LedgerRequest }
  | {
      readonly kind: "ask";
      readonly id: number;
      readonly datacenter: string;
      readonly manager: string;
      readonly message: ManagerMessage;
      readonly timeoutMs: number;
    }
  | { readonly kind: "answer"; readonly id: number; readonly answer: ClientAnswer }
  | { readonly kind: "report"; readonly report: JobReport }
  /** Hands over leadership. */
  | { readonly kind: "giveUp" }
  /** Health of this gate, for the others. */
  | { readonly kind: "tellPeers"; readonly health: GateHealth }
  /** Nodes that should lead nothing new if others can. */
  | { readonly kind: "passOver"; readonly nodes: readonly string[] }
  /** Store durably like any other blob, and answer `blobsHeld`. */
  | { readonly kind: "keepBlob"; readonly hash: BlobHash; readonly bytes: Uint8Array }
  | { readonly kind: "readBlob"; readonly hash: BlobHash }
  | {
      readonly kind: "readPart";
      readonly id: number;
      readonly hash: BlobHash;
      readonly offset: number;
    }
  | {
      readonly kind: "log";
      readonly level: "info" | "warn" | "error";
      readonly event: string;
      readonly fields: Readonly<Record<string, string | number>>;
    };

/** Job that this node replicates. */
export interface JobGroup {
  readonly state: JobState;
  /** Leader of the job, as far as this node knows. */
  readonly primary: NodeId | null;
  readonly view: number;
}

export interface GateLookup {
  /** Null if this node does not replicate such a job. */
  job(id: string): JobGroup | null;
  jobs(): Iterable<JobGroup>;
  /** Unfinished jobs; the cost does not depend on the number of finished ones. */
  openJobs(): Iterable<JobGroup>;
  /** Whether a job was submitted with this ledger key, as far as this node knows. */
  knows(key: string): boolean;
}
