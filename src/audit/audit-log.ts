/**
 * The audit log of one node: requests with requester and time, on a write-ahead log of its own. (SWIM-12)
 *
 *     const audit = await AuditLog.open(join(dataDir, "audit"), { node: "gate-1", clock, log, background });
 *     audit.record({ kind: "member.joined", subject: "b", requester: { kind: "peer", name: "c" } });
 *
 * Recording never waits, throws or ends the process: an entry without room, or on a failed disk, is counted, and the
 * count becomes an entry once there is room. Entries are durable a few milliseconds later, whole batches at a time;
 * `flush` waits for it.
 *
 * Size and age are bounded by whole segments: the oldest is removed when there are too many, or when its newest entry
 * is too old. The active segment stays, however old its first entry.
 */

import { rename } from "node:fs/promises";
import { assert } from "../core/base/assert.ts";
import { RECORD_TYPES } from "../core/ledger/log/record-types.ts";
import { identityOf } from "../core/ledger/log/segment.ts";
import type { Background, Work } from "../host/background.ts";
import type { AuditCounts, AuditEvent, AuditRequester, OpenAudit } from "../host/ports/audit.ts";
import type { Clock } from "../host/ports/clock.ts";
import type { Log } from "../host/ports/log.ts";
import { systemCode, WalError } from "../ledger/log/errors.ts";
import type { WalEvent } from "../ledger/log/types.ts";
import { Wal } from "../ledger/log/wal.ts";
import {
  AUDIT_DEFAULTS,
  AUDIT_SEGMENT_BYTES,
  AUDIT_SEGMENTS_MIN,
  type AuditBounds,
} from "./bounds.ts";
import { ENTRY_BYTES_MAX, encodeEvent } from "./entry.ts";

export interface AuditLogOptions extends Partial<AuditBounds> {
  /** The writing node; part of every entry, for logs that are read together. */
  readonly node: string;
  readonly clock: Clock;
  /** Receives reports of dropped entries and of a failed log. */
  readonly log: Log;
  /** Checks for old segments once an hour. */
  readonly background: Background;
  /** Only tests need small ones. */
  readonly segmentBytes?: number;
}

/** The same for every node: a ledger's log is rejected here, and an audit log there. */
export const AUDIT_IDENTITY = identityOf("audit log", "any node");
/** Entries queued for the disk; beyond it they are counted instead. 1,000 members may fail at once. */
const QUEUE_ENTRIES_MAX = 2_000;
/** A count is written when at most this many are queued, so that it does not take the last slot. */
const REPORT_ENTRIES_MAX = QUEUE_ENTRIES_MAX / 2;
const QUEUE_BYTES_MAX = QUEUE_ENTRIES_MAX * ENTRY_BYTES_MAX;
const RETENTION_MS = 3_600_000;
/** Unreadable logs kept beside the new one; further ones need an operator. */
const SET_ASIDE_MAX = 3;
/** Nodes that share a data directory; 32 MB each at most. */
const NEIGHBOURS_MAX = 16;

interface SegmentAge {
  readonly firstLsn: number;
  /** No entry in it is newer. */
  newestMs: number;
}

export class AuditLog implements OpenAudit {
  readonly #options: AuditLogOptions;
  readonly #wal: Wal;
  readonly #segments: SegmentAge[];
  readonly #retention: Work;
  #waiting = 0;
  #recorded = 0;
  #dropped = 0;
  /** Dropped and not yet reported in an entry. */
  #unreported = 0;
  #unreportedSinceMs = 0;
  #ended = false;
  #retaining: Promise<void> = Promise.resolve();

  private constructor(options: AuditLogOptions, wal: Wal, segments: SegmentAge[]) {
    this.#options = options;
    this.#wal = wal;
    this.#segments = segments;
    const { background } = options;
    this.#retention = background.every("audit retention", RETENTION_MS, () => this.#retain());
  }

