/**
 * What a ledger node keeps on disk, and how it comes back from it:
 *
 *     <dataDir>/wal/       segments and checkpoints          <dataDir>/archive/    finished jobs
 *
 * Recovery takes the newest intact checkpoint, then every record after it, in order. (CKPT-5..7) A
 * checkpoint is marked by a record of its own: the snapshot stands for exactly the records before it.
 */

import { join } from "node:path";
import { errorText } from "../core/base/error-text.ts";
import type { NodeId } from "../core/base/ids.ts";
import type { GroupId } from "../core/ledger/group/messages.ts";
import type { GroupImage } from "../core/ledger/group/types.ts";
import { type LogLine, logLines } from "../core/ledger/job/log-lines.ts";
import { checkpointDue } from "../core/ledger/log/checkpoint.ts";
import { RECORD_TYPES } from "../core/ledger/log/record-types.ts";
import { identityOf } from "../core/ledger/log/segment.ts";
import type { LedgerNode } from "../core/ledger/node/node.ts";
import { encodeCheckpoint, LedgerRecovery } from "../core/ledger/node/recovery.ts";
import type { Background } from "../host/background.ts";
import type { Clock } from "../host/ports/clock.ts";
import type { Log } from "../host/ports/log.ts";
import { Archive } from "./archive.ts";
import type { LedgerConfig } from "./config.ts";
import { type Checkpoint, Checkpoints } from "./log/checkpoints.ts";
import { WalError } from "./log/errors.ts";
import type { WalEvent } from "./log/types.ts";
import { Wal } from "./log/wal.ts";

interface StoreHandlers {
  readonly clock: Clock;
  readonly log: Log;
  readonly background: Background;
  readonly onDurable: (count: number) => void;
  /** The log has ended; so must the process. */
  readonly onFailed: (error: Error) => void;
}

interface Recovered {
  readonly images: ReadonlyMap<GroupId, GroupImage>;
  readonly archived: Iterable<string>;
  readonly identities: ReadonlyMap<NodeId, string>;
  readonly replayed: number;
  readonly tookMs: number;
}

const NOTHING = new Uint8Array(0);
/**
 * A turn of a busy node makes hundreds of records: fewer and larger writes cost less, and nobody waits
 * longer for them, since a batch leaves as soon as the writer is free.
 */
const WAL_CONFIG = {
  fullDisk: "wait",
  batchEntriesMax: 16_384,
  batchBytesMax: 2 * 1_048_576,
  unsyncedEntriesMax: 40_000,
  queueEntriesMax: 40_000,
  queueBytesMax: 32 * 1_048_576,
  chunkBytes: 262_144,
} as const;
/** Latest times from a record's way to the log until it was durable, sampled once per sync. */
const SAMPLES_MAX = 1_024;

export class Store {
  readonly #config: LedgerConfig;
  readonly #handlers: StoreHandlers;
  readonly #wal: Wal;
  readonly #checkpoints: Checkpoints;
  readonly archive: Archive;
  #stamp = { wall: 0, logical: 0 };
  #checkpointedAt: number;
  #checkpointedAppends = 0;
  #running: Promise<void> | null = null;
  #posted = 0;
  /** The record whose way is being timed. */
  #timed: { readonly count: number; readonly at: number } | null = null;
  readonly #samples: number[] = [];
  #sampled = 0;

  private constructor(
    config: LedgerConfig,
    handlers: StoreHandlers,
    parts: { readonly wal: Wal; readonly checkpoints: Checkpoints; readonly archive: Archive },
  ) {
    this.#config = config;
    this.#handlers = handlers;
    this.#wal = parts.wal;
    this.#checkpoints = parts.checkpoints;
    this.archive = parts.archive;
    // Counted from the start of the process. (CKPT-9)
    this.#checkpointedAt = handlers.clock.now();
  }

