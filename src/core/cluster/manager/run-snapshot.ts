/** Checkpoint of a job, and its shape. */

import type { AttemptView } from "../messages.ts";
import type { TimeoutTracking } from "../overload/job-timeout.ts";
import type { Grant } from "./datacenter-state.ts";
import { type BlocksSnapshot, isBlocks } from "./given-blocks.ts";
import {
  type Adoption,
  type Decision,
  isAdoption,
  isCore,
  isDecision,
  isEnd,
  isGrant,
  isTracking,
  type RunCore,
  type RunEnd,
} from "./run-entries.ts";
import { isBytes, isNumber, isText, isWhole, listOf, optional, orNull, record } from "./shapes.ts";

/** Times of start and end are derived from the history. */
export type RunAttempt = Omit<AttemptView, "startedAt" | "endedAt" | "reason"> & {
  readonly workflow: string;
};

export interface RunSnapshot {
  readonly createdAt: number;
  readonly waitedMs: number;
  readonly view: number;
  readonly at: number;
  readonly submission: Uint8Array | null;
  readonly grants: readonly Grant[];
  readonly cores: readonly RunCore[];
  readonly placements: number;
  readonly history: readonly Decision[];
  readonly adoptions?: readonly Adoption[];
  readonly attempts: readonly RunAttempt[];
  readonly blocks: BlocksSnapshot;
  readonly keptBytes: number;
  readonly controlBytes: number;
  readonly end: RunEnd | null;
  readonly timeouts?: TimeoutTracking;
}

export const isSnapshot = record({
  ...{ createdAt: isWhole, waitedMs: isWhole, view: isWhole, at: isWhole },
  submission: orNull(isBytes),
  grants: listOf(isGrant),
  cores: listOf(isCore),
  placements: isWhole,
  history: listOf(isDecision),
  adoptions: optional(listOf(isAdoption)),
  attempts: listOf(
    record({ workflow: isText, worker: isText, core: isWhole, token: isWhole, status: isText }),
  ),
  blocks: isBlocks,
  ...{ keptBytes: isNumber, controlBytes: isNumber },
  end: orNull(record(isEnd)),
  timeouts: optional(isTracking),
});
