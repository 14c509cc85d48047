/** State of the writer: log positions, the batch being written, pending flushes. */

import type { BatchBuilder } from "./batch-builder.ts";
import type { QueuedEntry } from "./entry-queue.ts";

/** A place in the log: everything up to here. */
export interface Place {
  readonly ticket: number;
  readonly lsn: number;
  readonly segmentId: number;
  readonly offset: number;
}

/** Wants everything up to the ticket `through` durable. */
export interface Flush {
  readonly id: number;
  readonly through: number;
}

export interface Batch {
  readonly items: readonly QueuedEntry[];
  readonly builder: BatchBuilder;
  readonly segmentId: number;
  readonly offset: number;
  readonly firstLsn: number;
  readonly end: Place;
  /** How much of it has been written. */
  done: number;
}