  /**
   * Recovers the log and continues after its end. A log that is damaged below its tail is moved to
   * `<directory>.damaged-1` and so on, and a new one begun; another process's log, a foreign directory and one that
   * cannot be written are rejected with a `WalError`.
   */
  static async open(directory: string, options: AuditLogOptions): Promise<AuditLog> {
    const { bytesMax = AUDIT_DEFAULTS.bytesMax, segmentBytes = AUDIT_SEGMENT_BYTES } = options;
    assert(bytesMax >= AUDIT_SEGMENTS_MIN * segmentBytes, "an audit log holds three segments");
    try {
      return await AuditLog.#open(directory, options);
    } catch (error) {
      if (!(error instanceof WalError) || error.code !== "WAL_CORRUPT") throw error;
      const aside = await setAside(directory, error);
      options.log.event("error", "audit.replaced", { directory, aside, problem: error.message });
      const audit = await AuditLog.#open(directory, options);
      const detail = { aside, problem: error.message };
      audit.record({ kind: "audit.replaced", subject: options.node, requester: SYSTEM, detail });
      return audit;
    }
  }

  /**
   * The first of `directory`, `<directory>-2` and so on that no other process writes to: for nodes of one machine that
   * share a data directory. Entries name their node.
   */
  static async openFree(directory: string, options: AuditLogOptions): Promise<AuditLog> {
    for (let number = 1; ; number++) {
      const path = number === 1 ? directory : `${directory}-${number}`;
      try {
        return await AuditLog.open(path, options);
      } catch (error) {
        const taken = error instanceof WalError && error.code === "WAL_LOCKED";
        if (!taken || number === NEIGHBOURS_MAX) throw error;
      }
    }
  }

