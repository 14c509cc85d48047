/**
 * Which of two entries stands when data that bypassed the replicated log is merged: an import, an
 * operator's repair, queued cancels. Inside a group there is nothing to resolve, the place in the log
 * decides; two different committed events at one place are a broken promise, never a conflict. (LEDG-6)
 *
 *     cancellation  >  higher fence token  >  later time  >  larger node name  >  larger event id
 *
 * A total order, so the larger of two is the same whoever asks and the largest of many does not depend
 * on the way they are merged. (LEDG-4, LEDG-5)
 */

import { compareStamps, type Hlc } from "../../base/hlc.ts";
import type { NodeId } from "../../base/ids.ts";
import type { JobEvent } from "./events.ts";
import type { JobId } from "./job-id.ts";

export interface JobLedgerEntry {
  readonly jobId: JobId;
  readonly fenceToken: number;
  readonly hlc: Hlc;
  readonly event: JobEvent;
  readonly sourceNode: NodeId;
  readonly sourceRegion: string;
  readonly sourceLsn: number;
}

export function isConflict(a: JobLedgerEntry, b: JobLedgerEntry): boolean {
  if (a.jobId !== b.jobId || a.fenceToken !== b.fenceToken) return false;
  return a.event.eventId !== b.event.eventId;
}

export function resolveConflict(a: JobLedgerEntry, b: JobLedgerEntry): JobLedgerEntry {
  return compareEntries(a, b) >= 0 ? a : b;
}

/** Positive when `a` stands. Zero only for one and the same event from one node. */
export function compareEntries(a: JobLedgerEntry, b: JobLedgerEntry): number {
  return (
    Number(isCancellation(a)) - Number(isCancellation(b)) ||
    a.fenceToken - b.fenceToken ||
    // Without the name: else the next rule could never be reached.
    compareStamps(a.hlc, b.hlc) ||
    compareTexts(a.sourceNode, b.sourceNode) ||
    compareTexts(a.event.eventId, b.event.eventId)
  );
}

function isCancellation({ event }: JobLedgerEntry): boolean {
  return event.kind === "JobCancellationRequested";
}

function compareTexts(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
