/**
 * A write-ahead log in a directory: the machine of `core/ledger/log/log.ts` over real files.
 *
 *     const log = await Wal.open({ directory, identity: identityOf("prod", "gate-1") });
 *     const { lsn } = await log.append(RECORD_TYPES.VSR_ENTRY, bytes);   // durable when it resolves
 *
 * Two ways to write. `append` returns a promise that resolves when the entry is durable. `post` is for a machine that
 * emits entries in order: it returns at once, and `onDurable(n)` reports that the first n posted entries are durable,
 * always a prefix. Both share one queue and one order.
 *
 * A failed sync stops the log and, unless `onFailed` is given, the process. (WAL-14)
 */

import { assert, assertNever } from "../../core/base/assert.ts";
import type { FileProblem } from "../../core/ledger/log/files.ts";
import { type WalConfig, walConfig } from "../../core/ledger/log/limits.ts";
import { Log, type LogEvent, type LogInput, type LogView } from "../../core/ledger/log/log.ts";
import type { Recovered } from "../../core/ledger/log/recovery.ts";
import type { AppendRefusal, WalEntry } from "../../core/ledger/log/writer-types.ts";
import { nodeClock } from "../../host/node-clock.ts";
import { checksum } from "./checksum.ts";
import { WalError } from "./errors.ts";
import { FileDriver } from "./file-driver.ts";
import { FileExecutor } from "./file-executor.ts";
import type { DirectoryLock } from "./lock.ts";
import { prepareDirectory } from "./prepare.ts";
import { refusalError } from "./refusal.ts";
import type { RecoveryResult, WalEvent, WalOptions } from "./types.ts";
import { type Appended, type Waiter, Waiters } from "./waiters.ts";

interface Answer<Value> {
  readonly resolve: (value: Value) => void;
  readonly reject: (error: Error) => void;
}

const NOT_RECOVERED: RecoveryResult = {
  recoveredEntries: 0,
  firstLsn: 0,
  maxLsn: 0,
  maxHlc: { wall: 0, logical: 0 },
  tornTail: null,
};

export class Wal {
  readonly directory: string;
  #recovery = NOT_RECOVERED;
  readonly #options: WalOptions;
  readonly #config: WalConfig;
  readonly #lock: DirectoryLock;
  readonly #log: Log;
  readonly #driver: FileDriver<LogInput, LogEvent>;
  readonly #waiters: Waiters;
  readonly #flushes = new Map<number, Answer<void>>();
  readonly #compactions = new Map<number, Answer<number>>();
  readonly #opening = deferred();
  readonly #end = deferred();
  #posted = 0;
  #requestId = 0;
  #wall = 0;
  #logical = 0;
  #failure: WalError | null = null;
  #closing = false;

