/**
 * Audit query between two times, over jobs in memory and in the archive: every event with its log index, its time and
 * its outcome, ordered by time. One node answers for the jobs it replicates; a single job is read from any node that
 * has it. (LEDG-8)
 */

import { compareHlc } from "../core/base/hlc.ts";
import type { JobState } from "../core/ledger/job/job-state.ts";
import { type TrailEntry, trailEntries } from "../core/ledger/job/trail.ts";
import type { LedgerNode } from "../core/ledger/node/node.ts";
import type { ArchiveReader } from "./archive.ts";

export const AUDIT_EVENTS_MAX = 10_000;

export interface AuditQuery {
  /** Wall-clock milliseconds, both included. */
  readonly from: number;
  readonly to: number;
  readonly jobId: string | null;
  readonly limit: number;
}

interface AuditEvent {
  readonly jobId: string;
  readonly event: TrailEntry;
  readonly archived: boolean;
}

export interface AuditPage {
  readonly events: readonly AuditEvent[];
  /** Whether more events matched than requested; the earliest are included. */
  readonly truncated: boolean;
}

export async function auditTrail(
  node: LedgerNode,
  archive: ArchiveReader,
  query: AuditQuery,
): Promise<AuditPage> {
  const found: AuditEvent[] = [];
  const live = new Set<string>();
  for (const { app, id } of node.groups.values()) {
    if (app.kind !== "job") continue;
    live.add(id);
    collect(app.state, false, query, found);
  }
  for await (const state of archive.between(query.from, query.to)) {
    if (!live.has(state.jobId)) collect(state, true, query, found);
  }
  return pageOf(found, query);
}

/** The same of a job that was read through the ledger. */
export function auditOfJob(state: JobState, archived: boolean, query: AuditQuery): AuditPage {
  const found: AuditEvent[] = [];
  collect(state, archived, query, found);
  return pageOf(found, query);
}

function pageOf(found: AuditEvent[], query: AuditQuery): AuditPage {
  found.sort((a, b) => compareHlc(a.event.hlc, b.event.hlc) || a.event.seq - b.event.seq);
  const limit = Math.min(query.limit, AUDIT_EVENTS_MAX);
  return { events: found.slice(0, limit), truncated: found.length > limit };
}

function collect(
  { jobId, trail }: JobState,
  archived: boolean,
  { from, to, jobId: wanted }: AuditQuery,
  into: AuditEvent[],
): void {
  if (wanted !== null && wanted !== jobId) return;
  for (const event of trailEntries(trail)) {
    const { wallMs } = event.hlc;
    if (wallMs >= from && wallMs <= to) into.push({ jobId, event, archived });
  }
}
