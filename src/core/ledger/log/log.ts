/**
 * A log on files, as one machine: opening and repair, the line and the queue before the writer, the writer, segments
 * with their indexes, and compaction. Every byte it reads or writes goes through the port of `files.ts`, so production
 * and the simulator run the same steps in the same order.
 *
 *     open ──► inspect ──► repair ──► append … ──► written ──► durable
 *                 └──► rejected, nothing changed
 *
 * A failed sync stops the log. A full disk does not. Both are the writer's rules. (WAL-14, WAL-15)
 */

import { assert, assertNever } from "../../base/assert.ts";
import type { Millis } from "../../base/brand.ts";
import type { Crc32 } from "../../base/crc32.ts";
import { type LogDirectory, logDirectory } from "./directory.ts";
import { EntryLine } from "./entry-line.ts";
import { FileTasks } from "./file-tasks.ts";
import type { FileAnswer, FileEffect, FileProblem, FileResult, FileWork } from "./files.ts";
import { inOrder } from "./files.ts";
import type { WalConfig } from "./limits.ts";
import { repairLog, scanSegments } from "./opening.ts";
import type { Recovered, RecoveryOptions, RecoveryRefusal } from "./recovery.ts";
import type { WalRules } from "./rules.ts";
import { Segments } from "./segments.ts";
import { WalWriter } from "./writer.ts";
import type {
  AppendRefusal,
  WalEntry,
  WriterEffect,
  WriterInput,
  WriterOperation,
  WriterView,
} from "./writer-types.ts";

interface LogOptions {
  /** Directory relative to the port's root; "" is the root itself. */
  readonly directory: string;
  readonly config: WalConfig;
  /** Result of `identityOf(cluster, node)`; a log of another node is rejected. */
  readonly identity: string;
  readonly rules?: WalRules;
  readonly checksum?: Crc32;
  /** Uninitialised memory is fine. */
  readonly allocate?: (bytes: number) => Uint8Array;
  /** Every recovered entry in order. The payload is a view: copy what stays. */
  readonly onEntry?: RecoveryOptions["onEntry"];
}

/** Why a log does not open. Nothing was changed, but by a file error during the repair. */
export type LogRefusal =
  | RecoveryRefusal
  | { readonly code: "FOREIGN_FILES"; readonly names: readonly string[] }
  | { readonly code: "FILE_ERROR"; readonly problem: FileProblem };

interface LogLook {
  readonly ok: true;
  readonly directory: LogDirectory;
  readonly outcome: Recovered;
}

export type LogInput =
  | FileAnswer
  | { readonly kind: "open" }
  /** Others have been let go first. */
  | { readonly kind: "turn" }
  /** Something was appended, or a deadline has come. */
  | { readonly kind: "tick" }
  /** Make all that has been appended so far durable, without waiting for more. */
  | { readonly kind: "flush"; readonly id: number }
  | { readonly kind: "compact"; readonly id: number; readonly safeLsn: number }
  /** Make all that is queued durable, then end. (WAL-19) */
  | { readonly kind: "close" };

/** Events the log reports to its owner. */
export type LogEvent =
  | { readonly kind: "opened"; readonly outcome: Recovered }
  | { readonly kind: "refused"; readonly refusal: LogRefusal }
  | { readonly kind: "segmentOpened"; readonly segmentId: number; readonly firstLsn: number }
  | {
      readonly kind: "compacted";
      readonly id: number;
      readonly segments: number | FileProblem;
      readonly safeLsn: number;
    }
  | Extract<
      WriterEffect,
      {
        kind:
          | "written"
          | "durable"
          | "rejected"
          | "flushed"
          | "stalled"
          | "resumed"
          | "failed"
          | "closed";
      }
    >;

type LogEffect = FileEffect | LogEvent;

export interface LogView extends WriterView {
  /** Entries waiting for space in the queue. */
  readonly waiting: number;
}

export class Log {
  readonly #options: LogOptions;
  readonly #tasks: FileTasks;
  readonly #segments: Segments;
  readonly #line = new EntryLine();
  #events: LogEvent[] = [];
  #writer: WalWriter | null = null;
  #lastTicket = 0;
  #creating = false;
  #closing = false;
  /** Flushes and the close, which wait for all entries in line before them. */
  #after: { readonly ticket: number; readonly input: WriterInput }[] = [];

  /** An owner with more work on files gives its own tasks, and passes on what they bring. */
  constructor(options: LogOptions, tasks = new FileTasks()) {
    this.#options = options;
    this.#tasks = tasks;
    this.#segments = new Segments(options.directory);
  }

  /** For a log used on its own. */
  step(input: LogInput, now: Millis): readonly LogEffect[] {
    const tasks = this.#tasks;
    tasks.now = now;
    this.take(input);
    tasks.settle();
    return [...tasks.takeEffects(), ...this.takeEvents()];
  }

