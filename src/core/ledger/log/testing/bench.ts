/**
 * The writer over a memory disk in virtual time: each I/O finishes when the test (or a seed) says so. It records
 * acknowledgements, so that a recovery after a crash can be checked against them.
 */

import { assertNever } from "../../../base/assert.ts";
import { millis } from "../../../base/brand.ts";
import type { Random } from "../../../base/random.ts";
import type { WalConfig } from "../limits.ts";
import { walConfig } from "../limits.ts";
import type { RecoveryOutcome, WriterPosition } from "../recovery.ts";
import { WAL_RULES, type WalRules } from "../rules.ts";
import { ANY_IDENTITY } from "../segment.ts";
import { WalWriter } from "../writer.ts";
import type { AppendRefusal, WalEntry, WriterEffect, WriterInput } from "../writer-types.ts";
import { MemoryDisk } from "./memory-disk.ts";
import { recoverSegments } from "./recover-segments.ts";

const FRESH: WriterPosition = { active: null, nextSegmentId: 1, nextLsn: 1 };

type Io = Extract<WriterEffect, { kind: "createSegment" | "write" | "sync" | "truncate" }>;

interface Pending {
  readonly effect: Io;
  /** Finishes a sync with what was written when it began. */
  readonly commit: () => void;
}

export class WriterBench {
  readonly disk: MemoryDisk;
  readonly config: WalConfig;
  readonly rules: WalRules;
  writer: WalWriter;
  now = 0;
  pending: Pending[] = [];
  readonly log: WriterEffect[] = [];
  /** By LSN: what was appended there, once written. */
  readonly placed = new Map<number, WalEntry>();
  readonly #entries = new Map<number, WalEntry>();
  readonly rejected = new Set<number>();
  readonly flushed: number[] = [];
  /** The highest LSN that was called durable. */
  durableLsn = 0;
  durableTicket = 0;

  constructor(
    config: Partial<WalConfig> = {},
    rules: Partial<WalRules> = {},
    disk = new MemoryDisk(),
  ) {
    this.config = walConfig(config);
    this.rules = { ...WAL_RULES, ...rules };
    this.disk = disk;
    this.writer = this.#start(FRESH);
  }