  /** Throws a `WalError` that says what is wrong with the directory; then nothing was changed. */
  static async open(
    config: LedgerConfig,
    handlers: StoreHandlers,
  ): Promise<{ readonly store: Store; readonly recovered: Recovered }> {
    const startedAt = handlers.clock.now();
    const { log, clock } = handlers;
    const directory = join(config.dataDir, "wal");
    const identity = identityOf(`${config.cluster}/${config.environment}`, config.name);
    say(log, "wal.opening", logLines.openingWal(directory));
    const recovery = new LedgerRecovery();
    let replayed = 0;
    let store: Store | null = null;
    const { checkpoints, latest } = await openCheckpoints(config, directory, identity, log);
    recovery.restore(latest?.payload ?? null);
    refuseUnreadable(recovery, directory);
    const fromLsn = latest?.header.localLsn ?? 0;
    const wal = await Wal.open({
      directory,
      identity,
      config: WAL_CONFIG,
      stamp: () => store?.stamp ?? { wall: clock.wall(), logical: 0 },
      onEntry: ({ type, payload, lsn }) => {
        if (lsn <= fromLsn) return;
        replayed++;
        recovery.apply(type, payload);
      },
      onDurable: (count) => {
        store?.onDurable(count);
        handlers.onDurable(count);
      },
      onFailed: handlers.onFailed,
      onEvent: (event) => logWal(log, event),
    });
    try {
      refuseUnreadable(recovery, directory);
      refuseGap(fromLsn, wal, directory);
      if (latest === null) {
        say(log, "ledger.recovering", logLines.noCheckpoint());
      } else {
        const { id, localLsn } = latest.header;
        say(log, "ledger.recovering", logLines.recoveringFromCheckpoint(id, localLsn));
      }
      say(log, "ledger.replaying", logLines.replaying(replayed));
      const archive = await Archive.open({
        directory: join(config.dataDir, "archive"),
        keepMs: config.archiveKeepMs,
        wall: clock.wall,
        onProblem: (file, problem) => log.event("warn", "archive.problem", { file, problem }),
      });
      store = new Store(config, handlers, { wal, checkpoints, archive });
      const archived = new Set([...recovery.archived, ...archive.jobs()]);
      const images = recovery.images();
      const tookMs = Math.round(clock.now() - startedAt);
      const { identities } = recovery;
      return { store, recovered: { images, archived, identities, replayed, tookMs } };
    } catch (error) {
      await wal.close();
      throw error;
    }
  }

  get stamp(): { readonly wall: number; readonly logical: number } {
    return this.#stamp;
  }

  /** Records that have found no room in the queue yet: the disk is behind. */
  get waiting(): number {
    return this.#wal.congested ? this.#wal.status().waiting : 0;
  }

  get wal(): Wal {
    return this.#wal;
  }

  get checkpoints(): Checkpoints {
    return this.#checkpoints;
  }

