/**
 * Reads an audit log, also one that a process is writing to, without changing a byte of it. Entries come in the order
 * they were written, newest last, a few hundred kilobytes in memory at a time.
 *
 * Unreadable parts are reported and skipped, a segment at a time: the rest of the evidence counts.
 */

import { stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isControlType, RECORD_TYPES } from "../core/ledger/log/record-types.ts";
import { systemCode, WalError } from "../ledger/log/errors.ts";
import { inspectLog } from "../ledger/log/inspect.ts";
import { readDirectory } from "../ledger/log/look.ts";
import {
  listSegments,
  type ReadEntry,
  readRecords,
  type SegmentInfo,
} from "../ledger/log/reader.ts";
import { AUDIT_IDENTITY } from "./audit-log.ts";
import { decodeEvent, type StoredEvent } from "./entry.ts";

export interface AuditEntry {
  /** Number in this log; ascending with gaps. */
  readonly lsn: number;
  /** Milliseconds since 1970. */
  readonly at: number;
  readonly node: string;
  readonly kind: string;
  readonly subject: string;
  readonly requester: StoredEvent["requester"];
  readonly detail: Readonly<Record<string, string>>;
}

export interface AuditFilter {
  /** Wall-clock milliseconds, both included. */
  readonly fromMs?: number;
  readonly toMs?: number;
  /** "member.failed", or "member" for all of its group. */
  readonly kind?: string;
  readonly subject?: string;
  /** A requester's name, credential or address; its kind, too. */
  readonly requester?: string;
}

export interface AuditProblem {
  /** False: the end of the log is being written, or was when its process died. */
  readonly damaged: boolean;
  readonly message: string;
}

interface ReadAuditOptions {
  /** Only what was written after this number. */
  readonly afterLsn?: number;
  readonly onProblem?: (problem: AuditProblem) => void;
}

export class AuditReadError extends Error {
  override readonly name = "AuditReadError";
  readonly code: "MISSING" | "NOT_AUDIT" | "NEWER";

  constructor(code: AuditReadError["code"], message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
  }
}

/** The log's own directory; a data directory stands for the `audit` in it. */
export async function auditDirectory(path: string): Promise<string> {
  const inside = join(path, "audit");
  const found = await stat(inside).catch(() => null);
  return found?.isDirectory() === true ? inside : path;
}

export async function* readAudit(
  directory: string,
  filter: AuditFilter = {},
  options: ReadAuditOptions = {},
): AsyncGenerator<AuditEntry> {
  const { afterLsn = 0, onProblem = () => {} } = options;
  const segments = await openSegments(directory, onProblem);
  for (const [place, segment] of segments.entries()) {
    const next = segments[place + 1];
    if (next !== undefined && next.firstLsn <= afterLsn + 1) continue;
    try {
      for await (const record of recordsOf(segment, next, afterLsn)) {
        const entry = entryOf(directory, record, onProblem);
        if (entry === null) continue;
        if (filter.toMs !== undefined && entry.at > filter.toMs) return;
        if (matches(entry, filter)) yield entry;
      }
    } catch (error) {
      const problem = await problemOf(directory, error, next === undefined);
      if (problem !== null) onProblem(problem);
    }
  }
}

const FOLLOW_MS = 500;

/** Continues with new entries, until the signal. */
export async function* followAudit(
  directory: string,
  filter: AuditFilter,
  options: ReadAuditOptions & { readonly signal: AbortSignal },
): AsyncGenerator<AuditEntry> {
  let { afterLsn = 0 } = options;
  while (!options.signal.aborted) {
    // Unfiltered, so that the position is known; a half-written end is only read again.
    for await (const entry of readAudit(directory, {}, { afterLsn })) {
      afterLsn = entry.lsn;
      if (matches(entry, filter)) yield entry;
    }
    await sleep(FOLLOW_MS, undefined, { signal: options.signal }).catch(() => {});
  }
}

