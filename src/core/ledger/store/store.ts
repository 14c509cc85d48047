/**
 * Durable store of a ledger node and its recovery, as one state machine over file operations:
 *
 *     wal/       segments and checkpoints          archive/    finished jobs
 *
 *     open ──► newest intact checkpoint ──► every record after it ──► opened
 *     append ──► log ──► durable(count)
 *     due ──► slice, mark, slice, mark … ──► archive synced ──► checkpoint in place ──► log compacted
 *
 * A slice of a checkpoint is taken when the log has every record of the node, and a mark is appended behind them in the
 * same step: the mark's LSN is the slice's position. (CKPT-1) The slice is written once its mark is durable; meanwhile
 * the node keeps running.
 *
 * A full disk only makes a checkpoint fail: the log grows, and the next checkpoint is tried when it is due. Any other
 * file error stops the store, because the content of the disk is unknown then. (WAL-14)
 */

import { assert, assertNever } from "../../base/assert.ts";
import { type Millis, millis } from "../../base/brand.ts";
import { type CheckpointHeader, checkpointDue } from "../log/checkpoint.ts";
import { Checkpoints } from "../log/checkpoints.ts";
import { logDirectory } from "../log/directory.ts";
import { FileTasks } from "../log/file-tasks.ts";
import { type FileProblem, type FileWork, isFullDisk } from "../log/files.ts";
import { Log, type LogEvent, type LogView } from "../log/log.ts";
import type { WalRecord } from "../log/record.ts";
import { RECORD_TYPES } from "../log/record-types.ts";
import type { RecordPlace, Recovered } from "../log/recovery.ts";
import type { AppendRefusal, WalEntry } from "../log/writer-types.ts";
import { LedgerRecovery } from "../node/recovery.ts";
import { Archive } from "./archive.ts";
import { STORE_RULES, type StoreRules } from "./rules.ts";
import type {
  StoreEffect,
  StoreEvent,
  StoreInput,
  StoreOptions,
  StoreRefusal,
  StoreSource,
} from "./types.ts";

const LOG_DIRECTORY = "wal";
const ARCHIVE_DIRECTORY = "archive";
const NOTHING = new Uint8Array(0);
/** The store is closing. */
const GIVEN_UP: FileProblem = { ok: false, code: "ECANCELED", message: "the store is closing" };

/** A mark on its way to the disk. */
interface Mark {
  readonly ticket: number;
  lsn: number | null;
}

export class LedgerStore {
  readonly #options: StoreOptions;
  readonly #rules: StoreRules;
  readonly #tasks = new FileTasks();
  readonly #log: Log;
  readonly #checkpoints: Checkpoints;
  readonly archive: Archive;
  #recovery = new LedgerRecovery();
  #fromLsn = 0;
  #events: StoreEvent[] = [];
  #source: StoreSource | null = null;
  #wall = 0;
  /** The clock of the last record, for the marks. */
  #stamp: { readonly wall: number; readonly logical: number } = { wall: 0, logical: 0 };
  #appended = 0;
  /** Marks that are not durable, and how many are. */
  #marks: Mark[] = [];
  #marksDurable = 0;
  #durableTicket = 0;
  #checkpointing = false;
  #checkpointedAt = 0;
  #checkpointedAppends = 0;
  #closing = false;
  #ended = false;

