/**
 * A reader: disk → prefetch (checksums and numbers verified) → bounded queue → consumers.
 *
 * It has its own handle and position and never reads past what is durable, so it neither blocks the
 * writer nor sees what may still vanish. Several consumers share the entries of one reader, each entry
 * going to exactly one; the end, or the first failure, is told to all of them. Nothing is skipped.
 */

import { type FileHandle, open } from "node:fs/promises";
import {
  decodeWalRecord,
  RECORD_HEADER_BYTES,
  type WalRecord,
} from "../../core/ledger/log/record.ts";
import { isZero, SEGMENT_HEADER_BYTES } from "../../core/ledger/log/segment.ts";
import { WalError } from "./errors.ts";
import type { SegmentInfo, Segments } from "./segments.ts";

export interface ReaderOptions {
  readonly from: number;
  /** The last LSN wanted; as far as it goes unless said. */
  readonly to?: number;
  /** Wait at the end for more instead of ending. */
  readonly tail?: boolean;
}

export interface ReadEntry extends WalRecord {
  readonly segmentId: number;
  /** The byte at which it begins. (SR-4) */
  readonly offset: number;
}

export type ReadResult =
  | { readonly status: "SUCCESS"; readonly entry: ReadEntry }
  | { readonly status: "EOF" | "SHUTDOWN" }
  | { readonly status: "CORRUPTION" | "SEQUENCE_GAP" | "TORN_TAIL"; readonly error: WalError };

export interface ReaderStats {
  readonly entriesRead: number;
  readonly chunksRead: number;
  readonly bytesRead: number;
}

const CHUNK_BYTES = 65_536;
const QUEUE_ENTRIES_MAX = 1_000;
const PREFETCH_BYTES_MAX = 262_144;

export class WalReader implements AsyncIterable<ReadEntry> {
  readonly #segments: Segments;
  readonly #options: ReaderOptions;
  readonly #onClose: () => void;
  readonly #unwatch: () => void;
  #queue: ReadEntry[] = [];
  #head = 0;
  #queuedBytes = 0;
  #consumers: ((result: ReadResult) => void)[] = [];
  #end: ReadResult | null = null;
  #filling: Promise<void> | null = null;
  /** More became durable, or room, while a prefetch was ending. */
  #again = false;
  #segment: SegmentInfo | undefined;
  #file: FileHandle | null = null;
  #offset = 0;
  #expected = 0;
  /** Bytes read ahead, from `#offset` on. */
  #ahead: Buffer = Buffer.alloc(0);
  #entriesRead = 0;
  #chunksRead = 0;
  #bytesRead = 0;

