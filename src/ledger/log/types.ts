/** Options and events of an open log. */

import type { WalConfig } from "../../core/ledger/log/limits.ts";
import type { WalRecord } from "../../core/ledger/log/record.ts";
import type { Damage, RecordPlace } from "../../core/ledger/log/recovery.ts";
import type { WalError } from "./errors.ts";

export interface WalOptions {
  readonly directory: string;
  /** Result of `identityOf(cluster, node)`; a log of another node is rejected. */
  readonly identity: string;
  readonly config?: Partial<WalConfig>;
  /** The hybrid clock. By default the log's own, which continues from what was recovered. */
  readonly stamp?: () => { readonly wall: number; readonly logical: number };
  /** Every recovered entry in order, before `open` resolves. The payload is a view: copy what stays. */
  readonly onEntry?: (record: WalRecord, place: RecordPlace) => void;
  /** The first `count` posted entries are durable. With it a full disk makes entries wait. */
  readonly onDurable?: (count: number) => void;
  /** The log has ended. By default the error is thrown where nothing catches it. */
  readonly onFailed?: (error: WalError) => void;
  readonly onEvent?: (event: WalEvent) => void;
}

/** Events for operators, with constant names. */
export type WalEvent =
  | { readonly event: "wal.recovered"; readonly recovery: RecoveryResult }
  | { readonly event: "wal.torn-tail-cut"; readonly damage: Damage }
  | { readonly event: "wal.segment-opened"; readonly segmentId: number; readonly firstLsn: number }
  | { readonly event: "wal.disk-full"; readonly code: string }
  | { readonly event: "wal.disk-has-space" }
  | { readonly event: "wal.compacted"; readonly segments: number; readonly safeLsn: number };

export interface RecoveryResult {
  readonly recoveredEntries: number;
  readonly firstLsn: number;
  readonly maxLsn: number;
  readonly maxHlc: { readonly wall: number; readonly logical: number };
  readonly tornTail: Damage | null;
}
