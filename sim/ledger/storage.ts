/**
 * One node's simulated disk under the production store, as the checkers see it: the position of each record, which
 * records are called durable and whether the medium has them, and which bytes are proven durable, so that damage there
 * must be distinguished from a torn tail.
 */

import type { Random } from "../../src/core/base/random.ts";
import type { CheckpointHeader } from "../../src/core/ledger/log/checkpoint.ts";
import type { FileEffect, FileResult } from "../../src/core/ledger/log/files.ts";
import type { WalConfig } from "../../src/core/ledger/log/limits.ts";
import { RECORD_TYPES } from "../../src/core/ledger/log/record-types.ts";
import type { Recovered } from "../../src/core/ledger/log/recovery.ts";
import type { WalRules } from "../../src/core/ledger/log/rules.ts";
import { segmentIdOf, segmentName } from "../../src/core/ledger/log/segment.ts";
import type { StoreRules } from "../../src/core/ledger/store/rules.ts";
import type { LedgerStore } from "../../src/core/ledger/store/store.ts";
import type { StoreEvent, StoreOptions, StoreRefusal } from "../../src/core/ledger/store/types.ts";
import type { LedgerDisk } from "./disk.ts";
import { SimFiles } from "./files.ts";

interface StoredRecord {
  readonly lsn: number;
  readonly type: number;
  readonly payload: Uint8Array;
}

/** Log events seen by the checkers. */
export interface LogObserver {
  appended(ticket: number, type: number, payload: Uint8Array): void;
  placed(firstTicket: number, count: number, firstLsn: number): void;
  /** `onDisk`: whether the medium really has it. */
  durable(ticket: number, lsn: number, onDisk: boolean): void;
  failed(): void;
  /** A checkpoint is in place and covers records up to here. */
  checkpointed(throughLsn: number): void;
}

/** State a process found on its disk. */
export interface Opened {
  readonly outcome: Recovered;
  readonly checkpoint: CheckpointHeader | null;
  readonly state: Extract<StoreEvent, { kind: "opened" }>["state"];
  /** Including those that the checkpoint has. */
  readonly records: readonly StoredRecord[];
  /** Jobs whose record the archive has. */
  readonly archive: ReadonlySet<string>;
  /** Checkpoints that were passed over. */
  readonly damaged: number;
}

interface StorageHost {
  readonly disk: LedgerDisk;
  readonly observer: LogObserver;
  /** Runs after this much time, unless the process is dead by then. */
  after(delayMs: number, run: () => void): void;
  answer(id: number, result: FileResult): void;
  opened(opened: Opened): void;
  refused(refusal: StoreRefusal): void;
  mark(name: string): void;
  die(why: string): void;
}

/** Where a batch begins, and what it proves once it is durable itself. */
interface Proof {
  readonly segmentId: number;
  readonly end: number;
  readonly provenOffset: number;
}

export interface StorageSpec {
  readonly index: number;
  readonly wal: WalConfig;
  readonly walRules: WalRules;
  readonly storeRules: StoreRules;
  readonly checkpointEveryMs: number;
  readonly checkpointsKept: number;
}

/** Longer than any run. */
const ARCHIVE_KEEP_MS = 400 * 86_400_000;
const NOTHING = new Uint8Array(0);

export class Storage {
  readonly #host: StorageHost;
  readonly #files: SimFiles;
  #records: StoredRecord[] = [];
  #damaged = 0;
  #segmentIds: number[] = [];
  #durable = { segmentId: 0, offset: 0 };
  #proofs: Proof[] = [];
  /** Damage below this offset of the active segment is distinguishable from a torn tail. (WAL-13) */
  #proven = { segmentId: 0, offset: 0 };

