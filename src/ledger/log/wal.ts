/**
 * A write-ahead log in a directory: the pure writer (`core/ledger/log/writer.ts`) driven over real files.
 *
 *     const log = await Wal.open({ directory, identity: identityOf("prod", "gate-1") });
 *     const { lsn } = await log.append(RECORD_TYPES.VSR_ENTRY, bytes);   // durable when it resolves
 *
 * Two ways in. `append` answers each entry with a promise, when it is durable. `post` is for
 * a machine that emits entries in order: it returns at once, and `onDurable(n)` says that the first n
 * posted entries are durable, always a prefix. Both share one queue and one order.
 *
 * A failed sync ends the log and, unless `onFailed` says otherwise, the process. (WAL-14)
 */

import { assert, assertNever } from "../../core/base/assert.ts";
import { WalWriter } from "../../core/ledger/log/writer.ts";
import type { WalEntry, WriterView } from "../../core/ledger/log/writer-types.ts";
import { checksum } from "./checksum.ts";
import { type EngineAnswer, WalEngine } from "./engine.ts";
import { WalError } from "./errors.ts";
import { Intake } from "./intake.ts";
import { type OpenedDirectory, openDirectory } from "./open.ts";
import type { RecoveryResult, WalEvent, WalOptions } from "./types.ts";
import { type Appended, type Waiter, Waiters } from "./waiters.ts";

interface WalStatus extends WriterView {
  /** Entries that wait for room in the queue. */
  readonly waiting: number;
}

export class Wal {
  readonly directory: string;
  readonly recovery: RecoveryResult;
  readonly #options: WalOptions;
  readonly #opened: OpenedDirectory;
  readonly #writer: WalWriter;
  readonly #engine: WalEngine;
  readonly #waiters: Waiters;
  readonly #intake: Intake;
  readonly #flushes = new Map<number, { resolve: () => void; reject: (error: Error) => void }>();
  readonly #end = deferred();
  #posted = 0;
  #flushId = 0;
  #wall: number;
  #logical: number;
  #failure: WalError | null = null;
  #closing = false;

