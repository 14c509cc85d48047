/**
 * The node's log on the simulated disk: the real recovery scan, the real writer, checkpoints and
 * compaction, in the steps and the order in which the driver on real files takes them. (src/ledger/log)
 */

import type { Millis } from "../../src/core/base/brand.ts";
import {
  type CheckpointHeader,
  checkpointIdOf,
  checkpointName,
  decodeCheckpoint,
  encodeCheckpointHeader,
  safeLsn,
} from "../../src/core/ledger/log/checkpoint.ts";
import type { WalConfig } from "../../src/core/ledger/log/limits.ts";
import {
  type Recovered,
  refusalText,
  type WriterPosition,
} from "../../src/core/ledger/log/recovery.ts";
import type { WalRules } from "../../src/core/ledger/log/rules.ts";
import { segmentIdOf, segmentName } from "../../src/core/ledger/log/segment.ts";
import { recoverSegments } from "../../src/core/ledger/log/testing/recover-segments.ts";
import { WalWriter } from "../../src/core/ledger/log/writer.ts";
import type {
  WalEntry,
  WriterEffect,
  WriterInput,
} from "../../src/core/ledger/log/writer-types.ts";
import type { LedgerDisk } from "./disk.ts";

interface JournalRecord {
  readonly lsn: number;
  readonly type: number;
  readonly payload: Uint8Array;
}

/** What the checkers see of a log. */
export interface JournalObserver {
  appended(ticket: number, type: number, payload: Uint8Array): void;
  placed(firstTicket: number, count: number, firstLsn: number): void;
  /** `onDisk`: whether the medium really has it. */
  durable(ticket: number, lsn: number, onDisk: boolean): void;
  failed(): void;
}

interface JournalHost {
  readonly disk: LedgerDisk;
  readonly observer: JournalObserver;
  local(): Millis;
  /** Runs after this much time, unless the process is dead by then. */
  after(delayMs: number, run: () => void): void;
  durable(ticket: number): void;
  die(why: string): void;
}

interface JournalOptions {
  readonly config: WalConfig;
  readonly identity: string;
  readonly rules: WalRules;
  readonly checkpointsKept: number;
}

interface Checkpoint {
  readonly header: CheckpointHeader;
  readonly payload: Uint8Array;
}

export type JournalOpening =
  | {
      readonly ok: true;
      readonly outcome: Recovered;
      readonly checkpoint: Checkpoint | null;
      readonly records: readonly JournalRecord[];
    }
  | { readonly ok: false; readonly why: string };

/** Where a batch begins, and what it proves once it is durable itself. */
interface Proof {
  readonly segmentId: number;
  readonly end: number;
  readonly provenOffset: number;
}

export class Journal {
  readonly #host: JournalHost;
  readonly #options: JournalOptions;
  #writer: WalWriter | null = null;
  /** Appends that found the queue full. */
  #waiting: WalEntry[] = [];
  readonly #segments: { readonly segmentId: number; readonly firstLsn: number }[] = [];
  #kept: CheckpointHeader[] = [];
  #checkpointing = false;
  readonly #lsnOfTicket = new Map<number, number>();
  #baseLsn = 0;
  #durableTicket = 0;
  #durable = { segmentId: 0, offset: 0 };
  #proofs: Proof[] = [];
  /** Damage below this offset of the active segment can be told from a torn tail. (WAL-13) */
  #proven = { segmentId: 0, offset: 0 };

  constructor(host: JournalHost, options: JournalOptions) {
    this.#host = host;
    this.#options = options;
  }

