/** Inputs and outputs of the writer. */

import type { Crc32 } from "../../base/crc32.ts";
import type { WalConfig } from "./limits.ts";
import type { WriterPosition } from "./recovery.ts";
import type { WalRules } from "./rules.ts";

export interface WriterOptions {
  readonly config: WalConfig;
  readonly identity: string;
  readonly position: WriterPosition;
  readonly rules?: WalRules;
  readonly checksum?: Crc32;
  /** Uninitialised memory is fine. */
  readonly allocate?: (bytes: number) => Uint8Array;
}

export interface WalEntry {
  readonly type: number;
  readonly payload: Uint8Array;
  readonly wall: number;
  readonly logical: number;
}

export type AppendRefusal =
  /** The queue is full: try again after a step, or shed. Nothing was written and nothing will be. (SW-7) */
  | "QUEUE_FULL"
  /** Larger than `payloadBytesMax`. (WAL-11) */
  | "TOO_LARGE"
  | "UNKNOWN_TYPE"
  | "SHUTDOWN"
  /** A sync or write failed: the log has ended. (WAL-14) */
  | "FAILED";

export type WriterOperation = "write" | "sync" | "create" | "truncate";

export type WriterInput =
  /** Something was appended, or a deadline has come. */
  | { readonly kind: "tick" }
  /** The write in progress has written this many bytes; fewer than requested is a short write. */
  | { readonly kind: "written"; readonly bytes: number }
  | { readonly kind: "synced" }
  | { readonly kind: "created"; readonly segmentId: number }
  | { readonly kind: "truncated" }
  | {
      readonly kind: "failed";
      readonly during: WriterOperation;
      /** `ENOSPC` and `EDQUOT` are survived while writing and creating; everything else is final. */
      readonly code: string;
      readonly message: string;
    }
  /** Make all that has been appended so far durable, without waiting for more. */
  | { readonly kind: "flush"; readonly id: number }
  | { readonly kind: "close" };

export type WriterEffect =
  /** Make this file, zero-filled to `bytes`, synced, its directory entry too. At most one at a time. */
  | { readonly kind: "createSegment"; readonly segmentId: number; readonly bytes: number }
  /** At most one at a time. The chunks belong to the writer again after `written` or `failed`. */
  | {
      readonly kind: "write";
      readonly segmentId: number;
      readonly offset: number;
      readonly chunks: readonly Uint8Array[];
    }
  /** At most one at a time; it may run beside a write. */
  | { readonly kind: "sync"; readonly segmentId: number }
  /** Everything from `offset` on becomes zero, and that is synced. Alone. */
  | { readonly kind: "truncate"; readonly segmentId: number; readonly offset: number }
  /** These appends are in the page cache, with LSNs from `firstLsn` on. */
  | {
      readonly kind: "written";
      readonly firstTicket: number;
      readonly count: number;
      readonly firstLsn: number;
      readonly segmentId: number;
      /** Where the first of them begins. */
      readonly offset: number;
    }
  /** Every append up to `ticket` that was not rejected is durable, and all bytes up to `offset`. */
  | {
      readonly kind: "durable";
      readonly ticket: number;
      readonly lsn: number;
      readonly segmentId: number;
      readonly offset: number;
    }
  /** These appends were not written and will not be. */
  | {
      readonly kind: "rejected";
      readonly firstTicket: number;
      readonly count: number;
      readonly code: string;
      readonly message: string;
    }
  /** Nothing will be written to this segment again. */
  | {
      readonly kind: "sealed";
      readonly segmentId: number;
      readonly lastLsn: number;
      readonly endOffset: number;
    }
  /** The first bytes of a new segment are about to be written. */
  | { readonly kind: "opened"; readonly segmentId: number; readonly firstLsn: number }
  | { readonly kind: "flushed"; readonly id: number }
  /** The disk is full, and has space again. */
  | { readonly kind: "stalled"; readonly code: string }
  | { readonly kind: "resumed" }
  /** The log has ended; the process stops serving and exits for recovery. */
  | {
      readonly kind: "failed";
      readonly during: WriterOperation;
      readonly code: string;
      readonly message: string;
    }
  | { readonly kind: "closed" };

export type WriterStatus = "open" | "closing" | "closed" | "failed";

export interface WriterView {
  readonly status: WriterStatus;
  readonly nextLsn: number;
  readonly durableLsn: number;
  readonly writtenLsn: number;
  readonly durableTicket: number;
  readonly lastTicket: number;
  readonly segmentId: number;
  readonly offset: number;
  readonly queueEntries: number;
  readonly queueBytes: number;
  readonly stalled: string | null;
  readonly writes: number;
  readonly syncs: number;
  readonly overflowCount: number;
}
