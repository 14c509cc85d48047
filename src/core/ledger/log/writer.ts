/**
 * The single writer with group commit, as a machine: appends and finished I/O in, I/O and answers out.
 *
 *     append → queue ──(batch closes)──▶ write ──▶ written ──(sync)──▶ durable
 *                       100 entries,      one at    in the page         acknowledged,
 *                       256 KB, 10 ms,    a time    cache               always a prefix
 *                       or no sync runs
 *
 * While a sync is under way the next batches are written; the sync after it covers them all, so a slow
 * disk makes larger groups instead of longer queues. (CW-3) A batch lies in one segment and ends with a
 * BATCH record. When the next entry does not fit, the segment is synced, then the prepared next one is
 * begun with a header, and another is prepared. (WAL-6)
 *
 * A failed sync ends the log: the kernel may have dropped the pages it could not write, so trying again
 * and succeeding would prove nothing. (WAL-14) A full disk does not: what was half-written is cut off,
 * its numbers are given back, and its entries are refused or wait. (WAL-15)
 */

import { assert, assertNever } from "../../base/assert.ts";
import { type Millis, millis } from "../../base/brand.ts";
import { type Crc32, crc32 } from "../../base/crc32.ts";
import { BatchBuilder, ChunkPool, type Stamp } from "./batch-builder.ts";
import { BATCH_RECORD_BYTES } from "./control.ts";
import { EntryQueue, type QueuedEntry } from "./entry-queue.ts";
import { isFullDisk } from "./files.ts";
import type { WalConfig } from "./limits.ts";
import { RECORD_HEADER_BYTES, recordBytes } from "./record.ts";
import { isKnownType, RECORD_TYPES } from "./record-types.ts";
import { WAL_RULES, type WalRules } from "./rules.ts";
import { SEGMENT_HEADER_BYTES } from "./segment.ts";
import type { Batch, Flush, Place } from "./writer-state.ts";
import type {
  AppendRefusal,
  WalEntry,
  WriterEffect,
  WriterInput,
  WriterOptions,
  WriterStatus,
  WriterView,
} from "./writer-types.ts";

export class WalWriter {
  readonly #config: WalConfig;
  readonly #identity: string;
  readonly #rules: WalRules;
  readonly #checksum: Crc32;
  readonly #queue: EntryQueue;
  readonly #pool: ChunkPool;
  #effects: WriterEffect[] = [];
  #status: WriterStatus = "open";
  #ticket = 0;
  #nextLsn: number;
  #written: Place;
  #durable: Place;
  #segmentId: number;
  #offset: number;
  /** The active segment has no header yet: the next batch writes it. */
  #headerDue = false;
  #next: { readonly segmentId: number; state: "absent" | "creating" | "ready" };
  #batch: Batch | null = null;
  /** Position that the sync in progress will make durable. */
  #syncing: Place | null = null;
  #cut: { readonly segmentId: number; readonly offset: number } | null = null;
  #cutting = false;
  #stalled: string | null = null;
  #retryAt: Millis | null = null;
  #retrying: "write" | "create" = "write";
  #flushes: Flush[] = [];
  /** Highest LSN confirmed by the last BATCH record. */
  #provenLsn = 0;
  /** The clock of the last entry, for the records the writer adds itself. */
  #stamp: Stamp = { wall: 0, logical: 0 };
  #writes = 0;
  #syncs = 0;

