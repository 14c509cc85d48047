/**
 * The archive: what compaction takes out of a job's log goes here first, so that the history of any time
 * stays readable. (LEDG-8)
 *
 *     job log   0 ………… 499 │ 500 ……… 803        compacted at 500, archived after its end
 *     records   [0, 499]     [500, 803]         each with the chain before and after: proves itself
 *
 * A record is one stretch of one job's committed log, cut so that it stays within its limit. Anyone can
 * check it alone: hashing its events onto the first chain must give the second.
 */

import { assert } from "../../base/assert.ts";
import { ByteReader, ByteWriter } from "../../base/bytes.ts";
import type { ArchiveConfig } from "./config.ts";
import { type Decoded, decodeEvent, encodeEvent } from "./event-codec.ts";
import { CHAIN_BYTES, chainAfter, isTerminal, type JobState } from "./fold.ts";
import type { JobId } from "./job-id.ts";
import { EVENT_BYTES_MAX, JOB_ID_BYTES_MAX } from "./limits.ts";
import { sameHash } from "./merkle.ts";
import type { CommittedEntry } from "./repair.ts";

export const ARCHIVE_VERSION = 1;
export const ARCHIVE_ENTRIES_MAX = 10_000;
/** A record is cut after this many bytes of events; one largest event fits besides. */
export const ARCHIVE_CUT_BYTES = 4 * 1_048_576;
export const ARCHIVE_RECORD_BYTES_MAX = ARCHIVE_CUT_BYTES + 2 * EVENT_BYTES_MAX;

export interface ArchiveRecord {
  readonly jobId: JobId;
  /** Wall time, for retention. */
  readonly archivedAtMs: number;
  readonly chainBefore: Uint8Array;
  readonly chainAfter: Uint8Array;
  /** Committed places in order, without a hole. */
  readonly entries: readonly CommittedEntry[];
}

/** Cuts a stretch of a job's log into records. */
export function* archiveRecords(
  jobId: JobId,
  entries: Iterable<CommittedEntry>,
  chainBefore: Uint8Array,
  archivedAtMs: number,
): Generator<ArchiveRecord> {
  let first = chainBefore;
  let chain = chainBefore;
  let taken: CommittedEntry[] = [];
  let size = 0;
  for (const entry of entries) {
    const last = taken.at(-1);
    assert(last === undefined || entry.seq === last.seq + 1, "an archived stretch has no hole");
    if (size >= ARCHIVE_CUT_BYTES || taken.length >= ARCHIVE_ENTRIES_MAX) {
      yield { jobId, archivedAtMs, chainBefore: first, chainAfter: chain, entries: taken };
      first = chain;
      taken = [];
      size = 0;
    }
    taken.push(entry);
    if (entry.event === null) continue;
    const bytes = encodeEvent(entry.event);
    chain = chainAfter(chain, bytes);
    size += bytes.length;
  }
  if (taken.length === 0) return;
  yield { jobId, archivedAtMs, chainBefore: first, chainAfter: chain, entries: taken };
}

/** Whether the record's events lead from its first chain to its second. */
export function isIntact(record: ArchiveRecord): boolean {
  let chain = record.chainBefore;
  for (const { event } of record.entries) {
    if (event !== null) chain = chainAfter(chain, encodeEvent(event));
  }
  return sameHash(chain, record.chainAfter);
}

export function encodeArchiveRecord(record: ArchiveRecord): Uint8Array {
  const { archivedAtMs, chainBefore, entries, jobId } = record;
  assert(entries.length <= ARCHIVE_ENTRIES_MAX, "an archive record is cut in time");
  const writer = new ByteWriter(1_024);
  writer.uint8(ARCHIVE_VERSION);
  writer.text(jobId);
  writer.varint(archivedAtMs);
  writer.raw(chainBefore);
  writer.raw(record.chainAfter);
  writer.varint(entries[0]?.seq ?? 0);
  writer.varint(entries.length);
  // A place without an event has no bytes; an event always has some.
  for (const { event } of entries) {
    writer.bytes(event === null ? new Uint8Array(0) : encodeEvent(event));
  }
  return writer.take();
}

/** Total, and checks the chain: what comes out is what went in. */
export function decodeArchiveRecord(bytes: Uint8Array): Decoded<ArchiveRecord> {
  if (bytes.length > ARCHIVE_RECORD_BYTES_MAX) {
    return { ok: false, problem: `${bytes.length} bytes are too many for an archive record` };
  }
  const reader = new ByteReader(bytes);
  const version = reader.uint8();
  if (version !== ARCHIVE_VERSION) {
    return {
      ok: false,
      problem: `archive version ${version}; this build reads ${ARCHIVE_VERSION}`,
    };
  }
  const record: ArchiveRecord = {
    jobId: reader.text(JOB_ID_BYTES_MAX) as JobId,
    archivedAtMs: reader.varint(),
    chainBefore: reader.raw(CHAIN_BYTES).slice(),
    chainAfter: reader.raw(CHAIN_BYTES).slice(),
    entries: readEntries(reader),
  };
  if (reader.remaining > 0) reader.fail(`${reader.remaining} bytes too many`);
  if (!reader.failed && !isIntact(record)) reader.fail("the events do not lead to the chain");
  const { problem } = reader;
  return problem === null ? { ok: true, value: record } : { ok: false, problem };
}

function readEntries(reader: ByteReader): readonly CommittedEntry[] {
  const firstSeq = reader.varint();
  const count = reader.varint();
  if (count > ARCHIVE_ENTRIES_MAX) reader.fail(`${count} entries are too many`);
  const entries: CommittedEntry[] = [];
  for (let at = 0; at < count && !reader.failed; at++) {
    const bytes = reader.bytes(EVENT_BYTES_MAX);
    const decoded = bytes.length === 0 ? null : decodeEvent(bytes);
    if (decoded !== null && !decoded.ok) reader.fail(`entry ${firstSeq + at}: ${decoded.problem}`);
    entries.push({ seq: firstSeq + at, event: decoded?.ok ? decoded.value : null });
  }
  return entries;
}

/** An ended job leaves the live ledger after its retention there. (G-14, VSR-31) */
export function isDueForArchive(state: JobState, wallMs: number, config: ArchiveConfig): boolean {
  if (!isTerminal(state.status) || state.endedAt === null) return false;
  return wallMs >= state.endedAt.wallMs + config.archiveAfterMs;
}

export function isDueForRemoval(
  { archivedAtMs }: Pick<ArchiveRecord, "archivedAtMs">,
  wallMs: number,
  config: ArchiveConfig,
): boolean {
  return config.retentionMs !== null && wallMs >= archivedAtMs + config.retentionMs;
}