  #start(position: WriterPosition): WalWriter {
    return new WalWriter({
      config: this.config,
      identity: ANY_IDENTITY,
      position,
      rules: this.rules,
    });
  }

  append(entry: WalEntry): number | AppendRefusal {
    const ticket = this.writer.append(entry, millis(this.now));
    if (typeof ticket === "number") this.#entries.set(ticket, entry);
    return ticket;
  }

  step(input: WriterInput): readonly WriterEffect[] {
    const effects = this.writer.step(input, millis(this.now));
    for (const effect of effects) this.#run(effect);
    return effects;
  }

  tick(now = this.now): readonly WriterEffect[] {
    this.now = now;
    return this.step({ kind: "tick" });
  }

  /** Finishes the oldest I/O of this kind (or the oldest at all). False: there is none. */
  complete(kind?: Io["kind"]): boolean {
    const index = this.pending.findIndex(
      ({ effect }) => kind === undefined || effect.kind === kind,
    );
    const [io] = index < 0 ? [] : this.pending.splice(index, 1);
    if (io === undefined) return false;
    io.commit();
    this.step(this.#answerTo(io.effect));
    return true;
  }

  /** Power fails: syncs under way may have got any part of their pages through. */
  crash(random: Random): void {
    for (const { effect, commit } of this.pending) {
      if (effect.kind === "sync" && random.chance(0.5)) commit();
    }
    this.pending = [];
    this.disk.crash(random);
  }

  /** Ends the oldest I/O of this kind with an error, after `bytes` of a write got through. */
  fail(kind: Io["kind"], code: string, bytes = 0): void {
    const index = this.pending.findIndex(({ effect }) => effect.kind === kind);
    const [io] = this.pending.splice(index, 1);
    if (io?.effect.kind === "write") {
      this.disk.write(io.effect.segmentId, io.effect.offset, io.effect.chunks, bytes);
    }
    const during = kind === "createSegment" ? "create" : kind;
    this.step({ kind: "failed", during, code, message: `${code}: injected` });
  }

  /** Only the first bytes of the write under way get through. */
  shorten(bytes: number): void {
    const index = this.pending.findIndex(({ effect }) => effect.kind === "write");
    const [io] = this.pending.splice(index, 1);
    if (io?.effect.kind !== "write") return;
    const { segmentId, offset, chunks } = io.effect;
    this.step({ kind: "written", bytes: this.disk.write(segmentId, offset, chunks, bytes) });
  }

  /** Until nothing is under way and no deadline is ahead. */
  settle(): void {
    for (let round = 0; round < 100_000; round++) {
      if (this.complete()) continue;
      const deadline = this.writer.nextDeadline();
      if (deadline === null) return;
      this.tick(Math.max(deadline, this.now));
    }
    throw new Error("the writer does not come to rest");
  }

  recover(): RecoveryOutcome & { readonly found: Map<number, WalEntry> } {
    const found = new Map<number, WalEntry>();
    const outcome = recoverSegments(this.disk.segments(), {
      config: this.config,
      identity: ANY_IDENTITY,
      rules: this.rules,
      onEntry: ({ lsn, type, payload, wall, logical }) =>
        found.set(lsn, { type, payload: payload.slice(), wall, logical }),
    });
    return { ...outcome, found };
  }

  /** Performs the repairs that recovery requests, as a host does, and restarts. False: recovery was rejected. */
  restart(): boolean {
    const outcome = this.recover();
    if (!outcome.ok) return false;
    for (const repair of outcome.repairs) {
      if (repair.kind === "cut") this.disk.cut(repair.segmentId, repair.offset);
      else this.disk.remove(repair.segmentId);
    }
    for (const segmentId of this.disk.files.keys()) this.disk.beginSync(segmentId)();
    this.pending = [];
    this.writer = this.#start(outcome.position);
    this.placed.clear();
    for (const [lsn, entry] of outcome.found) this.placed.set(lsn, entry);
    this.#entries.clear();
    this.durableLsn = outcome.maxLsn;
    this.durableTicket = 0;
    return true;
  }

  #run(effect: WriterEffect): void {
    this.log.push(effect);
    switch (effect.kind) {
      case "createSegment":
      case "write":
      case "truncate":
        this.pending.push({ effect, commit: () => this.#perform(effect) });
        return;
      case "sync":
        this.pending.push({ effect, commit: this.disk.beginSync(effect.segmentId) });
        return;
      case "written":
        for (let i = 0; i < effect.count; i++) {
          const entry = this.#entries.get(effect.firstTicket + i);
          if (entry !== undefined) this.placed.set(effect.firstLsn + i, entry);
          this.#entries.delete(effect.firstTicket + i);
        }
        return;
      case "durable":
        this.durableLsn = effect.lsn;
        this.durableTicket = effect.ticket;
        return;
      case "rejected":
        for (let i = 0; i < effect.count; i++) this.rejected.add(effect.firstTicket + i);
        return;
      case "flushed":
        this.flushed.push(effect.id);
        return;
      case "sealed":
      case "opened":
      case "stalled":
      case "resumed":
      case "failed":
      case "closed":
        return;
      default:
        assertNever(effect);
    }
  }

  #perform(effect: Exclude<Io, { kind: "sync" }>): void {
    if (effect.kind === "createSegment") this.disk.create(effect.segmentId, effect.bytes);
    else if (effect.kind === "truncate") this.disk.cut(effect.segmentId, effect.offset);
    else this.disk.write(effect.segmentId, effect.offset, effect.chunks);
  }

  #answerTo(effect: Io): WriterInput {
    switch (effect.kind) {
      case "createSegment":
        return { kind: "created", segmentId: effect.segmentId };
      case "write":
        return {
          kind: "written",
          bytes: effect.chunks.reduce((sum, { length }) => sum + length, 0),
        };
      case "sync":
        return { kind: "synced" };
      case "truncate":
        return { kind: "truncated" };
    }
  }
}
