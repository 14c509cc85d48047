/** Inputs and outputs of a node's store. */

import type { Crc32 } from "../../base/crc32.ts";
import type { NodeId } from "../../base/ids.ts";
import type { GroupId } from "../group/messages.ts";
import type { GroupImage } from "../group/types.ts";
import type { JobState } from "../job/job-state.ts";
import type { CheckpointHeader } from "../log/checkpoint.ts";
import type { FileAnswer, FileEffect, FileProblem } from "../log/files.ts";
import type { WalConfig } from "../log/limits.ts";
import type { LogEvent, LogRefusal } from "../log/log.ts";
import type { Recovered, RecoveryOptions } from "../log/recovery.ts";
import type { WalRules } from "../log/rules.ts";
import type { StoreRules } from "./rules.ts";

export interface StoreOptions {
  /** Result of `identityOf(cluster, node)`; a log of another node is rejected. */
  readonly identity: string;
  /** A full disk makes records wait: a gap in their sequence would be worse than a pause. */
  readonly log: WalConfig & { readonly fullDisk: "wait" };
  /** A checkpoint is due after so many records or so long; so many are kept. (CKPT-9) */
  readonly checkpoint: {
    readonly intervalEntries: number;
    readonly intervalMs: number;
    readonly keptMax: number;
  };
  /** Finished jobs stay in the archive for so long. */
  readonly archiveKeepMs: number;
  readonly logRules?: WalRules;
  readonly rules?: StoreRules;
  readonly checksum?: Crc32;
  /** Uninitialised memory is fine. */
  readonly allocate?: (bytes: number) => Uint8Array;
  /** For checkers: every recovered entry of the log, also those that a checkpoint has. */
  readonly onEntry?: RecoveryOptions["onEntry"];
}

/** The node whose state is stored. */
export interface StoreSource {
  /** Records handed out so far; while the store has fewer, its state is ahead of the log. */
  readonly appends: number;
  /** The state in slices, each as of the time it is requested. */
  slices(): Iterator<Uint8Array, void>;
}

export type StoreInput =
  | FileAnswer
  /** Inspects the directory: `opened` or `refused` follows. */
  | { readonly kind: "open" }
  | { readonly kind: "turn" }
  /** Records were appended, or a deadline has come. */
  | { readonly kind: "tick" }
  /** Make all records so far durable, without waiting for more. */
  | { readonly kind: "flush"; readonly id: number }
  /** A checkpoint of the state from now on, whether it is due or not. */
  | { readonly kind: "checkpoint"; readonly id: number }
  /** `archivedState` follows. */
  | { readonly kind: "readArchive"; readonly jobId: string }
  | { readonly kind: "close" };

export type StoreRefusal =
  | LogRefusal
  /** The log does not reach back to the checkpoint, or not as far as it. */
  | {
      readonly code: "LOG_GAP";
      readonly firstLsn: number;
      readonly maxLsn: number;
      readonly localLsn: number;
      readonly throughLsn: number;
    }
  /** A checksum holds, and what it covers cannot be read. */
  | { readonly code: "UNREADABLE"; readonly problem: string };

interface RecoveredState {
  readonly images: ReadonlyMap<GroupId, GroupImage>;
  readonly archived: ReadonlySet<string>;
  readonly identities: ReadonlyMap<NodeId, string>;
}

export type StoreEvent =
  | {
      readonly kind: "opened";
      readonly outcome: Recovered;
      readonly checkpoint: CheckpointHeader | null;
      readonly state: RecoveredState;
      /** Records that no checkpoint had. */
      readonly replayed: number;
    }
  | { readonly kind: "refused"; readonly refusal: StoreRefusal }
  /** The first `count` records of this process are durable; the other fields are for observers. */
  | {
      readonly kind: "durable";
      readonly count: number;
      readonly ticket: number;
      readonly lsn: number;
      readonly segmentId: number;
      readonly offset: number;
    }
  /** A slice of a checkpoint was taken behind the record with this ticket. */
  | { readonly kind: "marked"; readonly ticket: number }
  | { readonly kind: "checkpointBegun"; readonly localLsn: number }
  | { readonly kind: "checkpointCreated"; readonly header: CheckpointHeader }
  /** The disk is full: the log only grows until the next one succeeds. */
  | { readonly kind: "checkpointFailed"; readonly problem: FileProblem }
  | { readonly kind: "checkpointEnded"; readonly id: number }
  | { readonly kind: "compacted"; readonly segments: number; readonly safeLsn: number }
  /** The archive's copy of a job; null if there is none, or none that can be read. */
  | { readonly kind: "archivedState"; readonly jobId: string; readonly state: JobState | null }
  /** The archive has expired these jobs. */
  | { readonly kind: "forgotten"; readonly jobIds: readonly string[] }
  | {
      readonly kind: "damaged";
      readonly what: "checkpoint" | "archive";
      readonly file: string;
      readonly problem: string;
    }
  /** Nothing is kept any more; the process ends for recovery. */
  | {
      readonly kind: "failed";
      readonly during: string;
      readonly code: string;
      readonly message: string;
    }
  | Extract<
      LogEvent,
      { kind: "written" | "segmentOpened" | "flushed" | "stalled" | "resumed" | "closed" }
    >;

export type StoreEffect = FileEffect | StoreEvent;
