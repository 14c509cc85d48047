/**
 * What a ledger node keeps on disk: the machine of `core/ledger/store` over real files.
 *
 *     <dataDir>/wal/       segments and checkpoints          <dataDir>/archive/    finished jobs
 *
 * The node's records go in by `post`; `onDurable(n)` says that the first n of them are durable.
 */

import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { assert, assertNever } from "../core/base/assert.ts";
import { type LogLine, logLines } from "../core/ledger/job/log-lines.ts";
import type { CheckpointHeader } from "../core/ledger/log/checkpoint.ts";
import { walConfig } from "../core/ledger/log/limits.ts";
import type { LogView } from "../core/ledger/log/log.ts";
import { identityOf } from "../core/ledger/log/segment.ts";
import type { LedgerNode } from "../core/ledger/node/node.ts";
import { snapshotSlices } from "../core/ledger/node/recovery.ts";
import { LedgerStore } from "../core/ledger/store/store.ts";
import type {
  RecoveredState,
  StoreEvent,
  StoreInput,
  StoreRefusal,
} from "../core/ledger/store/types.ts";
import type { Clock } from "../host/ports/clock.ts";
import type { Log } from "../host/ports/log.ts";
import { ArchiveReader } from "./archive.ts";
import type { LedgerConfig } from "./config.ts";
import { checksum } from "./log/checksum.ts";
import { WalError } from "./log/errors.ts";
import { FileDriver } from "./log/file-driver.ts";
import { FileExecutor } from "./log/file-executor.ts";
import type { DirectoryLock } from "./log/lock.ts";
import { prepareDirectory } from "./log/prepare.ts";
import { refusalError } from "./log/refusal.ts";

interface StoreHandlers {
  readonly clock: Clock;
  readonly log: Log;
  readonly onDurable: (count: number) => void;
  /** The log has ended; so must the process. */
  readonly onFailed: (error: Error) => void;
}

interface Recovered extends RecoveredState {
  readonly replayed: number;
  readonly tookMs: number;
}

interface Opened {
  readonly store: Store;
  readonly recovered: Recovered;
}

/**
 * A turn of a busy node makes hundreds of records: fewer and larger writes cost less, and nobody waits
 * longer for them, since a batch leaves as soon as the writer is free.
 */
const LOG_CONFIG = {
  ...walConfig({
    batchEntriesMax: 16_384,
    batchBytesMax: 2 * 1_048_576,
    unsyncedEntriesMax: 40_000,
    queueEntriesMax: 40_000,
    queueBytesMax: 32 * 1_048_576,
    chunkBytes: 262_144,
  }),
  fullDisk: "wait",
} as const;
/** Latest times from a record's way to the log until it was durable, sampled once per sync. */
const SAMPLES_MAX = 1_024;

export class Store {
  readonly #config: LedgerConfig;
  readonly #handlers: StoreHandlers;
  readonly #lock: DirectoryLock;
  readonly #machine: LedgerStore;
  readonly #driver: FileDriver<StoreInput, StoreEvent>;
  readonly archive: ArchiveReader;
  readonly #openedAt: number;
  #onOpened: (opened: Opened) => void = () => {};
  #onRefused: (error: Error) => void = () => {};
  #onClosed: () => void = () => {};
  readonly #requests = new Map<number, () => void>();
  #requestId = 0;
  #node: LedgerNode | null = null;
  #posted = 0;
  #tickDue = false;
  #failed = false;
  /** The record whose way is being timed. */
  #timed: { readonly count: number; readonly at: number } | null = null;
  readonly #samples: number[] = [];
  #sampled = 0;