  constructor(options: StoreOptions) {
    this.#options = options;
    this.#rules = options.rules ?? STORE_RULES;
    const { identity, log: config, checksum, allocate, logRules: rules } = options;
    const common = checksum === undefined ? {} : { checksum };
    this.#log = new Log(
      {
        ...{ directory: LOG_DIRECTORY, config, identity },
        ...common,
        ...(rules === undefined ? {} : { rules }),
        ...(allocate === undefined ? {} : { allocate }),
        onEntry: (record, place) => this.#replay(record, place),
      },
      this.#tasks,
    );
    this.#checkpoints = new Checkpoints({
      ...{ directory: LOG_DIRECTORY, identity, keptMax: options.checkpoint.keptMax },
      ...common,
      onDamaged: (file, problem) =>
        this.#tell({ kind: "damaged", what: "checkpoint", file, problem }),
    });
    this.archive = new Archive({
      ...{ directory: ARCHIVE_DIRECTORY, keepMs: options.archiveKeepMs },
      ...common,
      onProblem: (file, problem) => this.#tell({ kind: "damaged", what: "archive", file, problem }),
    });
  }

  step(input: StoreInput, now: Millis, wall: number): readonly StoreEffect[] {
    this.#tasks.now = now;
    this.#wall = wall;
    this.#take(input);
    this.#onLog();
    this.#tasks.settle();
    this.#onLog();
    if (!this.#ended) this.#checkpointIfDue();
    const events = this.#events;
    this.#events = [];
    return [...this.#tasks.takeEffects(), ...events];
  }

  /** True: a piece of work waits for a turn. */
  get wantsTurn(): boolean {
    return this.#tasks.wantsTurn;
  }

  nextDeadline(): Millis | null {
    const log = this.#log.nextDeadline() ?? Number.POSITIVE_INFINITY;
    const due = this.#checkpointAt ?? Number.POSITIVE_INFINITY;
    const at = Math.min(log, due);
    return at === Number.POSITIVE_INFINITY ? null : millis(at);
  }

  /** When the next checkpoint is due by its age; null: none is needed, or one is being made. */
  get #checkpointAt(): number | null {
    const { intervalMs } = this.#options.checkpoint;
    if (this.#checkpointing || this.#closing || this.#ended) return null;
    const isNeeded = this.#source !== null && this.#source.appends > this.#checkpointedAppends;
    return isNeeded ? this.#checkpointedAt + intervalMs : null;
  }

  /** Whether the log's queue is full and records wait for space. */
  get congested(): boolean {
    return this.#log.congested;
  }

  view(): LogView {
    return this.#log.view();
  }

  /** Newest first. */
  get checkpoints(): readonly CheckpointHeader[] {
    return this.#checkpoints.kept;
  }

  /** From now on the state of this node is kept. Intervals count from here. (CKPT-9) */
  serve(source: StoreSource, now: Millis): void {
    this.#source = source;
    this.#checkpointedAt = now;
    this.#checkpointedAppends = source.appends;
  }

  /** The next record of the node, behind all before it. A tick must follow before the turn ends. */
  append(entry: WalEntry, now: Millis): number | AppendRefusal {
    const ticket = this.#log.append(entry, now);
    if (typeof ticket === "number") this.#appended++;
    this.#stamp = entry;
    return ticket;
  }

  #take(input: StoreInput): void {
    switch (input.kind) {
      case "open":
        this.#tasks.run(this.#open(), (refusal) => {
          if (refusal !== null) this.#tell({ kind: "refused", refusal });
        });
        return;
      case "done":
      case "turn":
      case "tick":
      case "flush":
        this.#log.take(input);
        return;
      case "checkpoint": {
        const { id } = input;
        this.#tasks.run(this.#nextCheckpoint(), () => this.#tell({ kind: "checkpointEnded", id }));
        return;
      }
      case "readArchive": {
        const { jobId } = input;
        this.#tasks.run(this.archive.read(jobId), (state) => {
          this.#tell({ kind: "archivedState", jobId, state });
        });
        return;
      }
      case "close":
        this.#tasks.run(this.#close(), () => {});
        return;
      default:
        assertNever(input);
    }
  }

  #tell(event: StoreEvent): void {
    this.#events.push(event);
  }

  // Opening.

  *#open(): FileWork<StoreRefusal | null> {
    const listed = yield { kind: "list", directory: LOG_DIRECTORY };
    if (!listed.ok) return { code: "FILE_ERROR", problem: listed };
    const files = logDirectory(listed.files).checkpoints;
    const checkpoint = yield* this.#checkpoints.look(files, () => {
      const recovery = new LedgerRecovery();
      this.#recovery = recovery;
      return ({ lsn, payload }) => recovery.restore(lsn, payload);
    });
    if (checkpoint === null) this.#recovery = new LedgerRecovery();
    this.#fromLsn = checkpoint?.localLsn ?? 0;
    const look = yield* this.#log.look();
    if (!look.ok) return look.refusal;
    const { problem } = this.#recovery;
    if (problem !== null) return { code: "UNREADABLE", problem };
    const gap = gapOf(look.outcome, checkpoint);
    if (gap !== null) return gap;
    // Nothing is wrong: from here on things are changed.
    const failed = (yield* this.#log.begin(look)) ?? (yield* this.archive.open());
    if (failed !== null) return { code: "FILE_ERROR", problem: failed };
    const { identities, archived, applied: replayed } = this.#recovery;
    for (const jobId of this.archive.places.keys()) archived.add(jobId);
    const state = { images: this.#recovery.images(), archived, identities };
    this.#recovery = new LedgerRecovery();
    this.#tell({ kind: "opened", outcome: look.outcome, checkpoint, state, replayed });
    return null;
  }

  #replay(record: WalRecord, place: RecordPlace): void {
    this.#options.onEntry?.(record, place);
    const { lsn, type, payload } = record;
    if (lsn > this.#fromLsn) this.#recovery.apply(lsn, type, payload);
  }

  // The log.

  #onLog(): void {
    for (const event of this.#log.takeEvents()) this.#onLogEvent(event);
  }

  #onLogEvent(event: LogEvent): void {
    switch (event.kind) {
      case "written": {
        const { firstTicket, count, firstLsn } = event;
        for (const mark of this.#marks) {
          const at = mark.ticket - firstTicket;
          if (at >= 0 && at < count) mark.lsn = firstLsn + at;
        }
        this.#tell(event);
        return;
      }
      case "durable": {
        const { ticket } = event;
        this.#durableTicket = ticket;
        while ((this.#marks[0]?.ticket ?? Number.POSITIVE_INFINITY) <= ticket) {
          this.#marks.shift();
          this.#marksDurable++;
        }
        this.#tell({ ...event, count: ticket - this.#marksDurable });
        return;
      }
      case "failed":
        this.#ended = true;
        this.#tell(event);
        return;
      case "closed":
        this.#ended = true;
        this.#tell(event);
        return;
      case "segmentOpened":
      case "flushed":
      case "stalled":
      case "resumed":
        this.#tell(event);
        return;
      case "rejected":
        assert(false, "a log that waits for space rejects nothing");
        return;
      case "opened":
      case "refused":
      case "compacted":
        assert(false, "the store opens and compacts its log itself");
        return;
      default:
        assertNever(event);
    }
  }

  #fail(during: string, { code, message }: FileProblem): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#tasks.abandon();
    this.#tell({ kind: "failed", during, code, message });
  }

  // Checkpoints.

  #checkpointIfDue(): void {
    const source = this.#source;
    if (source === null || this.#checkpointing || this.#closing) return;
    const { checkpoint } = this.#options;
    const entries = source.appends - this.#checkpointedAppends;
    const ms = this.#tasks.now - this.#checkpointedAt;
    if (!checkpointDue({ entries, ms }, checkpoint)) return;
    this.#tasks.run(this.#nextCheckpoint(), () => {});
  }

  /** One at a time. */
  *#nextCheckpoint(): FileWork<void> {
    yield { kind: "until", holds: () => !this.#checkpointing };
    const source = this.#source;
    if (source === null || this.#closing) return;
    this.#checkpointing = true;
    this.#checkpointedAt = this.#tasks.now;
    this.#checkpointedAppends = source.appends;
    const problem = yield* this.#checkpoint(source);
    if (problem !== null) {
      yield* this.#checkpoints.abandon();
      if (isFullDisk(problem)) this.#tell({ kind: "checkpointFailed", problem });
      else if (problem !== GIVEN_UP) this.#fail("a checkpoint", problem);
    }
    this.#checkpointing = false;
  }

  *#checkpoint(source: StoreSource): FileWork<FileProblem | null> {
    const slices = source.slices();
    for (let count = 0; ; count++) {
      const payload = yield* this.#slice(source, slices);
      if (this.#closing) return GIVEN_UP;
      if (payload === null) break;
      const lsn = yield* this.#mark();
      if (count === 0) this.#tell({ kind: "checkpointBegun", localLsn: lsn });
      const begun = count === 0 ? yield* this.#checkpoints.begin(lsn) : null;
      const problem = begun ?? (yield* this.#checkpoints.add({ lsn, payload }));
      if (problem !== null) return problem;
    }
    if (this.#rules.archiveBeforeCheckpoint) {
      const problem = yield* this.archive.flush(this.#wall);
      if (problem !== null) return problem;
    }
    const header = yield* this.#checkpoints.commit(Math.floor(this.#wall));
    if ("ok" in header) return header;
    this.#tell({ kind: "checkpointCreated", header });
    return yield* this.#giveUpOld();
  }

  /** The next slice, taken when every record of the node is in the log; null: there is none. */
  *#slice(source: StoreSource, slices: Iterator<Uint8Array, void>): FileWork<Uint8Array | null> {
    yield { kind: "turn" };
    const isInLog = (): boolean => source.appends === this.#appended && !this.#log.congested;
    yield { kind: "until", holds: () => isInLog() || this.#closing };
    if (this.#closing) return null;
    const next = slices.next();
    return next.done === true ? null : next.value;
  }

  /** Appends a mark behind all records of the node so far; returns its LSN once they are durable. */
  *#mark(): FileWork<number> {
    const { wall, logical } = this.#stamp;
    const entry = { type: RECORD_TYPES.CHECKPOINT_MARK, payload: NOTHING, wall, logical };
    const ticket = this.#log.append(entry, this.#tasks.now);
    assert(typeof ticket === "number", "a log that is open and not congested takes a mark");
    const mark: Mark = { ticket, lsn: null };
    this.#marks.push(mark);
    this.#tell({ kind: "marked", ticket });
    this.#log.take({ kind: "tick" });
    const isSafe = (): boolean => this.#durableTicket >= ticket;
    const isWritten = (): boolean => mark.lsn !== null;
    yield { kind: "until", holds: this.#rules.checkpointAfterRecords ? isSafe : isWritten };
    assert(mark.lsn !== null, "what is durable has its number");
    return mark.lsn;
  }

  /** Removes what the current checkpoints make obsolete: the log below them, and expired jobs. */
  *#giveUpOld(): FileWork<FileProblem | null> {
    const { kept, safeLsn: oldest } = this.#checkpoints;
    const safeLsn = this.#rules.logKeptForOldest ? oldest : (kept[0]?.throughLsn ?? 0);
    const segments = yield* this.#log.compact(safeLsn);
    if (typeof segments !== "number") return segments;
    if (segments > 0) this.#tell({ kind: "compacted", segments, safeLsn });
    const jobIds = yield* this.archive.expire(this.#wall);
    if ("ok" in jobIds) return jobIds;
    if (jobIds.length > 0) this.#tell({ kind: "forgotten", jobIds });
    return null;
  }

  /** A checkpoint under way is given up: its node may never hand out what it waits for. */
  *#close(): FileWork<void> {
    this.#closing = true;
    yield { kind: "until", holds: () => !this.#checkpointing };
    this.#log.take({ kind: "close" });
  }
}

/** The log must reach back to the checkpoint that recovery starts from, and as far as its last slice. */
function gapOf(
  { firstLsn, maxLsn, records }: Recovered,
  checkpoint: CheckpointHeader | null,
): StoreRefusal | null {
  const { localLsn, throughLsn } = checkpoint ?? { localLsn: 0, throughLsn: 0 };
  if (records === 0 && checkpoint === null) return null;
  if (firstLsn <= localLsn + 1 && maxLsn >= throughLsn) return null;
  return { code: "LOG_GAP", firstLsn, maxLsn, localLsn, throughLsn };
}
