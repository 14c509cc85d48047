/**
 * Audit queries: every event of a time range, from the live ledger and the archive, in the order of their
 * times. Answers come in pages; a page costs the memory of a page, whatever the sources hold. (LEDG-8)
 */

import { assert } from "../../base/assert.ts";
import { compareHlc, type Hlc } from "../../base/hlc.ts";
import type { JobEvent, JobEventKind } from "./events.ts";
import type { JobId } from "./job-id.ts";
import type { CommittedEntry } from "./repair.ts";

/** A stretch of one job's committed log, wherever it is kept. An `ArchiveRecord` is one. */
export interface JobStretch {
  readonly jobId: JobId;
  readonly entries: Iterable<CommittedEntry>;
}

export interface AuditQuery {
  /** Wall time of the events, both ends included. */
  readonly fromMs: number;
  readonly toMs: number;
  readonly jobId?: JobId;
  readonly kinds?: readonly JobEventKind[];
  readonly rowsMax: number;
  /** The last row of the page before. */
  readonly after?: AuditCursor;
}

export interface AuditCursor {
  readonly hlc: Hlc;
  readonly jobId: JobId;
  readonly seq: number;
}

export interface AuditRow {
  readonly jobId: JobId;
  readonly seq: number;
  readonly event: JobEvent;
}

export interface AuditPage {
  readonly rows: readonly AuditRow[];
  /** Where to go on; null when this was all. */
  readonly next: AuditCursor | null;
}

/** An event that lies in both sources, as while it is being archived, is one row. */
export function auditEvents(
  query: AuditQuery,
  live: Iterable<JobStretch>,
  archived: Iterable<JobStretch>,
): AuditPage {
  const { rowsMax } = query;
  assert(rowsMax >= 1, "a page has room for a row");
  let rows: AuditRow[] = [];
  for (const source of [live, archived]) {
    for (const row of rowsOf(query, source)) {
      rows.push(row);
      // One more than asked for tells whether there is a next page.
      if (rows.length > 4 * rowsMax + 4) rows = firstRows(rows, rowsMax + 1);
    }
  }
  const found = firstRows(rows, rowsMax + 1);
  const page = found.slice(0, rowsMax);
  const last = page.at(-1);
  const hasMore = found.length > rowsMax && last !== undefined;
  return { rows: page, next: hasMore ? cursorOf(last) : null };
}

function* rowsOf(query: AuditQuery, source: Iterable<JobStretch>): Generator<AuditRow> {
  for (const { entries, jobId } of source) {
    if (query.jobId !== undefined && query.jobId !== jobId) continue;
    for (const { event, seq } of entries) {
      if (event === null || !isAsked(query, event)) continue;
      const row = { jobId, seq, event };
      if (query.after !== undefined && compareCursors(cursorOf(row), query.after) <= 0) continue;
      yield row;
    }
  }
}

function isAsked({ fromMs, kinds, toMs }: AuditQuery, { hlc, kind }: JobEvent): boolean {
  if (hlc.wallMs < fromMs || hlc.wallMs > toMs) return false;
  return kinds === undefined || kinds.includes(kind);
}

/** Sorted, each once, the first ones. */
function firstRows(rows: readonly AuditRow[], count: number): AuditRow[] {
  const sorted = [...rows].sort((a, b) => compareCursors(cursorOf(a), cursorOf(b)));
  const distinct = sorted.filter((row, at) => {
    const before = sorted[at - 1];
    return before === undefined || compareCursors(cursorOf(before), cursorOf(row)) !== 0;
  });
  return distinct.slice(0, count);
}

function cursorOf({ event, jobId, seq }: AuditRow): AuditCursor {
  return { hlc: event.hlc, jobId, seq };
}

function compareCursors(a: AuditCursor, b: AuditCursor): number {
  const byTime = compareHlc(a.hlc, b.hlc);
  if (byTime !== 0) return byTime;
  if (a.jobId !== b.jobId) return a.jobId < b.jobId ? -1 : 1;
  return a.seq - b.seq;
}

/** The newest committed events in memory, a bounded number over all jobs: what a status page shows first. */
export class RecentEvents {
  readonly #rowsMax: number;
  #rows: AuditRow[] = [];
  #start = 0;

  constructor(rowsMax: number) {
    this.#rowsMax = rowsMax;
  }

  get size(): number {
    return this.#rows.length - this.#start;
  }

  add(row: AuditRow): void {
    this.#rows.push(row);
    if (this.size > this.#rowsMax) this.#start++;
    // Moved once per length of the list, so that adding stays cheap.
    if (this.#start >= this.#rowsMax) {
      this.#rows = this.#rows.slice(this.#start);
      this.#start = 0;
    }
  }

  /** Oldest first. */
  *[Symbol.iterator](): Generator<AuditRow> {
    for (let at = this.#start; at < this.#rows.length; at++) yield this.#rows[at] as AuditRow;
  }
}