  private constructor(config: LedgerConfig, handlers: StoreHandlers, lock: DirectoryLock) {
    this.#config = config;
    this.#handlers = handlers;
    this.#lock = lock;
    const { clock } = handlers;
    this.#openedAt = clock.now();
    const { entries: intervalEntries, ms: intervalMs, keep: keptMax } = config.checkpoint;
    this.#machine = new LedgerStore({
      identity: identityOf(`${config.cluster}/${config.environment}`, config.name),
      log: LOG_CONFIG,
      checkpoint: { intervalEntries, intervalMs, keptMax },
      archiveKeepMs: config.archiveKeepMs,
      checksum,
      allocate: (bytes) => Buffer.allocUnsafeSlow(bytes),
    });
    const executor = new FileExecutor(config.dataDir);
    this.#driver = new FileDriver(this.#machine, executor, clock, (event) => this.#onEvent(event));
    this.archive = new ArchiveReader(config.dataDir, this.#machine.archive, (file, problem) => {
      handlers.log.event("warn", "archive.problem", { file, problem });
    });
  }

  /** Throws a `WalError` that says what is wrong with the directory; then nothing was changed. */
  static async open(config: LedgerConfig, handlers: StoreHandlers): Promise<Opened> {
    const directory = join(config.dataDir, "wal");
    say(handlers.log, "wal.opening", logLines.openingWal(directory));
    const lock = await prepareDirectory(directory);
    await mkdir(join(config.dataDir, "archive"), { recursive: true, mode: 0o700 });
    const store = new Store(config, handlers, lock);
    try {
      return await new Promise((resolve, reject) => {
        store.#onOpened = resolve;
        store.#onRefused = reject;
        store.#driver.step({ kind: "open" });
      });
    } catch (error) {
      await store.#release();
      throw error;
    }
  }

  /** From now on this node's state is kept. */
  serve(node: LedgerNode): void {
    this.#node = node;
    const source = {
      get appends(): number {
        return node.appends;
      },
      slices: () => snapshotSlices(node),
    };
    this.#machine.serve(source, this.#handlers.clock.now());
  }

  post(type: number, payload: Uint8Array, wall: number, logical: number): void {
    const entry = { type, payload, wall, logical };
    const ticket = this.#machine.append(entry, this.#handlers.clock.now());
    // After a failure nothing is taken, and the process is on its way out.
    if (this.#failed) return;
    assert(
      typeof ticket === "number",
      `the log takes every record of its node, and says ${ticket}`,
    );
    this.#posted++;
    this.#tickDue = true;
    this.#timed ??= { count: this.#posted, at: performance.now() };
  }

  /** Called after every turn of the node, when its effects have been carried out. */
  onTurn(): void {
    if (!this.#tickDue) return;
    this.#tickDue = false;
    this.#driver.step({ kind: "tick" });
  }

  /** A job leaves memory; on disk with the next checkpoint. */
  addToArchive(jobId: string, bytes: Uint8Array): void {
    this.#machine.archive.add(jobId, bytes, this.#handlers.clock.wall());
  }

  /** Resolves when every record so far is durable. */
  flush(): Promise<void> {
    return this.#request((id) => this.#driver.step({ kind: "flush", id }));
  }

  /** Resolves when a checkpoint of the state as it is now would survive, or could not be made. */
  checkpoint(): Promise<void> {
    return this.#request((id) => this.#driver.step({ kind: "checkpoint", id }));
  }

  async close(): Promise<void> {
    if (this.#failed) return;
    await new Promise<void>((resolve) => {
      this.#onClosed = resolve;
      this.#driver.step({ kind: "close" });
    });
    await this.#release();
  }

  logView(): LogView {
    return this.#machine.view();
  }

  /** Newest first. */
  get checkpoints(): readonly CheckpointHeader[] {
    return this.#machine.checkpoints;
  }

  /** How full the log's queue is, 0 to 1. */
  get queueFill(): number {
    return Math.min(1, this.#machine.view().queueEntries / LOG_CONFIG.queueEntriesMax);
  }

  /** From the way to the log until durable, the slowest of a hundred. */
  get durableP99Ms(): number {
    const sorted = [...this.#samples].sort((a, b) => a - b);
    return sorted[Math.ceil(sorted.length * 0.99) - 1] ?? 0;
  }

  #request(ask: (id: number) => void): Promise<void> {
    if (this.#failed) return Promise.resolve();
    return new Promise((resolve) => {
      const id = ++this.#requestId;
      this.#requests.set(id, resolve);
      ask(id);
    });
  }

  #answer(id: number): void {
    this.#requests.get(id)?.();
    this.#requests.delete(id);
  }

  #onEvent(event: StoreEvent): void {
    const { log } = this.#handlers;
    switch (event.kind) {
      case "opened":
        this.#onOpening(event);
        return;
      case "refused":
        this.#onRefused(this.#refusal(event.refusal));
        return;
      case "durable":
        this.#onDurable(event.count);
        return;
      case "flushed":
      case "checkpointEnded":
        this.#answer(event.id);
        return;
      case "checkpointBegun":
        say(log, "checkpoint.creating", logLines.creatingCheckpoint(event.localLsn));
        return;
      case "checkpointCreated": {
        const { id, localLsn } = event.header;
        say(log, "checkpoint.created", logLines.checkpointCreated(id, localLsn));
        return;
      }
      case "checkpointFailed":
        log.event("error", "checkpoint.failed", { problem: event.problem.message });
        return;
      case "compacted": {
        const { segments, safeLsn } = event;
        log.event("info", "wal.compacted", { segments, safeLsn });
        return;
      }
      case "forgotten":
        for (const jobId of event.jobIds) this.#node?.forget(jobId);
        return;
      case "damaged": {
        const { file, problem } = event;
        const name = event.what === "archive" ? "archive.problem" : "checkpoint.damaged";
        log.event("warn", name, { file, problem });
        return;
      }
      case "segmentOpened": {
        const { segmentId, firstLsn } = event;
        log.event("info", "wal.segment-opened", { segmentId, firstLsn });
        return;
      }
      case "stalled":
        log.event("error", "wal.disk-full", { code: event.code });
        return;
      case "resumed":
        log.event("info", "wal.disk-has-space", {});
        return;
      case "failed":
        this.#onFailed(event);
        return;
      case "closed":
        this.#onClosed();
        return;
      case "written":
      case "marked":
        return;
      default:
        assertNever(event);
    }
  }

  #onOpening(event: Extract<StoreEvent, { kind: "opened" }>): void {
    const { log, clock } = this.#handlers;
    const { outcome, checkpoint, state, replayed } = event;
    const { entries, maxLsn, tornTail } = outcome;
    say(log, "wal.recovered", logLines.walRecovered(entries, maxLsn));
    if (tornTail !== null) {
      const { segmentId, offset } = tornTail;
      log.event("warn", "wal.torn-tail-cut", { segmentId, offset });
    }
    const line =
      checkpoint === null
        ? logLines.noCheckpoint()
        : logLines.recoveringFromCheckpoint(checkpoint.id, checkpoint.localLsn);
    say(log, "ledger.recovering", line);
    say(log, "ledger.replaying", logLines.replaying(replayed));
    const tookMs = Math.round(clock.now() - this.#openedAt);
    this.#onOpened({ store: this, recovered: { ...state, replayed, tookMs } });
  }

  #onDurable(count: number): void {
    if (this.#timed !== null && count >= this.#timed.count) {
      this.#samples[this.#sampled++ % SAMPLES_MAX] = performance.now() - this.#timed.at;
      this.#timed = null;
    }
    this.#handlers.onDurable(count);
  }

  #onFailed({ during, code, message }: Extract<StoreEvent, { kind: "failed" }>): void {
    this.#failed = true;
    for (const id of [...this.#requests.keys()]) this.#answer(id);
    this.#onClosed();
    const { dataDir } = this.#config;
    this.#handlers.onFailed(
      new WalError(
        "WAL_FAILED",
        `${dataDir}: ${during} failed with ${code} (${message}); the log has ended, ` +
          "restart this process to recover what is durable",
      ),
    );
  }

  async #release(): Promise<void> {
    await this.#driver.stop();
    await this.#lock.release();
  }

  #refusal(refusal: StoreRefusal): WalError {
    const directory = join(this.#config.dataDir, "wal");
    if (refusal.code === "LOG_GAP") {
      const { firstLsn, maxLsn, localLsn, throughLsn } = refusal;
      return new WalError(
        "WAL_CORRUPT",
        `${directory}: the log holds LSN ${firstLsn} to ${maxLsn}, recovery needs what follows ` +
          `${localLsn} up to ${throughLsn}; segments or checkpoints are missing`,
      );
    }
    if (refusal.code === "UNREADABLE") {
      return new WalError(
        "WAL_CORRUPT",
        `${directory}: what the log says of a group cannot be read (${refusal.problem}); look with ` +
          `"hyperscale wal verify ${directory}". The other replicas have this node's data: move the directory ` +
          "away and let the node join under a new name",
      );
    }
    const { cluster, environment, name } = this.#config;
    return refusalError(refusal, directory, identityOf(`${cluster}/${environment}`, name));
  }
}

const LOG_LEVELS = { INFO: "info", WARNING: "warn" } as const;

/** The texts that runbooks rest on. (LOGX-1) */
function say(log: Log, event: string, { level, message }: LogLine): void {
  log.event(LOG_LEVELS[level], event, { message });
}