  constructor(options: WriterOptions) {
    const { config, position } = options;
    this.#config = config;
    this.#identity = options.identity;
    this.#rules = options.rules ?? WAL_RULES;
    this.#checksum = options.checksum ?? crc32;
    this.#queue = new EntryQueue(config);
    const allocate = options.allocate ?? ((bytes: number) => new Uint8Array(bytes));
    this.#pool = new ChunkPool(config.chunkBytes, config.chunkCount, allocate);
    this.#nextLsn = position.nextLsn;
    this.#segmentId = position.active?.segmentId ?? 0;
    // Without a segment to continue in, writing begins behind a full one that does not exist.
    this.#offset = position.active?.offset ?? config.segmentBytes;
    const free = config.segmentBytes - this.#offset;
    if (free < config.segmentBytes * config.freeShareMin) this.#offset = config.segmentBytes;
    this.#next = { segmentId: position.nextSegmentId, state: "absent" };
    const lsn = position.nextLsn - 1;
    const offset = position.active?.offset ?? 0;
    this.#durable = { ticket: 0, lsn, segmentId: this.#segmentId, offset };
    this.#written = this.#durable;
    this.#provenLsn = lsn;
  }

  /**
   * Takes an entry into the queue: its ticket (appends counted from 1), or why not. `step` with a tick
   * must follow, at the latest at the end of the caller's turn.
   */
  append(entry: WalEntry, now: Millis): number | AppendRefusal {
    const refusal = this.refusalOf(entry);
    if (refusal !== null) return refusal;
    if (!this.#queue.hasRoom(entry.payload.length)) return "QUEUE_FULL";
    const ticket = ++this.#ticket;
    this.#queue.push({ entry, ticket, at: now });
    return ticket;
  }

  /** Why this entry will never be accepted, however long it waits for space; null: it will. */
  refusalOf(entry: WalEntry): AppendRefusal | null {
    if (this.#status !== "open") return this.#status === "failed" ? "FAILED" : "SHUTDOWN";
    if (!isKnownType(entry.type) || entry.type === RECORD_TYPES.BATCH) return "UNKNOWN_TYPE";
    return entry.payload.length > this.payloadBytesMax ? "TOO_LARGE" : null;
  }

  /** An entry and the BATCH behind it fit an empty segment. */
  get payloadBytesMax(): number {
    const room = this.#config.segmentBytes - SEGMENT_HEADER_BYTES - BATCH_RECORD_BYTES;
    return Math.min(this.#config.payloadBytesMax, room - RECORD_HEADER_BYTES);
  }

  step(input: WriterInput, now: Millis): readonly WriterEffect[] {
    this.#effects = [];
    if (this.#status !== "closed" && this.#status !== "failed") {
      this.#take(input, now);
      this.#pump(now);
    }
    return this.#effects;
  }

  /** When a tick can change something that no finished I/O will. */
  nextDeadline(): Millis | null {
    if (this.#status !== "open" && this.#status !== "closing") return null;
    const retryAt = this.#retryAt;
    if (retryAt !== null && this.#retrying === "write") return retryAt;
    if (this.#batch !== null || this.#cut !== null || !this.#mayWrite()) return retryAt;
    if (this.#queue.length === 0 || !this.#fitsOrReady()) return retryAt;
    return millis(Math.min(this.#batchDeadline(), retryAt ?? Number.POSITIVE_INFINITY));
  }

  snapshot(): WriterView {
    return {
      status: this.#status,
      nextLsn: this.#nextLsn,
      durableLsn: this.#durable.lsn,
      writtenLsn: this.#written.lsn,
      durableTicket: this.#durable.ticket,
      lastTicket: this.#ticket,
      segmentId: this.#segmentId,
      offset: this.#offset,
      queueEntries: this.#queue.length,
      queueBytes: this.#queue.bytes,
      stalled: this.#stalled,
      writes: this.#writes,
      syncs: this.#syncs,
      overflowCount: this.#pool.overflowCount,
    };
  }

  #take(input: WriterInput, now: Millis): void {
    switch (input.kind) {
      case "tick":
        if (this.#retryAt !== null && now >= this.#retryAt) this.#retryAt = null;
        return;
      case "written":
        this.#onWritten(input.bytes);
        return;
      case "synced":
        this.#onSynced();
        return;
      case "created":
        assert(this.#next.state === "creating", "a segment was being created");
        this.#next.state = "ready";
        this.#resume();
        return;
      case "truncated":
        assert(this.#cutting, "a cut was under way");
        this.#cut = null;
        this.#cutting = false;
        return;
      case "failed":
        this.#onFailed(input, now);
        return;
      case "flush":
        this.#flushes.push({ id: input.id, through: this.#ticket });
        return;
      case "close":
        if (this.#status === "open") this.#status = "closing";
        return;
      default:
        assertNever(input);
    }
  }

  /** Starts all that may start now. */
  #pump(now: Millis): void {
    if (this.#status === "failed") return;
    this.#startSync();
    this.#startCut();
    this.#startWrite(now);
    this.#startCreate();
    this.#answerFlushes();
    if (this.#status === "closing") this.#finishClosing();
  }

  // Writing.

  #startWrite(now: Millis): void {
    if (this.#batch !== null || this.#cut !== null) return;
    if (this.#retryAt !== null && this.#retrying === "write") return;
    if (this.#queue.length === 0 || !this.#mayWrite() || !this.#due(now)) return;
    if (!this.#fits(this.#queue.peek())) {
      if (!this.#switchSegment()) return;
    }
    this.#emitBatch(this.#collect());
  }

  /** Is a batch closed now? (WAL-5, SW-4) */
  #due(now: Millis): boolean {
    const { batchEntriesMax, batchBytesMax } = this.#config;
    if (this.#status === "closing" || this.#flushes.length > 0) return true;
    if (this.#queue.length >= batchEntriesMax || this.#queue.bytes >= batchBytesMax) return true;
    if (this.#syncing === null) return true;
    return now >= this.#batchDeadline();
  }

  #batchDeadline(): Millis {
    const from = this.#rules.deadlineFromFirst ? this.#queue.peek() : this.#queue.last();
    return millis((from?.at ?? 0) + this.#config.batchTimeoutMs);
  }

  /** False: so much is written and not synced that the sync comes first. */
  #mayWrite(): boolean {
    const unsynced = this.#written.ticket - this.#durable.ticket;
    return unsynced <= this.#config.unsyncedEntriesMax - this.#config.batchEntriesMax;
  }

  #fits(
    item: QueuedEntry | undefined,
    batchBytes = this.#headerDue ? SEGMENT_HEADER_BYTES : 0,
  ): boolean {
    const size = item === undefined ? 0 : recordBytes(item.entry.payload.length);
    return this.#offset + batchBytes + size + BATCH_RECORD_BYTES <= this.#config.segmentBytes;
  }

  #fitsOrReady(): boolean {
    if (this.#fits(this.#queue.peek())) return true;
    return this.#next.state === "ready" && this.#written.lsn === this.#durable.lsn;
  }

  /** Continues in the prepared segment. False: something has to be finished first. */
  #switchSegment(): boolean {
    const synced = this.#written.lsn === this.#durable.lsn;
    if (!synced && this.#rules.oldSegmentSyncedFirst) {
      this.#startSync();
      return false;
    }
    if (this.#next.state !== "ready") return false;
    const { lsn: lastLsn, offset: endOffset } = this.#written;
    if (this.#segmentId > 0) {
      this.#effects.push({ kind: "sealed", segmentId: this.#segmentId, lastLsn, endOffset });
    }
    this.#segmentId = this.#next.segmentId;
    this.#offset = 0;
    this.#headerDue = true;
    this.#next = { segmentId: this.#segmentId + 1, state: "absent" };
    this.#effects.push({ kind: "opened", segmentId: this.#segmentId, firstLsn: this.#nextLsn });
    return true;
  }

  /** The entries of the next batch, out of the queue. */
  #collect(): readonly QueuedEntry[] {
    const { batchEntriesMax, batchBytesMax } = this.#config;
    const items: QueuedEntry[] = [];
    let bytes = this.#headerDue ? SEGMENT_HEADER_BYTES : 0;
    while (items.length < batchEntriesMax && bytes < batchBytesMax) {
      const item = this.#queue.peek();
      if (item === undefined || !this.#fits(item, bytes)) break;
      bytes += recordBytes(item.entry.payload.length);
      items.push(this.#queue.shift());
    }
    return items;
  }

  #emitBatch(items: readonly QueuedEntry[]): void {
    const builder = new BatchBuilder(this.#pool, this.#checksum);
    const [firstLsn, segmentId, offset] = [this.#nextLsn, this.#segmentId, this.#offset];
    const syncedLsn = this.#durable.lsn;
    this.#nextLsn = builder.batch(items, {
      header: this.#headerDue ? { segmentId, identity: this.#identity, firstLsn } : null,
      mark: this.#rules.batchProof ? { syncedLsn, firstLsn, segmentId, offset } : null,
      firstLsn,
      stamp: this.#stamp,
    });
    this.#stamp = items.at(-1)?.entry ?? this.#stamp;
    this.#provenLsn = syncedLsn;
    const ticket = items.at(-1)?.ticket ?? this.#written.ticket;
    const end = { ticket, lsn: this.#nextLsn - 1, segmentId, offset: offset + builder.bytes };
    this.#batch = { items, builder, segmentId, offset, firstLsn, end, done: 0 };
    this.#emitWrite(this.#batch);
  }

  #emitWrite({ segmentId, offset, builder, done }: Batch): void {
    this.#writes++;
    const chunks = builder.views(done);
    this.#effects.push({ kind: "write", segmentId, offset: offset + done, chunks });
  }

  #onWritten(bytes: number): void {
    const batch = this.#batch;
    assert(batch !== null, "a write was under way");
    batch.done += bytes;
    assert(batch.done <= batch.builder.bytes, "no more is written than was asked");
    if (batch.done < batch.builder.bytes && this.#rules.shortWritesCompleted) {
      this.#emitWrite(batch);
      return;
    }
    this.#batch = null;
    batch.builder.release();
    this.#headerDue = false;
    this.#offset = batch.end.offset;
    this.#written = batch.end;
    const [first] = batch.items;
    if (first !== undefined) {
      const { firstLsn, segmentId } = batch;
      const offset = batch.offset === 0 ? SEGMENT_HEADER_BYTES : batch.offset;
      const placed = { firstTicket: first.ticket, count: batch.items.length, firstLsn };
      this.#effects.push({ kind: "written", ...placed, segmentId, offset });
    }
    if (!this.#rules.ackAfterSync) this.#effects.push({ kind: "durable", ...batch.end });
    this.#resume();
  }

  // Syncing.

  #startSync(): void {
    if (this.#syncing !== null || this.#cutting || this.#written.lsn === this.#durable.lsn) return;
    this.#syncs++;
    this.#syncing = this.#written;
    this.#effects.push({ kind: "sync", segmentId: this.#written.segmentId });
  }

  #onSynced(): void {
    const durable = this.#syncing;
    assert(durable !== null, "a sync was under way");
    assert(durable.lsn >= this.#durable.lsn, "what is durable stays durable");
    this.#syncing = null;
    this.#durable = durable;
    if (this.#rules.ackAfterSync) this.#effects.push({ kind: "durable", ...durable });
  }

  #answerFlushes(): void {
    if (this.#flushes.length === 0) return;
    const unsynced = this.#written.lsn === this.#durable.lsn ? null : this.#durable.ticket + 1;
    const oldest = unsynced ?? this.#batch?.items[0]?.ticket ?? this.#queue.peek()?.ticket;
    const waiting: Flush[] = [];
    for (const flush of this.#flushes) {
      if (oldest !== undefined && oldest <= flush.through) waiting.push(flush);
      else this.#effects.push({ kind: "flushed", id: flush.id });
    }
    this.#flushes = waiting;
  }

  // Segments.

  /** The next segment is made in the background, well before it is needed. */
  #startCreate(): void {
    if (this.#next.state !== "absent" || this.#retryAt !== null) return;
    const full = !this.#fits(this.#queue.peek());
    // While closing, only an entry that waits for it needs another segment.
    if (this.#status === "closing" && (!full || this.#queue.length === 0)) return;
    if (!full && this.#offset < this.#config.segmentBytes * this.#config.prepareShare) return;
    this.#next.state = "creating";
    const { segmentId } = this.#next;
    this.#effects.push({ kind: "createSegment", segmentId, bytes: this.#config.segmentBytes });
  }

  // Failures.

  #onFailed(failure: Extract<WriterInput, { kind: "failed" }>, now: Millis): void {
    const { during, code, message } = failure;
    const full = isFullDisk(failure);
    if (during === "sync" && !this.#rules.syncErrorFinal) {
      this.#syncing = null;
      return;
    }
    if (!full || (during !== "write" && during !== "create")) {
      this.#status = "failed";
      this.#batch?.builder.release();
      this.#batch = null;
      this.#effects.push({ kind: "failed", during, code, message });
      return;
    }
    if (during === "write") this.#takeBack(code, message);
    else this.#next.state = "absent";
    // A failed preparation is harmless while the active segment has space.
    const stuck = during === "write" || !this.#fits(this.#queue.peek());
    if (stuck && this.#refuses() && during === "create") {
      this.#reject(this.#queue.drain(), code, message);
    }
    this.#retryAt = millis(now + this.#config.fullDiskRetryMs);
    this.#retrying = during;
    if (stuck && this.#stalled === null) {
      this.#stalled = code;
      this.#effects.push({ kind: "stalled", code });
    }
  }

  /** The batch that met the full disk: its numbers are free again, its bytes are cut off. */
  #takeBack(code: string, message: string): void {
    const batch = this.#batch;
    assert(batch !== null, "a write was under way");
    this.#batch = null;
    batch.builder.release();
    this.#nextLsn = batch.firstLsn;
    if (this.#rules.tailCutAfterFull) {
      this.#cut = { segmentId: batch.segmentId, offset: batch.offset };
    } else {
      this.#offset = batch.offset + batch.done + RECORD_HEADER_BYTES;
    }
    if (this.#refuses()) this.#reject(batch.items, code, message);
    else this.#queue.unshift(batch.items);
  }

  /** A full disk refuses what waits; closing does not wait for space either. */
  #refuses(): boolean {
    return this.#config.fullDisk === "reject" || this.#status === "closing";
  }

  #reject(items: readonly QueuedEntry[], code: string, message: string): void {
    const [first] = items;
    if (first === undefined) return;
    const { ticket: firstTicket } = first;
    this.#effects.push({ kind: "rejected", firstTicket, count: items.length, code, message });
  }

  /** Not beside a sync: what is being synced must not be cut by a file that shrinks. */
  #startCut(): void {
    if (this.#cut === null || this.#cutting || this.#syncing !== null) return;
    this.#cutting = true;
    this.#effects.push({ kind: "truncate", ...this.#cut });
  }

  #resume(): void {
    if (this.#stalled === null) return;
    this.#stalled = null;
    this.#retryAt = null;
    this.#effects.push({ kind: "resumed" });
  }

  // Closing.

  /** Everything queued is made durable, then one last BATCH proves it. (WAL-19) */
  #finishClosing(): void {
    const busy = this.#batch !== null || this.#syncing !== null || this.#cut !== null;
    if (busy || this.#queue.length > 0 || this.#next.state === "creating") return;
    if (this.#written.lsn !== this.#durable.lsn) {
      this.#startSync();
      return;
    }
    // The last record of all is a BATCH, which nothing needs to prove.
    const unproven = this.#provenLsn + 1 < this.#durable.lsn && this.#retryAt === null;
    if (unproven && this.#rules.batchProof && !this.#headerDue && this.#fits(undefined)) {
      this.#emitBatch([]);
      return;
    }
    this.#status = "closed";
    this.#effects.push({ kind: "closed" });
  }
}