async function openSegments(
  directory: string,
  onProblem: (problem: AuditProblem) => void,
): Promise<readonly SegmentInfo[]> {
  try {
    const { segments, foreign } = await readDirectory(directory);
    if (segments.length === 0) {
      const text =
        foreign.length === 0 ? "it is empty" : `it holds ${foreign.slice(0, 3).join(", ")}`;
      throw new AuditReadError("NOT_AUDIT", `${directory} is not an audit log: ${text}`);
    }
    return await listSegments(directory, {
      identity: AUDIT_IDENTITY,
      onDamaged: (file) =>
        onProblem({ damaged: true, message: `${file}: damaged header, passed over` }),
    });
  } catch (error) {
    throw explained(directory, error);
  }
}

function explained(directory: string, error: unknown): unknown {
  if (!(error instanceof WalError)) return error;
  if (error.code === "WAL_MISSING") return new AuditReadError("MISSING", error.message, error);
  if (error.code === "WAL_VERSION") return newer(directory, error.message);
  const text = `${directory} is not an audit log: ${error.message}`;
  return new AuditReadError("NOT_AUDIT", text, error);
}

function newer(directory: string, what: string): AuditReadError {
  const text = `${directory} was written by a newer version (${what}): read it with that one`;
  return new AuditReadError("NEWER", text);
}

function recordsOf(
  segment: SegmentInfo,
  next: SegmentInfo | undefined,
  afterLsn: number,
): AsyncGenerator<ReadEntry> {
  const from = Math.max(segment.firstLsn, afterLsn + 1);
  if (next === undefined) return readRecords([segment], { from });
  return readRecords([segment, next], { from, to: next.firstLsn - 1 });
}

const UNFINISHED: AuditProblem = {
  damaged: false,
  message: "the last entries are being written, or were cut by a crash",
};
/** A writer may overtake a reader in the middle of the file; real damage is there at the next read too. */
const READS_MAX = 3;
const LOOK_AGAIN_MS = 100;

/** Problem at the end of a segment; null: none. Throws errors that are not about its bytes. */
async function problemOf(
  directory: string,
  error: unknown,
  last: boolean,
): Promise<AuditProblem | null> {
  // Removed while we were reading: it was too old.
  if (systemCode(error) === "ENOENT") return null;
  if (!(error instanceof WalError)) throw error;
  if (!last) {
    return { damaged: true, message: `${error.message}; the rest of this segment is passed over` };
  }
  for (let read = 1; ; read++) {
    const { verdict, detail } = await inspectLog(directory);
    if (verdict === "sound") return null;
    if (verdict === "torn-tail") return UNFINISHED;
    if (read === READS_MAX) return { damaged: true, message: detail ?? error.message };
    await sleep(LOOK_AGAIN_MS);
  }
}

function entryOf(
  directory: string,
  { lsn, wall, type, payload }: ReadEntry,
  onProblem: (problem: AuditProblem) => void,
): AuditEntry | null {
  if (isControlType(type)) return null;
  if (type !== RECORD_TYPES.AUDIT_ENTRY) throw newer(directory, `records of type ${type}`);
  const decoded = decodeEvent(payload);
  if (decoded.kind === "newer") throw newer(directory, `entries of format ${decoded.format}`);
  if (decoded.kind === "damaged") {
    onProblem({ damaged: true, message: `entry ${lsn} cannot be read: ${decoded.problem}` });
    return null;
  }
  const { node, kind, subject, requester, detail } = decoded.event;
  const fields = Object.fromEntries(detail.map(({ name, value }) => [name, value]));
  return { lsn, at: wall, node, kind, subject, requester, detail: fields };
}

function matches(entry: AuditEntry, filter: AuditFilter): boolean {
  const { fromMs, toMs, kind, subject, requester } = filter;
  if (fromMs !== undefined && entry.at < fromMs) return false;
  if (toMs !== undefined && entry.at > toMs) return false;
  if (kind !== undefined && entry.kind !== kind && !entry.kind.startsWith(`${kind}.`)) return false;
  if (subject !== undefined && entry.subject !== subject) return false;
  return requester === undefined || Object.values(entry.requester).includes(requester);
}