  /** Looks at the directory and changes nothing. */
  recover(): JournalOpening {
    const { disk } = this.#host;
    const checkpoint = this.#newestCheckpoint();
    const segments = disk
      .names()
      .flatMap((name) => {
        const segmentId = segmentIdOf(name);
        return segmentId === null ? [] : [{ segmentId, bytes: disk.read(name) }];
      })
      .sort((a, b) => a.segmentId - b.segmentId);
    const records: JournalRecord[] = [];
    const { config, identity, rules } = this.#options;
    const outcome = recoverSegments(segments, {
      ...{ config, identity, rules },
      onEntry: ({ lsn, type, payload }) => records.push({ lsn, type, payload: payload.slice() }),
    });
    if (!outcome.ok) return { ok: false, why: refusalText(outcome.refusal, identity) };
    const covered = checkpoint?.header.localLsn ?? 0;
    if (outcome.records > 0 && outcome.firstLsn > covered + 1) {
      return { ok: false, why: `the log begins at ${outcome.firstLsn}, checkpoints end before` };
    }
    if (outcome.maxLsn < covered && outcome.records > 0) {
      return {
        ok: false,
        why: `the log ends at ${outcome.maxLsn}, a checkpoint covers ${covered}`,
      };
    }
    return { ok: true, outcome, checkpoint, records };
  }

