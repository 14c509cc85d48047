/**
 * What a gate hears and asks for. It stands over the ledger node of its process, where every job is a group:
 * who leads the group leads the job. Datacenters are reached through their managers.
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
  /** All gates, this one included. */
  readonly gates: readonly NodeId[];
  /** Of this process, to make event ids of its own; never the same twice. */
  readonly boot: string;
  readonly version: string;
  /** Names of the kinds of failures, in the order that cores number them. */
  readonly errorKinds: readonly string[];
  /** Where clients reach the gates, by their names. */
  readonly addresses: Readonly<Record<string, string>>;
  readonly datacenters: readonly DatacenterPlace[];
  readonly config: GateConfig;
  /** All, unless said. */
  readonly rules?: GateRules;
}

export interface DatacenterPlace {
  readonly name: string;
  /** Names of its managers. */
  readonly managers: readonly string[];
}

export interface GateConfig {
  /** Milliseconds before a manager that has not answered is asked again, or another. */
  readonly askTimeoutMs: number;
  /** How often datacenters are asked what room they have. */
  readonly capacityMs: number;
  /** A datacenter that has told nothing for so long gets no new jobs. */
  readonly silenceMs: number;
  /** How often a job that runs is asked after. */
  readonly observeMs: number;
  /** From the decision to begin to the beginning: longer than an order takes to every datacenter. */
  readonly startLeadMs: number;
  /** A job that waits for cores while others have none is given to another datacenter after so long. */
  readonly queuedMs: number;
  /** A datacenter that is not heard for so long after its plan is over is given up. */
  readonly lostMs: number;
  /** A job that advances in none of its datacenters for so long is timed out. (AD-34.32) */
  readonly allStuckMs: number;
  /** How often the groups of jobs that live are asked who leads them, so that none sleeps without a leader. */
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

/** What a manager is asked. */
export type ManagerMessage =
  | { readonly kind: "client"; readonly request: ClientRequest }
  | { readonly kind: "gate"; readonly request: GateRequest }
  | BlobPut
  | BlobGet;

export type ManagerAnswer = ClientAnswer | GateAnswer | BlobHeld | BlobChunk | Refusal;

export type GateInput =
  /** Of the ledger node of this process. */
  | {
      readonly kind: "leads";
      readonly group: GroupId;
      readonly view: number;
      readonly leads: boolean;
    }
  | { readonly kind: "applied"; readonly group: GroupId }
  /** The answer to `ledger`. */
  | { readonly kind: "ledger"; readonly token: number; readonly answer: LedgerAnswer }
  /** Answered with the same id. */
  | { readonly kind: "client"; readonly id: number; readonly request: ClientRequest }
  /** The answer to `ask`; null when none came. */
  | { readonly kind: "answered"; readonly id: number; readonly answer: ManagerAnswer | null }
  | {
      readonly kind: "link";
      readonly datacenter: string;
      readonly manager: string;
      readonly up: boolean;
    }
  /** Of another gate. */
  | PeerNews
  | { readonly kind: "peerHealth"; readonly peer: NodeId; readonly health: GateHealth }
  /** Blobs that are complete here: all at the start, then each as it comes. */
  | { readonly kind: "blobsHeld"; readonly hashes: readonly BlobHash[] }
  /** Dropped to make room. */
  | { readonly kind: "blobsGone"; readonly hashes: readonly BlobHash[] }
  /** The answer to `readBlob`; null when it is not there any more. */
  | { readonly kind: "blobRead"; readonly hash: BlobHash; readonly bytes: Uint8Array | null }
  /** The answer to `readPart`. */
  | {
      readonly kind: "partRead";
      readonly id: number;
      readonly total: number;
      readonly bytes: Uint8Array | null;
    }
  /** How hard-pressed this gate is, now and then. */
  | {
      readonly kind: "pressed";
      readonly level: BackpressureLevel;
      readonly state: OverloadState;
    }
  /** Reporters of this gate want to know how its jobs go, now and then; answered with `report`. */
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
  /** Others shall lead from now on. */
  | { readonly kind: "giveUp" }
  /** How this gate is, for the others. */
  | { readonly kind: "tellPeers"; readonly health: GateHealth }
  /** These lead nothing new where others can. */
  | { readonly kind: "passOver"; readonly nodes: readonly string[] }
  /** Keep it as any other blob, durably, and say `blobsHeld`. */
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

/** A job that this node replicates. */
export interface JobGroup {
  readonly state: JobState;
  /** Who leads it, as far as this node knows. */
  readonly primary: NodeId | null;
  readonly view: number;
}

export interface GateLookup {
  /** Null: this node does not replicate such a job. */
  job(id: string): JobGroup | null;
  jobs(): Iterable<JobGroup>;
  /** Those that have not ended: it costs nothing that others were here before. */
  openJobs(): Iterable<JobGroup>;
  /** A job was submitted with this key of the ledger, as far as this node has heard. */
  knows(key: string): boolean;
}