  static async #open(directory: string, options: AuditLogOptions): Promise<AuditLog> {
    const { clock, log, segmentBytes = AUDIT_SEGMENT_BYTES, node } = options;
    const segments = new Map<number, SegmentAge>();
    let audit: AuditLog | null = null;
    let stamp = { wall: 0, logical: 0 };
    const wal = await Wal.open({
      directory,
      identity: AUDIT_IDENTITY,
      config: {
        segmentBytes,
        payloadBytesMax: ENTRY_BYTES_MAX,
        queueEntriesMax: QUEUE_ENTRIES_MAX,
        queueBytesMax: QUEUE_BYTES_MAX,
        unsyncedEntriesMax: QUEUE_ENTRIES_MAX,
        fullDisk: "wait",
      },
      // Time never goes back within a log, whatever the clock does: entries are read by time.
      stamp: () => {
        const wall = Math.max(stamp.wall, clock.wall());
        stamp = { wall, logical: wall === stamp.wall ? stamp.logical + 1 : 0 };
        return stamp;
      },
      onEntry: ({ lsn, wall, logical }, { segmentId }) => {
        stamp = { wall, logical };
        const known = segments.get(segmentId);
        if (known === undefined) segments.set(segmentId, { firstLsn: lsn, newestMs: wall });
        else known.newestMs = wall;
      },
      onEvent: (event) => {
        if (audit !== null) audit.#onEvent(event);
      },
      onFailed: (error) => {
        if (audit !== null) audit.#onFailed(error);
      },
    });
    audit = new AuditLog(options, wal, [...segments.values()]);
    const { recoveredEntries, tornTail } = wal.recovery;
    if (tornTail !== null) log.event("warn", "audit.torn-tail-cut", { offset: tornTail.offset });
    const detail = {
      pid: process.pid,
      entries: recoveredEntries,
      tailCut: tornTail !== null,
      ...audit.#bounds,
    };
    audit.record({ kind: "audit.opened", subject: node, requester: SYSTEM, detail });
    audit.#retain();
    return audit;
  }

  get counts(): AuditCounts {
    return { recorded: this.#recorded, dropped: this.#dropped };
  }

  record(event: AuditEvent): void {
    this.#reportDropped();
    const lost = (): void => {
      this.#dropped++;
      this.#keepUnreported(1);
    };
    if (!this.#append(event, lost)) lost();
  }

  /** Resolves when everything recorded before is durable or counted as dropped. */
  async flush(): Promise<void> {
    if (!this.#ended) await this.#wal.flush();
  }

  /** Makes recorded entries durable. Never rejects: a stopping caller could not handle it. */
  async close(): Promise<void> {
    this.#retention.cancel();
    this.#reportDropped();
    this.#ended = true;
    await this.#retaining;
    await this.#wal.close().catch(() => {});
  }

  get #bounds(): AuditBounds {
    const { bytesMax = AUDIT_DEFAULTS.bytesMax, ageMsMax = AUDIT_DEFAULTS.ageMsMax } =
      this.#options;
    return { bytesMax, ageMsMax };
  }

  /** Returns false without room. An accepted entry may still be lost with the disk. */
  #append(event: AuditEvent, lost: () => void): boolean {
    if (this.#ended || this.#waiting >= QUEUE_ENTRIES_MAX) return false;
    this.#waiting++;
    const payload = encodeEvent(this.#options.node, event);
    this.#wal.append(RECORD_TYPES.AUDIT_ENTRY, payload).then(
      () => {
        this.#waiting--;
        this.#recorded++;
        this.#reportDropped();
      },
      () => {
        this.#waiting--;
        lost();
      },
    );
    return true;
  }

  #keepUnreported(count: number): void {
    if (this.#unreported === 0) {
      const { clock, log } = this.#options;
      this.#unreportedSinceMs = clock.wall();
      log.event("warn", "audit.dropping", { waiting: this.#waiting, ended: this.#ended });
    }
    this.#unreported += count;
  }

  /** Writes the count of dropped entries as soon as there is room for it. */
  #reportDropped(): void {
    const count = this.#unreported;
    if (count === 0 || this.#ended || this.#waiting > REPORT_ENTRIES_MAX) return;
    const { node: subject, log } = this.#options;
    const detail = { count, since: new Date(this.#unreportedSinceMs).toISOString() };
    this.#unreported = 0;
    log.event("warn", "audit.dropped", detail);
    const event: AuditEvent = { kind: "audit.dropped", subject, requester: SYSTEM, detail };
    this.#append(event, () => this.#keepUnreported(count));
  }

  #onEvent(event: WalEvent): void {
    const { log, clock } = this.#options;
    if (event.event === "wal.disk-full")
      log.event("error", "audit.disk-full", { code: event.code });
    if (event.event !== "wal.segment-opened") return;
    const last = this.#segments.at(-1);
    if (last !== undefined) last.newestMs = clock.wall();
    this.#segments.push({ firstLsn: event.firstLsn, newestMs: Number.POSITIVE_INFINITY });
    this.#retain();
  }

  #onFailed(error: WalError): void {
    this.#ended = true;
    this.#retention.cancel();
    this.#options.log.event("error", "audit.failed", { problem: error.message });
  }

  /** Removes surplus or old segments, one at a time. */
  #retain(): void {
    const { clock, log, segmentBytes = AUDIT_SEGMENT_BYTES } = this.#options;
    const { bytesMax, ageMsMax } = this.#bounds;
    // One is being prepared behind the active one.
    const countMax = Math.floor(bytesMax / segmentBytes) - 1;
    const oldestMs = clock.wall() - ageMsMax;
    let safeLsn = 0;
    for (;;) {
      const [first, next] = this.#segments;
      if (first === undefined || next === undefined) break;
      if (this.#segments.length <= countMax && first.newestMs >= oldestMs) break;
      this.#segments.shift();
      safeLsn = next.firstLsn - 1;
    }
    if (safeLsn === 0) return;
    this.#retaining = this.#wal.compact(safeLsn).then(
      () => {},
      (error: unknown) => log.event("error", "audit.not-removed", { problem: String(error) }),
    );
  }
}

const SYSTEM: AuditRequester = { kind: "system", name: "" };

/** Keeps the evidence; this many unreadable logs mean a disk that needs attention. */
async function setAside(directory: string, problem: WalError): Promise<string> {
  for (let number = 1; number <= SET_ASIDE_MAX; number++) {
    const aside = `${directory}.damaged-${number}`;
    try {
      await rename(directory, aside);
      return aside;
    } catch (error) {
      if (!["ENOTEMPTY", "EEXIST"].includes(systemCode(error))) throw error;
    }
  }
  const advice = `${SET_ASIDE_MAX} damaged logs lie beside it already: look at them, then remove them`;
  throw new WalError(problem.code, `${problem.message}; ${advice}`, problem);
}