  #newestCheckpoint(): Checkpoint | null {
    const { disk } = this.#host;
    this.#kept = [];
    let newest: Checkpoint | null = null;
    for (const name of disk.names()) {
      if (checkpointIdOf(name) === null) continue;
      const verdict = decodeCheckpoint(disk.read(name));
      if (!verdict.ok) continue;
      this.#kept.push(verdict.header);
      if (newest === null || verdict.header.localLsn > newest.header.localLsn) newest = verdict;
    }
    this.#kept.sort((a, b) => b.localLsn - a.localLsn);
    return newest;
  }

  /** Repairs what recovery found, syncs what will be relied on, and begins to write. */
  open(outcome: Recovered): void {
    const { disk } = this.#host;
    const { config, identity, rules } = this.#options;
    for (const name of disk.names()) if (name.endsWith(".tmp")) disk.remove(name);
    let cut: number | null = null;
    for (const repair of outcome.repairs) {
      if (repair.kind === "remove") disk.remove(segmentName(repair.segmentId));
      else cut = repair.offset;
    }
    const position = this.#position(outcome, cut);
    disk.syncDirectory();
    for (const { segmentId, firstLsn } of outcome.segments) {
      this.#segments.push({ segmentId, firstLsn });
    }
    this.#baseLsn = position.nextLsn - 1;
    this.#writer = new WalWriter({ config, identity, position, rules });
  }

  #position({ position }: Recovered, cut: number | null): WriterPosition {
    if (position.active === null) return position;
    const { disk } = this.#host;
    const { segmentBytes } = this.#options.config;
    const { segmentId, offset } = position.active;
    const name = segmentName(segmentId);
    const bytes = disk.read(name).length;
    if (cut !== null || bytes < segmentBytes) disk.cut(name, offset, segmentBytes);
    disk.sync(name);
    this.#durable = { segmentId, offset };
    return offset < segmentBytes ? position : { ...position, active: null };
  }

  append(entry: WalEntry): void {
    this.#waiting.push(entry);
    this.#fill();
  }

  #fill(): void {
    const writer = this.#writer;
    if (writer === null) return;
    let taken = 0;
    for (const entry of this.#waiting) {
      const ticket = writer.append(entry, this.#host.local());
      if (ticket === "QUEUE_FULL") break;
      if (typeof ticket === "string") {
        this.#host.die(`the log takes nothing more: ${ticket}`);
        return;
      }
      this.#host.observer.appended(ticket, entry.type, entry.payload);
      taken++;
    }
    this.#waiting.splice(0, taken);
  }

  nextDeadline(): number {
    return this.#writer?.nextDeadline() ?? Number.POSITIVE_INFINITY;
  }

  step(input: WriterInput): void {
    const writer = this.#writer;
    if (writer === null) return;
    for (const effect of writer.step(input, this.#host.local())) this.#carryOut(effect);
    this.#fill();
  }

  #carryOut(effect: WriterEffect): void {
    switch (effect.kind) {
      case "write":
        this.#write(effect);
        return;
      case "sync":
        this.#sync(effect.segmentId);
        return;
      case "createSegment":
        this.#create(effect.segmentId, effect.bytes);
        return;
      case "truncate":
        this.#truncate(effect.segmentId, effect.offset);
        return;
      case "opened":
        this.#segments.push({ segmentId: effect.segmentId, firstLsn: effect.firstLsn });
        return;
      case "written":
        this.#onWritten(effect);
        return;
      case "durable":
        this.#onDurable(effect);
        return;
      case "failed":
        this.#host.observer.failed();
        this.#host.die(`${effect.during} failed: ${effect.code}`);
        return;
      case "rejected":
        this.#host.die("a log that waits for space rejects nothing");
        return;
      default:
    }
  }

  #write(effect: Extract<WriterEffect, { kind: "write" }>): void {
    const { disk } = this.#host;
    const { segmentId, offset, chunks } = effect;
    const bytes = chunks.reduce((sum, chunk) => sum + chunk.length, 0);
    const sameSegment = this.#durable.segmentId === segmentId;
    const provenOffset = sameSegment ? this.#durable.offset : 0;
    this.#proofs.push({ segmentId, end: offset + bytes, provenOffset });
    this.#host.after(disk.drawWriteMs(), () => {
      const code = disk.drawError("write");
      const length = disk.drawLength(bytes, code !== null);
      const done = disk.write(segmentName(segmentId), offset, chunks, length);
      if (code === null) this.step({ kind: "written", bytes: done });
      else this.step({ kind: "failed", during: "write", code, message: code });
    });
  }

  #sync(segmentId: number): void {
    const { disk } = this.#host;
    const name = segmentName(segmentId);
    const finish = disk.beginSync(name);
    this.#host.after(disk.drawSyncMs(), () => {
      const code = disk.drawError("sync");
      if (code === null) {
        finish();
        this.step({ kind: "synced" });
        return;
      }
      disk.failSync(name);
      this.step({ kind: "failed", during: "sync", code, message: code });
    });
  }

  #create(segmentId: number, bytes: number): void {
    const { disk } = this.#host;
    const name = segmentName(segmentId);
    const code = disk.drawError("create");
    if (code === null) disk.create(name, bytes);
    this.#host.after(disk.drawSyncMs(), () => {
      if (code === null) {
        disk.sync(name);
        disk.syncDirectory();
        this.step({ kind: "created", segmentId });
      } else this.step({ kind: "failed", during: "create", code, message: code });
    });
  }

  #truncate(segmentId: number, offset: number): void {
    const { disk } = this.#host;
    const name = segmentName(segmentId);
    this.#host.after(disk.drawSyncMs(), () => {
      disk.cut(name, offset, this.#options.config.segmentBytes);
      disk.sync(name);
      this.step({ kind: "truncated" });
    });
  }

  #onWritten(effect: Extract<WriterEffect, { kind: "written" }>): void {
    const { firstTicket, count, firstLsn } = effect;
    for (let i = 0; i < count; i++) this.#lsnOfTicket.set(firstTicket + i, firstLsn + i);
    this.#host.observer.placed(firstTicket, count, firstLsn);
  }

  #onDurable(effect: Extract<WriterEffect, { kind: "durable" }>): void {
    const { ticket, lsn, segmentId, offset } = effect;
    const onDisk = this.#isDurable(segmentId, offset);
    this.#durable = { segmentId, offset };
    this.#durableTicket = ticket;
    while (this.#proofs[0] !== undefined) {
      const { segmentId: id, end, provenOffset } = this.#proofs[0];
      if (id > segmentId || (id === segmentId && end > offset)) break;
      this.#proven = { segmentId: id, offset: provenOffset };
      this.#proofs.shift();
    }
    this.#host.observer.durable(ticket, lsn, onDisk);
    this.#host.durable(ticket);
  }

  /** From where it was durable before up to here, over segments. */
  #isDurable(segmentId: number, offset: number): boolean {
    const { disk } = this.#host;
    return this.#segments.every(({ segmentId: id }) => {
      if (id < this.#durable.segmentId || id > segmentId) return true;
      const name = segmentName(id);
      const start = id === this.#durable.segmentId ? this.#durable.offset : 0;
      return disk.isDurable(name, start, id === segmentId ? offset : disk.read(name).length);
    });
  }

  /**
   * `payload` stands for the first `appends` records of this process. It is written once they are
   * durable, renamed into place, and only then older checkpoints and the log below them go.
   */
  checkpoint(payload: Uint8Array, appends: number): void {
    if (this.#checkpointing) return;
    this.#checkpointing = true;
    this.#whenDurable(appends, () => this.#writeCheckpoint(payload, appends));
  }

  #whenDurable(ticket: number, run: () => void): void {
    if (this.#durableTicket >= ticket) run();
    else this.#host.after(5, () => this.#whenDurable(ticket, run));
  }

  #writeCheckpoint(payload: Uint8Array, appends: number): void {
    const { disk } = this.#host;
    const localLsn = appends === 0 ? this.#baseLsn : (this.#lsnOfTicket.get(appends) ?? 0);
    for (const ticket of this.#lsnOfTicket.keys()) {
      if (ticket < appends) this.#lsnOfTicket.delete(ticket);
    }
    const newest = this.#kept[0]?.localLsn ?? 0;
    if (localLsn <= newest || disk.full) {
      this.#checkpointing = false;
      return;
    }
    const id = localLsn.toString(16).padStart(32, "0");
    const { identity } = this.#options;
    const lsns = { localLsn, regionalLsn: localLsn, globalLsn: localLsn };
    const header = { id, identity, createdAt: 0, ...lsns };
    const head = encodeCheckpointHeader(header, payload);
    const name = checkpointName(id);
    disk.create(`${name}.tmp`, head.length + payload.length);
    disk.write(`${name}.tmp`, 0, [head, payload]);
    this.#host.after(disk.drawSyncMs(), () => {
      disk.sync(`${name}.tmp`);
      disk.rename(`${name}.tmp`, name);
      this.#host.after(disk.drawSyncMs(), () => {
        disk.syncDirectory();
        this.#kept.unshift(header);
        for (const { id: old } of this.#kept.splice(this.#options.checkpointsKept)) {
          disk.remove(checkpointName(old));
        }
        this.#host.after(disk.drawSyncMs(), () => this.#compact());
      });
    });
  }

  /** One segment at a time, the directory synced after each. (WAL-17) */
  #compact(): void {
    const { disk } = this.#host;
    disk.syncDirectory();
    const [oldest, next] = this.#segments;
    const safe = safeLsn(this.#kept);
    const done = oldest === undefined || next === undefined || next.firstLsn - 1 > safe;
    if (done || next.segmentId > this.#durable.segmentId) {
      this.#checkpointing = false;
      return;
    }
    this.#segments.shift();
    disk.remove(segmentName(oldest.segmentId));
    this.#host.after(disk.drawSyncMs(), () => this.#compact());
  }

  /** A place whose damage must be told from a torn tail; null when there is none yet. */
  provenPlace(draw: (below: number) => number): { name: string; at: number } | null {
    const proven = this.#segments.filter(({ segmentId }) => segmentId <= this.#proven.segmentId);
    const segment = proven[draw(Math.max(1, proven.length))];
    if (segment === undefined) return null;
    const { segmentId } = segment;
    const active = segmentId === this.#proven.segmentId;
    const end = active ? this.#proven.offset : this.#host.disk.read(segmentName(segmentId)).length;
    return end < 64 ? null : { name: segmentName(segmentId), at: draw(end) };
  }
}

export function identityText(index: number): string {
  return (index + 1).toString(16).padStart(16, "0");
}
