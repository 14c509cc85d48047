/**
 * A ledger node's store on real files: the lock of its directory, the file operations requested by the machine, reads
 * for clients, and the texts for the store's errors.
 *
 *     <dataDir>/wal/       segments and checkpoints          <dataDir>/archive/    finished jobs
 */

import { join } from "node:path";
import { assertNever } from "../core/base/assert.ts";
import { type LogLine, logLines } from "../core/ledger/job/log-lines.ts";
import type { FileEffect, FileResult } from "../core/ledger/log/files.ts";
import { walConfig } from "../core/ledger/log/limits.ts";
import { identityOf } from "../core/ledger/log/segment.ts";
import type { LedgerStore } from "../core/ledger/store/store.ts";
import type { StoreEvent, StoreOptions, StoreRefusal } from "../core/ledger/store/types.ts";
import { makeFolder } from "../host/folders.ts";
import type { Log } from "../host/ports/log.ts";
import { ArchiveReader } from "./archive.ts";
import type { LedgerConfig } from "./config.ts";
import { checksum } from "./log/checksum.ts";
import { WalError } from "./log/errors.ts";
import { FileExecutor } from "./log/file-executor.ts";
import type { DirectoryLock } from "./log/lock.ts";
import { prepareDirectory } from "./log/prepare.ts";
import { refusalError } from "./log/refusal.ts";

/**
 * A turn of a busy node makes hundreds of records: fewer and larger writes cost less, and do not add latency, since a
 * batch leaves as soon as the writer is free.
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
export const LOG_QUEUE_ENTRIES_MAX = LOG_CONFIG.queueEntriesMax;

export function storeOptions(config: LedgerConfig): StoreOptions {
  const { entries: intervalEntries, ms: intervalMs, keep: keptMax } = config.checkpoint;
  return {
    identity: identityOfLog(config),
    log: LOG_CONFIG,
    checkpoint: { intervalEntries, intervalMs, keptMax },
    archiveKeepMs: config.archiveKeepMs,
    checksum,
    allocate: (bytes) => Buffer.allocUnsafeSlow(bytes),
  };
}

export class Store {
  readonly #config: LedgerConfig;
  readonly #log: Log;
  readonly #lock: DirectoryLock;
  readonly #executor: FileExecutor;
  readonly archive: ArchiveReader;

  private constructor(
    config: LedgerConfig,
    parts: { readonly machine: LedgerStore; readonly log: Log; readonly lock: DirectoryLock },
  ) {
    this.#config = config;
    this.#log = parts.log;
    this.#lock = parts.lock;
    this.#executor = new FileExecutor(config.dataDir);
    this.archive = new ArchiveReader(config.dataDir, parts.machine.archive, (file, problem) => {
      parts.log.event("warn", "archive.problem", { file, problem });
    });
  }

  /** Throws a `WalError` that names the problem of the directory; nothing was changed then. */
  static async prepare(config: LedgerConfig, machine: LedgerStore, log: Log): Promise<Store> {
    const directory = join(config.dataDir, "wal");
    say(log, "wal.opening", logLines.openingWal(directory));
    const lock = await prepareDirectory(directory);
    await makeFolder(join(config.dataDir, "archive"), { mode: 0o700 });
    return new Store(config, { machine, log, lock });
  }

  run({ operation }: FileEffect, done: (result: FileResult) => void): void {
    this.#executor.run(operation, done);
  }

  /** The machine has ended: calls under way are waited for, and the files are closed. */
  async close(): Promise<void> {
    await this.#executor.close();
    await this.#lock.release();
  }

  /** Into the log of the process. */
  tell(event: StoreEvent): void {
    const log = this.#log;
    switch (event.kind) {
      case "opened":
        this.#tellOpened(event);
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
      case "durable":
      case "written":
      case "marked":
      case "flushed":
      case "forgotten":
      case "archivedState":
      case "checkpointEnded":
      case "refused":
      case "failed":
      case "closed":
        return;
      default:
        assertNever(event);
    }
  }

  #tellOpened(event: Extract<StoreEvent, { kind: "opened" }>): void {
    const log = this.#log;
    const { outcome, checkpoint, replayed } = event;
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
  }

  failure({ during, code, message }: Extract<StoreEvent, { kind: "failed" }>): WalError {
    return new WalError(
      "WAL_FAILED",
      `${this.#config.dataDir}: ${during} failed with ${code} (${message}); the log has ended, ` +
        "restart this process to recover what is durable",
    );
  }

  refusal(refusal: StoreRefusal): WalError {
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
    return refusalError(refusal, directory, identityOfLog(this.#config));
  }
}

function identityOfLog({ cluster, environment, name }: LedgerConfig): string {
  return identityOf(`${cluster}/${environment}`, name);
}

const LOG_LEVELS = { INFO: "info", WARNING: "warn" } as const;

/** The texts that runbooks rest on. (LOGX-1) */
function say(log: Log, event: string, { level, message }: LogLine): void {
  log.event(LOG_LEVELS[level], event, { message });
}