  constructor(host: StorageHost) {
    this.#host = host;
    this.#files = new SimFiles({
      disk: host.disk,
      after: (delayMs, run) => host.after(delayMs, run),
      answer: (id, result) => host.answer(id, result),
    });
  }

  /** Every recovered entry of the log, also those that a checkpoint has. */
  readonly onEntry = ({ lsn, type, payload }: StoredRecord): void => {
    this.#records.push({ lsn, type, payload: payload.slice() });
  };

  run(effect: FileEffect): void {
    const { operation } = effect;
    const segmentId = operation.kind === "write" ? segmentOf(operation.path) : null;
    if (operation.kind === "write" && segmentId !== null) {
      const bytes = operation.chunks.reduce((sum, chunk) => sum + chunk.length, 0);
      const provenOffset = this.#durable.segmentId === segmentId ? this.#durable.offset : 0;
      this.#proofs.push({ segmentId, end: operation.offset + bytes, provenOffset });
    }
    this.#files.run(effect);
  }

  onEvent(event: StoreEvent, store: LedgerStore): void {
    const { observer } = this.#host;
    switch (event.kind) {
      case "opened":
        this.#onOpened(event, store);
        return;
      case "refused":
        this.#host.refused(event.refusal);
        return;
      case "segmentOpened":
        this.#segmentIds.push(event.segmentId);
        return;
      case "marked":
        observer.appended(event.ticket, RECORD_TYPES.CHECKPOINT_MARK, NOTHING);
        return;
      case "written":
        observer.placed(event.firstTicket, event.count, event.firstLsn);
        return;
      case "durable":
        this.#onDurable(event);
        return;
      case "checkpointCreated":
        observer.checkpointed(event.header.throughLsn);
        if (event.header.throughLsn > event.header.localLsn) this.#host.mark("checkpoint.sliced");
        return;
      case "checkpointFailed":
        this.#host.mark("checkpoint.diskFull");
        return;
      case "damaged":
        if (event.what === "checkpoint") this.#damaged++;
        return;
      case "failed":
        observer.failed();
        this.#host.die(`${event.during} failed: ${event.code}`);
        return;
      default:
    }
  }

  #onOpened(
    { outcome, checkpoint, state }: Extract<StoreEvent, { kind: "opened" }>,
    store: LedgerStore,
  ): void {
    for (const { segmentId } of outcome.segments) {
      if (!this.#segmentIds.includes(segmentId)) this.#segmentIds.push(segmentId);
    }
    this.#segmentIds.sort((a, b) => a - b);
    const { active } = outcome.position;
    if (active !== null) this.#durable = active;
    const records = this.#records;
    this.#records = [];
    const archive = new Set(store.archive.places.keys());
    this.#host.opened({ outcome, checkpoint, state, records, archive, damaged: this.#damaged });
  }

  #onDurable(event: Extract<StoreEvent, { kind: "durable" }>): void {
    const { ticket, lsn, segmentId, offset } = event;
    const onDisk = this.#isDurable(segmentId, offset);
    this.#durable = { segmentId, offset };
    while (this.#proofs[0] !== undefined) {
      const { segmentId: id, end, provenOffset } = this.#proofs[0];
      if (id > segmentId || (id === segmentId && end > offset)) break;
      this.#proven = { segmentId: id, offset: provenOffset };
      this.#proofs.shift();
    }
    this.#host.observer.durable(ticket, lsn, onDisk);
  }

  /** From where it was durable before up to here, over segments. */
  #isDurable(segmentId: number, offset: number): boolean {
    const { disk } = this.#host;
    return this.#segmentIds.every((id) => {
      if (id < this.#durable.segmentId || id > segmentId) return true;
      const start = id === this.#durable.segmentId ? this.#durable.offset : 0;
      const end = id === segmentId ? offset : disk.read(pathOf(id)).length;
      return disk.isDurable(pathOf(id), start, end);
    });
  }

  /** Picks a byte whose damage must be distinguished from a torn tail; null if there is none yet. */
  provenPlace(draw: (below: number) => number): { name: string; at: number } | null {
    const { disk } = this.#host;
    const names = new Set(disk.names());
    const proven = this.#segmentIds.filter((id) => {
      return id <= this.#proven.segmentId && names.has(pathOf(id));
    });
    const segmentId = proven[draw(Math.max(1, proven.length))];
    if (segmentId === undefined) return null;
    const name = pathOf(segmentId);
    const active = segmentId === this.#proven.segmentId;
    const end = active ? this.#proven.offset : disk.read(name).length;
    return end < 64 ? null : { name, at: draw(end) };
  }
}

function pathOf(segmentId: number): string {
  return `wal/${segmentName(segmentId)}`;
}

function segmentOf(path: string): number | null {
  return path.startsWith("wal/") ? segmentIdOf(path.slice("wal/".length)) : null;
}

export function storeOptions(spec: StorageSpec, random: Random): StoreOptions {
  const { index, wal, walRules, storeRules, checkpointEveryMs, checkpointsKept } = spec;
  const due = checkpointEveryMs === 0 ? Number.POSITIVE_INFINITY : checkpointEveryMs;
  return {
    identity: identityText(index),
    log: { ...wal, fullDisk: "wait" },
    checkpoint: {
      intervalEntries: Number.POSITIVE_INFINITY,
      intervalMs: due * (0.5 + random.float()),
      keptMax: checkpointsKept,
    },
    archiveKeepMs: ARCHIVE_KEEP_MS,
    logRules: walRules,
    rules: storeRules,
  };
}

function identityText(index: number): string {
  return (index + 1).toString(16).padStart(16, "0");
}