  private constructor(options: WalOptions, opened: OpenedDirectory) {
    const { config, outcome, io, segments } = opened;
    this.directory = options.directory;
    this.#options = options;
    this.#opened = opened;
    this.#writer = new WalWriter({
      config,
      identity: options.identity,
      position: opened.position,
      checksum,
      allocate: (bytes) => Buffer.allocUnsafeSlow(bytes),
    });
    this.#waiters = new Waiters((count) => options.onDurable?.(count));
    this.#intake = new Intake(this.#writer, this.#waiters);
    this.#engine = new WalEngine(this.#writer, io, segments, {
      beforeTick: () => this.#intake.admit(),
      answer: (effect) => this.#onAnswer(effect),
    });
    this.#wall = outcome.maxHlc.wall;
    this.#logical = outcome.maxHlc.logical;
    this.recovery = {
      recoveredEntries: outcome.entries,
      firstLsn: outcome.firstLsn,
      maxLsn: outcome.maxLsn,
      maxHlc: outcome.maxHlc,
      tornTail: outcome.tornTail,
    };
  }

  /** Recovers what is there, repairs a torn tail, and is ready to write. */
  static async open(options: WalOptions): Promise<Wal> {
    const opened = await openDirectory(options);
    const log = new Wal(options, opened);
    const { recovery } = log;
    options.onEvent?.({ event: "wal.recovered", recovery });
    if (recovery.tornTail !== null) {
      options.onEvent?.({ event: "wal.torn-tail-cut", damage: recovery.tornTail });
    }
    log.#engine.step({ kind: "tick" });
    // A new log makes its first segment now, not under the first append.
    await log.#engine.prepared();
    return log;
  }

  /** True: the queue is full and entries wait for room; whoever can should take in less. */
  get congested(): boolean {
    return this.#intake.waiting > 0;
  }

  /** Positions and how full the queue is. Cheap: it may be asked at every append. */
  status(): WalStatus {
    return { ...this.#writer.snapshot(), waiting: this.#intake.waiting };
  }

  /**
   * Resolves when the entry is durable. Rejects with a `WalError`: then it was not written,
   * or (WAL_FAILED) nobody knows until recovery. The payload is the log's until then: do not change it.
   */
  append(type: number, payload: Uint8Array): Promise<Appended> {
    const { wall, logical } = this.#stamp();
    return new Promise((resolve, reject) => {
      const waiter = { wall, logical, lsn: null, resolve, reject };
      const refusal = this.#enter({ type, payload, wall, logical }, waiter);
      if (refusal !== null) reject(refusal);
    });
  }

  /** Puts an entry in order behind all before it; how many have been posted. Throws a `WalError`. */
  post(type: number, payload: Uint8Array): number {
    assert(this.#opened.config.fullDisk === "wait", "posted entries wait for space: no gaps");
    const { wall, logical } = this.#stamp();
    const refusal = this.#enter({ type, payload, wall, logical }, this.#posted + 1);
    if (refusal !== null) throw refusal;
    return ++this.#posted;
  }

  /** Resolves when everything appended before is durable. */
  flush(): Promise<void> {
    const refusal = this.#refusal();
    if (refusal !== null) return Promise.reject(refusal);
    return new Promise((resolve, reject) => {
      const id = ++this.#flushId;
      this.#flushes.set(id, { resolve, reject });
      this.#intake.whenAdmitted(() => this.#engine.step({ kind: "flush", id }));
    });
  }

  /** Deletes segments whose every entry is covered, oldest first; how many. Never the active one. (WAL-17) */
  async compact(safeLsn: number): Promise<number> {
    const removed = await this.#opened.segments.compact(safeLsn);
    if (removed > 0)
      this.#options.onEvent?.({ event: "wal.compacted", segments: removed, safeLsn });
    return removed;
  }

  /** Makes all that is queued durable, then ends. (WAL-19) */
  async close(): Promise<void> {
    if (!this.#closing) {
      this.#closing = true;
      if (this.#failure === null) {
        this.#intake.whenAdmitted(() => this.#engine.step({ kind: "close" }));
      }
    }
    await this.#end.promise;
  }

  #enter(entry: WalEntry, waiter: Waiter): WalError | null {
    const refusal = this.#refusal() ?? this.#intake.enter(entry, waiter);
    if (refusal === null) this.#engine.schedule();
    return refusal;
  }

  #refusal(): WalError | null {
    if (this.#failure !== null) return this.#failure;
    return this.#closing ? new WalError("SHUTDOWN", "the log is closed") : null;
  }

  #stamp(): { readonly wall: number; readonly logical: number } {
    const given = this.#options.stamp?.();
    const wall = given?.wall ?? Math.max(this.#wall, Date.now());
    const logical = given?.logical ?? (wall === this.#wall ? this.#logical + 1 : 0);
    this.#wall = wall;
    this.#logical = logical;
    return { wall, logical };
  }

  #onAnswer(effect: EngineAnswer): void {
    switch (effect.kind) {
      case "written":
        this.#opened.segments.note(effect.segmentId, effect.firstLsn, effect.offset);
        this.#waiters.written(effect.firstTicket, effect.count, effect.firstLsn);
        return;
      case "durable":
        this.#opened.segments.advance(effect);
        this.#waiters.durable(effect.ticket);
        return;
      case "rejected": {
        const text = `the disk is full (${effect.code}); nothing was written`;
        const error = new WalError("WAL_FULL_DISK", text, effect.message);
        this.#waiters.rejected(effect.firstTicket, effect.count, error);
        return;
      }
      case "opened":
        this.#opened.segments.open(effect.segmentId, effect.firstLsn);
        this.#emit({
          event: "wal.segment-opened",
          segmentId: effect.segmentId,
          firstLsn: effect.firstLsn,
        });
        return;
      case "flushed":
        this.#flushes.get(effect.id)?.resolve();
        this.#flushes.delete(effect.id);
        return;
      case "stalled":
        this.#emit({ event: "wal.disk-full", code: effect.code });
        return;
      case "resumed":
        this.#emit({ event: "wal.disk-has-space" });
        return;
      case "failed":
        this.#onFailed(effect);
        return;
      case "closed":
        this.#finish(null);
        return;
      default:
        assertNever(effect);
    }
  }

  #emit(event: WalEvent): void {
    this.#options.onEvent?.(event);
  }

  #onFailed({ during, code, message }: Extract<EngineAnswer, { kind: "failed" }>): void {
    const error = new WalError(
      "WAL_FAILED",
      `${this.directory}: ${during} failed with ${code} (${message}); the log has ended, ` +
        "restart this process to recover what is durable",
    );
    this.#failure = error;
    this.#waiters.failed(error);
    this.#intake.refuseAll(error);
    for (const { reject } of this.#flushes.values()) reject(error);
    this.#flushes.clear();
    this.#finish(error);
    if (this.#options.onFailed !== undefined) this.#options.onFailed(error);
    else {
      setImmediate(() => {
        throw error;
      });
    }
  }

  /** Whoever closes the log waits for this, and hears of what failed on the way. */
  #finish(error: WalError | null): void {
    const { resolve, reject } = this.#end;
    this.#release().then(() => (error === null ? resolve() : reject(error)), reject);
  }

  async #release(): Promise<void> {
    await this.#engine.stop();
    await this.#opened.lock.release();
  }
}

function deferred(): {
  readonly promise: Promise<void>;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
} {
  let resolve: () => void = () => {};
  let reject: (error: Error) => void = () => {};
  const promise = new Promise<void>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  // Whoever never closes need not hear how it ended.
  promise.catch(() => {});
  return { promise, resolve, reject };
}