  /** How full the log's queue is, 0 to 1. */
  get queueFill(): number {
    return Math.min(1, this.#wal.status().queueEntries / WAL_CONFIG.queueEntriesMax);
  }

  /** From the way to the log until durable, the slowest of a hundred. */
  get durableP99Ms(): number {
    const sorted = [...this.#samples].sort((a, b) => a - b);
    return sorted[Math.ceil(sorted.length * 0.99) - 1] ?? 0;
  }

  post(type: number, payload: Uint8Array, wall: number, logical: number): void {
    this.#stamp = { wall, logical };
    this.#posted = this.#wal.post(type, payload);
    this.#timed ??= { count: this.#posted, at: performance.now() };
  }

  onDurable(count: number): void {
    if (this.#timed === null || count < this.#timed.count) return;
    this.#samples[this.#sampled++ % SAMPLES_MAX] = performance.now() - this.#timed.at;
    this.#timed = null;
  }

  /** Called after every turn; starts a checkpoint when one is due. (CKPT: 100,000 entries or 300 s) */
  checkpointIfDue(node: LedgerNode): void {
    if (this.#running !== null) return;
    const { entries: intervalEntries, ms: intervalMs } = this.#config.checkpoint;
    const entries = node.appends - this.#checkpointedAppends;
    const ms = this.#handlers.clock.now() - this.#checkpointedAt;
    if (!checkpointDue({ entries, ms }, { intervalEntries, intervalMs })) return;
    this.#handlers.background.run("checkpoint", () => this.checkpoint(node));
  }

  /** All effects of the node up to now must have been carried out. Resolves when it would survive. */
  checkpoint(node: LedgerNode): Promise<void> {
    this.#running ??= this.#checkpoint(node).finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  async #checkpoint(node: LedgerNode): Promise<void> {
    const { log, clock, onFailed } = this.#handlers;
    this.#checkpointedAt = clock.now();
    this.#checkpointedAppends = node.appends;
    // The snapshot and the mark are made in one turn: nothing can come between them. (CKPT-1)
    const payload = encodeCheckpoint(node);
    const marked = this.#wal.append(RECORD_TYPES.CHECKPOINT_MARK, NOTHING);
    try {
      const { lsn } = await marked;
      await this.archive.flush();
      say(log, "checkpoint.creating", logLines.creatingCheckpoint(lsn));
      // Entries that are not global yet are in the snapshot with their groups: all of it is safe.
      const lsns = { localLsn: lsn, regionalLsn: lsn, globalLsn: lsn };
      const { id } = await this.#checkpoints.write({ ...lsns, payload });
      say(log, "checkpoint.created", logLines.checkpointCreated(id, lsn));
      await this.#wal.compact(this.#checkpoints.safeLsn);
      for (const jobId of await this.archive.expire()) node.forget(jobId);
    } catch (error) {
      if (error instanceof WalError) return;
      // The log goes on without a checkpoint; it only grows. A disk that fails for good ends the log itself.
      const problem = errorText(error);
      log.event("error", "checkpoint.failed", { problem });
      if (!isDiskFull(error)) onFailed(new Error(`a checkpoint could not be written: ${problem}`));
    }
  }

  async close(): Promise<void> {
    await this.#running;
    try {
      await this.archive.close();
    } catch (error) {
      // What the archive could not take is in the log still: no checkpoint stands for it yet.
      if (!isDiskFull(error)) throw error;
    } finally {
      await this.#wal.close();
    }
  }
}

const LOG_LEVELS = { INFO: "info", WARNING: "warn" } as const;

/** The texts that runbooks rest on. (LOGX-1) */
function say(log: Log, event: string, { level, message }: LogLine): void {
  log.event(LOG_LEVELS[level], event, { message });
}

function isDiskFull(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException;
  return code === "ENOSPC" || code === "EDQUOT";
}

async function openCheckpoints(
  config: LedgerConfig,
  directory: string,
  identity: string,
  log: Log,
): Promise<{ readonly checkpoints: Checkpoints; readonly latest: Checkpoint | null }> {
  const options = {
    directory,
    identity,
    keptMax: config.checkpoint.keep,
    onDamaged: (name: string, problem: string) =>
      log.event("warn", "checkpoint.damaged", { file: name, problem }),
  };
  try {
    return await Checkpoints.open(options);
  } catch (error) {
    if (!(error instanceof WalError) || error.code !== "WAL_MISSING") throw error;
    return { checkpoints: Checkpoints.empty(options), latest: null };
  }
}

function refuseUnreadable({ problem }: LedgerRecovery, directory: string): void {
  if (problem === null) return;
  throw new WalError(
    "WAL_CORRUPT",
    `${directory}: what the log says of a group cannot be read (${problem}); look with ` +
      `"hyperscale wal verify ${directory}". The other replicas have this node's data: move the directory ` +
      "away and let the node join under a new name",
  );
}

/** The log must reach back to the checkpoint that recovery starts from. */
function refuseGap(fromLsn: number, wal: Wal, directory: string): void {
  const { firstLsn, maxLsn, recoveredEntries } = wal.recovery;
  if (recoveredEntries === 0 && fromLsn === 0) return;
  if (firstLsn <= fromLsn + 1 && maxLsn >= fromLsn) return;
  throw new WalError(
    "WAL_CORRUPT",
    `${directory}: the log holds LSN ${firstLsn} to ${maxLsn}, recovery needs what follows ${fromLsn}; ` +
      "segments or checkpoints are missing",
  );
}

function logWal(log: Log, event: WalEvent): void {
  switch (event.event) {
    case "wal.recovered": {
      const { recoveredEntries, maxLsn } = event.recovery;
      say(log, event.event, logLines.walRecovered(recoveredEntries, maxLsn));
      return;
    }
    case "wal.torn-tail-cut": {
      const { segmentId, offset } = event.damage;
      log.event("warn", event.event, { segmentId, offset });
      return;
    }
    case "wal.disk-full":
      log.event("error", event.event, { code: event.code });
      return;
    default: {
      const { event: name, ...fields } = event;
      log.event("info", name, fields);
    }
  }
}