  private constructor(options: WalOptions, lock: DirectoryLock) {
    this.directory = options.directory;
    this.#options = options;
    this.#lock = lock;
    // A posted entry must not be dropped from the middle of its sequence.
    const fullDisk = options.onDurable === undefined ? "reject" : "wait";
    this.#config = walConfig({ fullDisk, ...options.config });
    this.#waiters = new Waiters((count) => options.onDurable?.(count));
    this.#log = new Log({
      directory: "",
      config: this.#config,
      identity: options.identity,
      checksum,
      allocate: (bytes) => Buffer.allocUnsafeSlow(bytes),
      ...(options.onEntry === undefined ? {} : { onEntry: options.onEntry }),
    });
    const executor = new FileExecutor(options.directory);
    this.#driver = new FileDriver(this.#log, executor, nodeClock, (event) => this.#onEvent(event));
  }

  /** Recovers what is there, repairs a torn tail, and is ready to write. */
  static async open(options: WalOptions): Promise<Wal> {
    const lock = await prepareDirectory(options.directory);
    const wal = new Wal(options, lock);
    wal.#driver.step({ kind: "open" });
    try {
      await wal.#opening.promise;
      return wal;
    } catch (error) {
      await wal.#release();
      throw error;
    }
  }

  get recovery(): RecoveryResult {
    return this.#recovery;
  }

  /** Whether the queue is full and entries wait for space; producers should slow down. */
  get congested(): boolean {
    return this.#log.congested;
  }

  /** Positions and queue length. Cheap enough for every append. */
  status(): LogView {
    return this.#log.view();
  }

  /**
   * Resolves when the entry is durable. Rejects with a `WalError`: then it was not written, or (WAL_FAILED) the outcome
   * is unknown until recovery. The log owns the payload until then: do not change it.
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
    assert(this.#config.fullDisk === "wait", "posted entries wait for space: no gaps");
    const { wall, logical } = this.#stamp();
    const refusal = this.#enter({ type, payload, wall, logical }, this.#posted + 1);
    if (refusal !== null) throw refusal;
    return ++this.#posted;
  }

  /** Resolves when everything appended before is durable. */
  flush(): Promise<void> {
    return this.#request(this.#flushes, (id) => this.#driver.step({ kind: "flush", id }));
  }

  /** Deletes segments whose every entry is covered, oldest first; returns how many. Never the active one. (WAL-17) */
  compact(safeLsn: number): Promise<number> {
    return this.#request(this.#compactions, (id) => {
      this.#driver.step({ kind: "compact", id, safeLsn });
    });
  }

  /** Makes all that is queued durable, then ends. (WAL-19) */
  async close(): Promise<void> {
    if (!this.#closing) {
      this.#closing = true;
      if (this.#failure === null) this.#driver.step({ kind: "close" });
    }
    await this.#end.promise;
  }

  #request<Value>(waiting: Map<number, Answer<Value>>, ask: (id: number) => void): Promise<Value> {
    const refusal = this.#refusal();
    if (refusal !== null) return Promise.reject(refusal);
    return new Promise((resolve, reject) => {
      const id = ++this.#requestId;
      waiting.set(id, { resolve, reject });
      ask(id);
    });
  }

  #enter(entry: WalEntry, waiter: Waiter): WalError | null {
    const refusal = this.#refusal();
    if (refusal !== null) return refusal;
    const ticket = this.#log.append(entry, nodeClock.now());
    if (typeof ticket !== "number") return this.#appendError(ticket, entry);
    this.#waiters.push(waiter);
    this.#driver.schedule();
    return null;
  }

  #refusal(): WalError | null {
    if (this.#failure !== null) return this.#failure;
    return this.#closing ? new WalError("SHUTDOWN", "the log is closed") : null;
  }

  #appendError(refusal: AppendRefusal, entry: WalEntry): WalError {
    switch (refusal) {
      case "QUEUE_FULL":
        return new WalError("QUEUE_FULL", "the log's queue is full; nothing was written");
      case "TOO_LARGE": {
        const most = this.#log.payloadBytesMax;
        const text = `an entry of ${entry.payload.length} bytes; at most ${most} fit`;
        return new WalError("TOO_LARGE", text);
      }
      case "UNKNOWN_TYPE":
        return new WalError("WAL_UNKNOWN_TYPE", `${entry.type} is no type of a record`);
      default:
        return new WalError("SHUTDOWN", "the log is closed");
    }
  }

  #stamp(): { readonly wall: number; readonly logical: number } {
    const given = this.#options.stamp?.();
    const wall = given?.wall ?? Math.max(this.#wall, Date.now());
    const logical = given?.logical ?? (wall === this.#wall ? this.#logical + 1 : 0);
    this.#wall = wall;
    this.#logical = logical;
    return { wall, logical };
  }

  #onEvent(event: LogEvent): void {
    switch (event.kind) {
      case "opened":
        this.#onOpened(event.outcome);
        return;
      case "refused": {
        const { directory, identity } = this.#options;
        this.#opening.reject(refusalError(event.refusal, directory, identity));
        return;
      }
      case "written":
        this.#waiters.written(event.firstTicket, event.count, event.firstLsn);
        return;
      case "durable":
        this.#waiters.durable(event.ticket);
        return;
      case "rejected": {
        const text = `the disk is full (${event.code}); nothing was written`;
        const error = new WalError("WAL_FULL_DISK", text, event.message);
        this.#waiters.rejected(event.firstTicket, event.count, error);
        return;
      }
      case "segmentOpened": {
        const { segmentId, firstLsn } = event;
        this.#emit({ event: "wal.segment-opened", segmentId, firstLsn });
        return;
      }
      case "flushed":
        this.#flushes.get(event.id)?.resolve();
        this.#flushes.delete(event.id);
        return;
      case "compacted":
        this.#onCompacted(event.id, event.segments, event.safeLsn);
        return;
      case "stalled":
        this.#emit({ event: "wal.disk-full", code: event.code });
        return;
      case "resumed":
        this.#emit({ event: "wal.disk-has-space" });
        return;
      case "failed":
        this.#onFailed(event);
        return;
      case "closed":
        this.#finish(null);
        return;
      default:
        assertNever(event);
    }
  }

  #emit(event: WalEvent): void {
    this.#options.onEvent?.(event);
  }

  #onOpened({ entries, firstLsn, maxLsn, maxHlc, tornTail }: Recovered): void {
    this.#recovery = { recoveredEntries: entries, firstLsn, maxLsn, maxHlc, tornTail };
    this.#wall = maxHlc.wall;
    this.#logical = maxHlc.logical;
    this.#emit({ event: "wal.recovered", recovery: this.#recovery });
    if (tornTail !== null) this.#emit({ event: "wal.torn-tail-cut", damage: tornTail });
    this.#opening.resolve();
  }

  #onCompacted(id: number, segments: number | FileProblem, safeLsn: number): void {
    const answer = this.#compactions.get(id);
    this.#compactions.delete(id);
    if (typeof segments !== "number") {
      answer?.reject(new WalError("WAL_FAILED", `a segment was not removed: ${segments.message}`));
      return;
    }
    if (segments > 0) this.#emit({ event: "wal.compacted", segments, safeLsn });
    answer?.resolve(segments);
  }

  #onFailed({ during, code, message }: Extract<LogEvent, { kind: "failed" }>): void {
    const error = new WalError(
      "WAL_FAILED",
      `${this.directory}: ${during} failed with ${code} (${message}); the log has ended, ` +
        "restart this process to recover what is durable",
    );
    this.#failure = error;
    this.#waiters.failed(error);
    for (const { reject } of [...this.#flushes.values(), ...this.#compactions.values()]) {
      reject(error);
    }
    this.#flushes.clear();
    this.#compactions.clear();
    this.#finish(error);
    if (this.#options.onFailed !== undefined) this.#options.onFailed(error);
    else {
      setImmediate(() => {
        throw error;
      });
    }
  }

  /** Settles the promise that callers of `close` await, with any failure on the way. */
  #finish(error: WalError | null): void {
    const { resolve, reject } = this.#end;
    this.#release().then(() => (error === null ? resolve() : reject(error)), reject);
  }

  async #release(): Promise<void> {
    await this.#driver.stop();
    await this.#lock.release();
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
  // A caller that never closes the log need not handle this rejection.
  promise.catch(() => {});
  return { promise, resolve, reject };
}