  constructor(segments: Segments, options: ReaderOptions, onClose: () => void = () => {}) {
    this.#segments = segments;
    this.#options = options;
    this.#onClose = onClose;
    this.#unwatch = segments.watch(() => this.#fill());
    // Not before whoever made it has it in hand: an empty range ends at once.
    queueMicrotask(() => this.#fill());
  }

  get stats(): ReaderStats {
    return {
      entriesRead: this.#entriesRead,
      chunksRead: this.#chunksRead,
      bytesRead: this.#bytesRead,
    };
  }

  /** Waits for an entry, the end or a failure. */
  read(): Promise<ReadResult> {
    const ready = this.tryRead();
    if (ready !== null) return Promise.resolve(ready);
    return new Promise((resolve) => this.#consumers.push(resolve));
  }

  /** Null: nothing is there yet. */
  tryRead(): ReadResult | null {
    const entry = this.#queue[this.#head];
    if (entry === undefined) return this.#end;
    this.#head++;
    this.#queuedBytes -= RECORD_HEADER_BYTES + entry.payload.length;
    this.#entriesRead++;
    if (this.#head === this.#queue.length) {
      this.#queue = [];
      this.#head = 0;
    }
    if (this.#hasRoom()) this.#fill();
    return { status: "SUCCESS", entry };
  }

  /** Null after `ms` without a result; whatever comes later goes to the next reader. */
  readWithTimeout(ms: number): Promise<ReadResult | null> {
    const ready = this.tryRead();
    if (ready !== null) return Promise.resolve(ready);
    return new Promise((resolve) => {
      const consumer = (result: ReadResult): void => {
        clearTimeout(timer);
        resolve(result);
      };
      const timer = setTimeout(() => {
        this.#consumers = this.#consumers.filter((other) => other !== consumer);
        resolve(null);
      }, ms);
      this.#consumers.push(consumer);
    });
  }

  /** Entries until the end; throws what `read` calls a failure. */
  async *[Symbol.asyncIterator](): AsyncGenerator<ReadEntry> {
    for (;;) {
      const result = await this.read();
      if (result.status === "SUCCESS") yield result.entry;
      else if ("error" in result) throw result.error;
      else return;
    }
  }

  async close(): Promise<void> {
    this.#finish({ status: "SHUTDOWN" });
    await this.#filling;
  }

  #hasRoom(): boolean {
    return (
      this.#end === null &&
      this.#queue.length - this.#head < QUEUE_ENTRIES_MAX / 2 &&
      this.#queuedBytes < PREFETCH_BYTES_MAX / 2
    );
  }

  /** One prefetch at a time. */
  #fill(): void {
    if (this.#filling !== null) {
      this.#again = true;
      return;
    }
    if (!this.#hasRoom()) return;
    this.#again = false;
    this.#filling = this.#prefetch()
      .catch((error: unknown) => {
        const wrapped =
          error instanceof WalError
            ? error
            : new WalError("WAL_CORRUPT", `the log cannot be read: ${String(error)}`, error);
        this.#finish({ status: "CORRUPTION", error: wrapped });
      })
      .finally(() => {
        this.#filling = null;
        if (this.#again) this.#fill();
      });
  }

  async #prefetch(): Promise<void> {
    while (this.#end === null && this.#more()) {
      if (this.#file === null && !(await this.#openSegment())) return;
      const limit = this.#limit();
      const progress = this.#parse(limit);
      if (progress === "end") return;
      if (progress === "next") await this.#nextSegment();
      else if (!(await this.#readChunk(limit))) return;
    }
  }

  #more(): boolean {
    return (
      this.#queue.length - this.#head < QUEUE_ENTRIES_MAX && this.#queuedBytes < PREFETCH_BYTES_MAX
    );
  }

  /** False: there is nothing to read yet, or at all. */
  async #openSegment(): Promise<boolean> {
    if (this.#segment === undefined) {
      const from = Math.max(1, this.#options.from);
      if (from > this.#segments.bound.lsn) return this.#atBound();
      this.#segment = this.#segments.find(from);
      if (this.#segment === undefined) {
        const first = this.#segments.firstLsn;
        throw new WalError(
          "WAL_COMPACTED",
          `LSN ${from} was compacted away; the log begins at ${first}`,
        );
      }
      const point = this.#segment.index.seek(from);
      this.#offset = point?.offset ?? SEGMENT_HEADER_BYTES;
      this.#expected = point?.lsn ?? this.#segment.firstLsn;
    }
    this.#file = await open(this.#segment.path, "r");
    if (this.#end !== null) await this.#closeFile();
    return this.#end === null;
  }

  /** How far this segment may be read now. */
  #limit(): number {
    const { bound } = this.#segments;
    return this.#segment?.segmentId === bound.segmentId ? bound.offset : Number.MAX_SAFE_INTEGER;
  }

  /** Takes whole records out of what was read ahead. */
  #parse(limit: number): "end" | "next" | "starved" {
    const segmentId = this.#segment?.segmentId ?? 0;
    const next = this.#segments.after(segmentId);
    let at = 0;
    for (;;) {
      const before = this.#offset + at;
      if (this.#expected > (this.#options.to ?? Number.POSITIVE_INFINITY)) {
        this.#finish({ status: "EOF" });
        return "end";
      }
      if (next !== undefined && this.#expected === next.firstLsn) return "next";
      if (before >= limit) {
        this.#consume(at);
        this.#atBound();
        return "end";
      }
      const decoded = decodeWalRecord(this.#ahead, at);
      if (!decoded.ok) {
        const short = decoded.problem.endsWith("truncated");
        this.#consume(at);
        if (short) return "starved";
        this.#spoiled(decoded.problem);
        return "end";
      }
      const { record } = decoded;
      if (record.lsn !== this.#expected) {
        this.#gap(record.lsn, before);
        return "end";
      }
      this.#expected++;
      at += decoded.bytes;
      if (record.lsn >= this.#options.from) this.#deliver({ ...record, segmentId, offset: before });
      if (!this.#more()) {
        this.#consume(at);
        return "starved";
      }
    }
  }

  #consume(bytes: number): void {
    this.#offset += bytes;
    this.#ahead = this.#ahead.subarray(bytes);
  }

  /** Reads on behind what is there; a record larger than a chunk grows what is ahead. False: the end. */
  async #readChunk(limit: number): Promise<boolean> {
    if (!this.#more()) return false;
    const from = this.#offset + this.#ahead.length;
    const size = Math.min(CHUNK_BYTES, limit - from);
    const chunk = Buffer.allocUnsafeSlow(Math.max(0, size));
    const { bytesRead } = size <= 0 ? { bytesRead: 0 } : await this.#read(chunk, from);
    if (bytesRead === 0) {
      const error = this.#problem("TORN_TAIL", "ends inside a record");
      this.#finish({ status: "TORN_TAIL", error });
      return false;
    }
    this.#chunksRead++;
    this.#bytesRead += bytesRead;
    const fresh = chunk.subarray(0, bytesRead);
    this.#ahead = this.#ahead.length === 0 ? fresh : Buffer.concat([this.#ahead, fresh]);
    return true;
  }

  async #read(chunk: Buffer, position: number): Promise<{ readonly bytesRead: number }> {
    if (this.#file === null) return { bytesRead: 0 };
    return this.#file.read(chunk, 0, chunk.length, position);
  }

  async #nextSegment(): Promise<void> {
    await this.#closeFile();
    this.#segment = this.#segments.after(this.#segment?.segmentId ?? 0);
    this.#offset = SEGMENT_HEADER_BYTES;
    this.#ahead = Buffer.alloc(0);
  }

  #deliver(entry: ReadEntry): void {
    const consumer = this.#consumers.shift();
    if (consumer !== undefined) {
      this.#entriesRead++;
      consumer({ status: "SUCCESS", entry });
      return;
    }
    this.#queue.push(entry);
    this.#queuedBytes += RECORD_HEADER_BYTES + entry.payload.length;
  }

  /** At the end of what is durable: the end, unless someone waits for more. */
  #atBound(): false {
    if (this.#options.tail !== true) this.#finish({ status: "EOF" });
    return false;
  }

  #spoiled(problem: string): void {
    // Behind the last record of a log that nobody has recovered there are zeros.
    const last = this.#segments.after(this.#segment?.segmentId ?? 0) === undefined;
    const zeros =
      this.#ahead.length >= RECORD_HEADER_BYTES && isZero(this.#ahead, 0, RECORD_HEADER_BYTES);
    if (zeros && last && this.#segments.unrecovered) this.#finish({ status: "EOF" });
    else this.#finish({ status: "CORRUPTION", error: this.#problem("CORRUPTION", problem) });
  }

  #gap(found: number, offset: number): void {
    const text = `holds LSN ${found} at offset ${offset} where ${this.#expected} should be`;
    this.#finish({ status: "SEQUENCE_GAP", error: this.#problem("SEQUENCE_GAP", text) });
  }

  #problem(kind: string, text: string): WalError {
    return new WalError(
      "WAL_CORRUPT",
      `${this.#segment?.path} at ${this.#offset}: ${kind}, ${text}`,
    );
  }

  /** Once: whoever waits and whoever asks later is told the same. */
  #finish(result: ReadResult): void {
    if (this.#end !== null) return;
    this.#end = result;
    this.#unwatch();
    this.#onClose();
    for (const consumer of this.#consumers.splice(0)) consumer(result);
    if (result.status === "SHUTDOWN") this.#queue = [];
    void this.#closeFile();
  }

  async #closeFile(): Promise<void> {
    const file = this.#file;
    this.#file = null;
    await file?.close();
  }
}

/** Readers at once, at most: each holds a file and half a megabyte. */
const READERS_MAX = 64;

export class ReaderPool {
  readonly #readers = new Set<WalReader>();

  add(make: (onClose: () => void) => WalReader): WalReader {
    if (this.#readers.size >= READERS_MAX) {
      throw new WalError("QUEUE_FULL", `${READERS_MAX} readers are open; close one first`);
    }
    const reader: WalReader = make(() => this.#readers.delete(reader));
    this.#readers.add(reader);
    return reader;
  }

  async closeAll(): Promise<void> {
    await Promise.all([...this.#readers].map((reader) => reader.close()));
  }
}