  take(input: LogInput): void {
    switch (input.kind) {
      case "open":
        this.#tasks.run(this.#open(), (event) => this.#events.push(event));
        return;
      case "done":
        this.#tasks.done(input.id, input.result);
        return;
      case "turn":
        this.#tasks.turn();
        return;
      case "tick":
        this.#feed(input);
        return;
      case "flush":
        this.#behindLine(input);
        return;
      case "compact": {
        const { id, safeLsn } = input;
        this.#tasks.run(this.compact(safeLsn), (segments) => {
          this.#events.push({ kind: "compacted", id, segments, safeLsn });
        });
        return;
      }
      case "close":
        if (this.#closing) return;
        this.#closing = true;
        this.#behindLine(input);
        return;
      default:
        assertNever(input);
    }
  }

  takeEvents(): readonly LogEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }

  /** True: a piece of work waits for a turn. */
  get wantsTurn(): boolean {
    return this.#tasks.wantsTurn;
  }

  /** When a tick can change something that no finished operation will. */
  nextDeadline(): Millis | null {
    return this.#writer?.nextDeadline() ?? null;
  }

  /** Whether the queue is full and entries wait for space; producers should slow down. */
  get congested(): boolean {
    return this.#line.length > 0;
  }

  /** The largest payload that is taken. */
  get payloadBytesMax(): number {
    return this.#writer?.payloadBytesMax ?? 0;
  }

  view(): LogView {
    assert(this.#writer !== null, "an open log is looked at");
    return { ...this.#writer.snapshot(), waiting: this.#line.length };
  }

  /**
   * Takes an entry: its ticket (appends counted from 1), or why not. A tick must follow, at the latest at
   * the end of the caller's turn.
   */
  append(entry: WalEntry, now: Millis): number | AppendRefusal {
    const writer = this.#writer;
    if (writer === null || this.#closing) return "SHUTDOWN";
    const refusal = writer.refusalOf(entry);
    if (refusal !== null) return refusal;
    if (this.#line.length === 0) {
      const ticket = writer.append(entry, now);
      if (ticket !== "QUEUE_FULL") {
        if (typeof ticket === "number") this.#lastTicket = ticket;
        return ticket;
      }
    }
    if (!this.#line.hasRoom) return "QUEUE_FULL";
    this.#line.push(entry);
    return ++this.#lastTicket;
  }

  // Opening.

  *#open(): FileWork<LogEvent> {
    const look = yield* this.look();
    if (!look.ok) return { kind: "refused", refusal: look.refusal };
    const problem = yield* this.begin(look);
    if (problem === null) return { kind: "opened", outcome: look.outcome };
    return { kind: "refused", refusal: { code: "FILE_ERROR", problem } };
  }

  /** Reads everything and changes nothing. The index of every segment comes free with the scan. */
  *look(): FileWork<LogLook | { readonly ok: false; readonly refusal: LogRefusal }> {
    const { directory: path, config, identity, rules, checksum, allocate, onEntry } = this.#options;
    const listed = yield { kind: "list", directory: path };
    if (!listed.ok) return { ok: false, refusal: { code: "FILE_ERROR", problem: listed } };
    const directory = logDirectory(listed.files);
    if (directory.foreign.length > 0) {
      return { ok: false, refusal: { code: "FOREIGN_FILES", names: directory.foreign } };
    }
    let current = 0;
    const outcome = yield* scanSegments(path, directory.segments, {
      ...{ config, identity },
      ...(rules === undefined ? {} : { rules }),
      ...(checksum === undefined ? {} : { checksum }),
      ...(allocate === undefined ? {} : { allocate }),
      ...(onEntry === undefined ? {} : { onEntry }),
      onRecord: ({ lsn }, { segmentId, offset }) => {
        if (segmentId !== current) this.#segments.open(segmentId, lsn);
        current = segmentId;
        this.#segments.note(segmentId, lsn, offset);
      },
    });
    if ("refusal" in outcome) return { ok: false, refusal: outcome.refusal };
    if (!outcome.ok) return { ok: false, refusal: { code: "FILE_ERROR", problem: outcome } };
    // A crash may leave the header of a segment and nothing behind it.
    const last = outcome.segments.at(-1);
    if (last !== undefined && last.segmentId !== current) {
      this.#segments.open(last.segmentId, last.firstLsn);
    }
    return { ok: true, directory, outcome };
  }

  /** Repairs what was seen, and is ready to write. A new log makes its first segment now. */
  *begin({ directory, outcome }: LogLook): FileWork<FileProblem | null> {
    const { directory: path, config, identity, rules, checksum, allocate } = this.#options;
    const position = yield* repairLog(path, directory, outcome, config);
    if ("ok" in position) return position;
    for (const { segmentId, endOffset } of outcome.segments.slice(0, -1)) {
      // A failure here costs an index rebuild, never an entry.
      yield* this.#segments.refreshIndex(segmentId, endOffset, directory);
    }
    this.#segments.durableSegmentId = outcome.segments.at(-1)?.segmentId ?? 0;
    this.#writer = new WalWriter({
      ...{ config, identity, position },
      ...(rules === undefined ? {} : { rules }),
      ...(checksum === undefined ? {} : { checksum }),
      ...(allocate === undefined ? {} : { allocate }),
    });
    this.#feed({ kind: "tick" });
    yield { kind: "until", holds: () => !this.#creating };
    return null;
  }

  /** Deletes segments whose every entry is covered, oldest first; returns how many. (WAL-17) */
  compact(safeLsn: number): FileWork<number | FileProblem> {
    return this.#segments.compact(safeLsn);
  }

  // Writing.

  #feed(input: WriterInput): void {
    const writer = this.#writer;
    if (writer === null) return;
    this.#admit(writer);
    for (const effect of writer.step(input, this.#tasks.now)) this.#run(effect);
  }

  /** Admits as many entries as fit, then the inputs behind them. */
  #admit(writer: WalWriter): void {
    let entry = this.#line.peek();
    while (entry !== undefined) {
      const ticket = writer.append(entry, this.#tasks.now);
      if (ticket === "QUEUE_FULL" || ticket === "FAILED") break;
      assert(typeof ticket === "number", "what stands in line was found good");
      this.#line.shift();
      entry = this.#line.peek();
    }
    const [first] = this.#after;
    if (first === undefined || first.ticket > this.#lastTicket - this.#line.length) return;
    this.#after.shift();
    this.#feed(first.input);
  }

  #behindLine(input: WriterInput): void {
    this.#after.push({ ticket: this.#lastTicket, input });
    this.#feed({ kind: "tick" });
  }

  #run(effect: WriterEffect): void {
    const tasks = this.#tasks;
    const segments = this.#segments;
    switch (effect.kind) {
      case "createSegment":
        this.#creating = true;
        tasks.run(this.#create(effect.segmentId, effect.bytes), (problem) => {
          this.#creating = false;
          this.#finish("create", problem, { kind: "created", segmentId: effect.segmentId });
        });
        return;
      case "write": {
        const { segmentId, offset, chunks } = effect;
        const path = segments.path(segmentId);
        tasks.start({ kind: "write", path, offset, chunks }, (result) => {
          this.#finish("write", result, { kind: "written", bytes: result.ok ? result.bytes : 0 });
        });
        return;
      }
      case "sync":
        tasks.start({ kind: "sync", path: segments.path(effect.segmentId) }, (result) => {
          this.#finish("sync", result, { kind: "synced" });
        });
        return;
      case "truncate":
        tasks.run(this.#cut(effect.segmentId, effect.offset), (problem) => {
          this.#finish("truncate", problem, { kind: "truncated" });
        });
        return;
      case "sealed":
        tasks.start({ kind: "release", path: segments.path(effect.segmentId) }, () => {});
        tasks.run(segments.writeIndex(effect.segmentId, effect.endOffset), () => {});
        return;
      default:
        this.#tell(effect);
    }
  }

  #tell(
    effect: Exclude<
      WriterEffect,
      { kind: "createSegment" | "write" | "sync" | "truncate" | "sealed" }
    >,
  ): void {
    const segments = this.#segments;
    switch (effect.kind) {
      case "opened":
        segments.open(effect.segmentId, effect.firstLsn);
        this.#events.push({ ...effect, kind: "segmentOpened" });
        return;
      case "written":
        segments.note(effect.segmentId, effect.firstLsn, effect.offset);
        this.#events.push(effect);
        return;
      case "durable":
        segments.durableSegmentId = effect.segmentId;
        this.#events.push(effect);
        return;
      case "failed":
        this.#line.clear();
        this.#after = [];
        this.#tasks.abandon();
        this.#events.push(effect);
        return;
      case "closed":
        // Indexes of sealed segments may still be under way.
        this.#tasks.run(this.#idle(), () => this.#events.push(effect));
        return;
      default:
        this.#events.push(effect);
    }
  }

  *#idle(): FileWork<void> {
    yield { kind: "until", holds: () => this.#tasks.underWay === 0 };
  }

  /** The file and its name are on the medium, or it is not there: what is half-made is removed again. */
  *#create(segmentId: number, bytes: number): FileWork<FileProblem | null> {
    const path = this.#segments.path(segmentId);
    const problem = yield* inOrder([
      { kind: "create", path, bytes },
      { kind: "syncDirectory", directory: this.#options.directory },
    ]);
    if (problem !== null)
      yield* inOrder([
        { kind: "release", path },
        { kind: "remove", path },
      ]);
    return problem;
  }

  /** Zeroes everything from `offset` on; the size stays. Space may have to be allocated again. */
  #cut(segmentId: number, offset: number): FileWork<FileProblem | null> {
    const path = this.#segments.path(segmentId);
    return inOrder([
      { kind: "resize", path, bytes: offset },
      { kind: "resize", path, bytes: this.#options.config.segmentBytes },
      { kind: "sync", path },
    ]);
  }

  #finish(during: WriterOperation, result: FileResult | null, input: WriterInput): void {
    if (result === null || result.ok) this.#feed(input);
    else this.#feed({ kind: "failed", during, code: result.code, message: result.message });
  }
}
