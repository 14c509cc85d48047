/**
 * Finished jobs, kept beside the log after they have left memory: one append-only file per day, each
 * record with its length and checksum, old days deleted as a whole. (LEDG-8, VSR-31)
 *
 * A torn last record (the process died while writing it) is cut off: the job is in the log still, which
 * is only given up after the archive was synced. Anything else that does not fit is reported and left:
 * what comes after it goes to another file of the day.
 */

import { type Crc32, crc32 } from "../../base/crc32.ts";
import type { JobState } from "../job/job-state.ts";
import { decodeJobState } from "../job/state-codec.ts";
import { trailEntries } from "../job/trail.ts";
import {
  type FileEntry,
  type FileOperation,
  type FileProblem,
  type FileWork,
  inOrder,
  pathIn,
  readWhole,
  writeWhole,
} from "../log/files.ts";
import {
  ARCHIVE_HEADER,
  archiveDayOf,
  archiveName,
  dayText,
  decodeArchived,
  encodeArchived,
} from "./archive-record.ts";

/** Where a job's record is, and the times its events lie between. */
export interface ArchivePlace {
  readonly path: string;
  readonly offset: number;
  readonly bytes: number;
  readonly from: number;
  readonly to: number;
}

interface Waiting {
  readonly jobId: string;
  readonly record: Uint8Array;
  readonly state: JobState;
}

interface End {
  readonly day: string;
  readonly path: string;
  offset: number;
}

interface ArchiveOptions {
  readonly directory: string;
  readonly keepMs: number;
  readonly checksum?: Crc32;
  readonly onProblem: (file: string, problem: string) => void;
}

const PIECE_BYTES = 1_048_576;
/** Records decoded in one turn; the next ones wait for another turn. */
const SLICE_RECORDS = 256;

export class Archive {
  readonly #options: ArchiveOptions;
  readonly #checksum: Crc32;
  readonly #places = new Map<string, ArchivePlace>();
  /** Records that no file holds yet. */
  readonly #waiting: Waiting[] = [];
  /** Someone works on the files: a file is not released or removed under another's read or write. */
  #busy = false;
  /** Files with a header of ours, and where their last whole record ends. */
  readonly #ends = new Map<string, number>();
  /** Where the next record goes; null before the first of this process. */
  #end: End | null = null;

  constructor(options: ArchiveOptions) {
    this.#options = options;
    this.#checksum = options.checksum ?? crc32;
  }

  get size(): number {
    return this.#places.size + this.#waiting.length;
  }

  /** Every job whose record is on the medium. */
  get places(): ReadonlyMap<string, ArchivePlace> {
    return this.#places;
  }

  /** Jobs whose record is not on the medium yet. */
  get waiting(): readonly { readonly jobId: string; readonly state: JobState }[] {
    return this.#waiting;
  }

  /** Finds what is there. */
  *open(): FileWork<FileProblem | null> {
    const listed = yield { kind: "list", directory: this.#options.directory };
    if (!listed.ok) return listed;
    const files = listed.files
      .filter(({ name }) => archiveDayOf(name) !== null)
      .sort((a, b) => (a.name < b.name ? -1 : 1));
    for (const file of files) {
      const problem = yield* this.#scan(file);
      if (problem !== null) return problem;
    }
    if (files.length === 0) return null;
    // A process that died between making a file and this left a name that power would take.
    return yield* inOrder([{ kind: "syncDirectory", directory: this.#options.directory }]);
  }

  /** Written and synced by the next `flush`. */
  add(jobId: string, bytes: Uint8Array, wall: number): void {
    const decoded = decodeJobState(bytes);
    if (this.#places.has(jobId) || !decoded.ok) return;
    const record = encodeArchived(jobId, bytes, wall, this.#checksum);
    this.#waiting.push({ jobId, record, state: decoded.value });
  }

  /** A job as it was added; null: it is not here, or cannot be read, which is reported. */
  *read(jobId: string): FileWork<JobState | null> {
    return yield* this.#alone(this.#read(jobId));
  }

  *#read(jobId: string): FileWork<JobState | null> {
    const waiting = this.#waiting.find((one) => one.jobId === jobId);
    if (waiting !== undefined) return waiting.state;
    const place = this.#places.get(jobId);
    if (place === undefined) return null;
    const { path } = place;
    const bytes = new Uint8Array(place.bytes);
    const read = yield* readWhole(path, place.offset, bytes);
    yield { kind: "release", path };
    const record = typeof read === "number" ? decodeArchived(bytes, 0, this.#checksum) : null;
    if (record !== null && record !== "more") return record.state;
    const problem = typeof read === "number" ? "it does not fit its checksum" : read.message;
    this.#options.onProblem(path, `the record of ${jobId} cannot be read: ${problem}`);
    return null;
  }

  /**
   * Everything added before survives once this is done. What it could not write waits for the next one,
   * which may find space again and writes to the same place.
   */
  *flush(wall: number): FileWork<FileProblem | null> {
    return yield* this.#alone(this.#flush(wall));
  }

  *#flush(wall: number): FileWork<FileProblem | null> {
    const batch = [...this.#waiting];
    if (batch.length === 0) return null;
    const end = yield* this.#today(wall);
    if ("ok" in end) return end;
    let { offset } = end;
    for (const bytes of pieces(batch.map(({ record }) => record))) {
      const problem = yield* writeWhole(end.path, offset, bytes);
      if (problem !== null) return problem;
      offset += bytes.length;
    }
    const problem = yield* inOrder([{ kind: "sync", path: end.path }]);
    if (problem !== null) return problem;
    for (const { jobId, record, state } of batch) {
      this.#keep(jobId, { path: end.path, offset: end.offset, bytes: record.length }, state);
      end.offset += record.length;
    }
    this.#ends.set(end.path, end.offset);
    this.#waiting.splice(0, batch.length);
    return null;
  }

  /** Deletes days past their retention; returns their jobs. */
  *expire(wall: number): FileWork<readonly string[] | FileProblem> {
    return yield* this.#alone(this.#expire(wall));
  }

  *#expire(wall: number): FileWork<readonly string[] | FileProblem> {
    const { directory, keepMs } = this.#options;
    const oldest = dayText(wall - keepMs);
    const listed = yield { kind: "list", directory };
    if (!listed.ok) return listed;
    const gone = new Set<string>();
    for (const { name } of listed.files) {
      const day = archiveDayOf(name);
      const path = pathIn(directory, name);
      if (day === null || day >= oldest || path === this.#end?.path) continue;
      const removed = yield { kind: "remove", path };
      if (!removed.ok) return removed;
      this.#ends.delete(path);
      gone.add(path);
    }
    const forgotten: string[] = [];
    for (const [jobId, { path }] of this.#places) {
      if (!gone.has(path)) continue;
      this.#places.delete(jobId);
      forgotten.push(jobId);
    }
    return forgotten;
  }

  *#alone<Value>(work: FileWork<Value>): FileWork<Value> {
    yield { kind: "until", holds: () => !this.#busy };
    this.#busy = true;
    const value = yield* work;
    this.#busy = false;
    return value;
  }

  /** Today's file, with its header and its name on the medium. */
  *#today(wall: number): FileWork<End | FileProblem> {
    const { directory } = this.#options;
    const day = dayText(wall);
    if (this.#end?.day === day) return this.#end;
    const listed = yield { kind: "list", directory };
    if (!listed.ok) return listed;
    if (this.#end !== null) yield { kind: "release", path: this.#end.path };
    this.#end = null;
    const sizes = new Map(listed.files.map(({ name, bytes }) => [pathIn(directory, name), bytes]));
    for (let number = 1; ; number++) {
      const path = pathIn(directory, archiveName(day, number));
      const known = this.#ends.get(path);
      // Another version's, or damaged: nothing that is written there would be found again.
      if (known === undefined && (sizes.get(path) ?? 0) > ARCHIVE_HEADER.length) continue;
      const problem = known === undefined ? yield* this.#begin(path) : null;
      if (problem !== null) return problem;
      this.#end = { day, path, offset: known ?? ARCHIVE_HEADER.length };
      this.#ends.set(path, this.#end.offset);
      return this.#end;
    }
  }

  *#begin(path: string): FileWork<FileProblem | null> {
    const { directory } = this.#options;
    const created = yield* inOrder([{ kind: "create", path, bytes: 0 }]);
    if (created !== null) return created;
    return (
      (yield* writeWhole(path, 0, ARCHIVE_HEADER)) ??
      (yield* inOrder([
        { kind: "sync", path },
        { kind: "syncDirectory", directory },
      ]))
    );
  }

  *#scan({ name, bytes }: FileEntry): FileWork<FileProblem | null> {
    const path = pathIn(this.#options.directory, name);
    const end = yield* this.#records(path, name, bytes);
    const release = { kind: "release", path } as const;
    if (typeof end !== "number") {
      yield release;
      return end;
    }
    const cut: FileOperation[] = [];
    if (end > 0) this.#ends.set(path, end);
    if (end > 0 && end < bytes) {
      this.#options.onProblem(name, `${bytes - end} bytes at ${end} are no whole record`);
      cut.push({ kind: "resize", path, bytes: end });
    }
    // Recovered bytes may be only in the page cache of a killed process; sync before relying on them.
    if (end > 0) cut.push({ kind: "sync", path });
    return yield* inOrder([...cut, release]);
  }

  /** Where the last whole record ends; 0: the file is none of ours. */
  *#records(path: string, name: string, fileBytes: number): FileWork<number | FileProblem> {
    const header = new Uint8Array(ARCHIVE_HEADER.length);
    const read = yield* readWhole(path, 0, header);
    if (typeof read !== "number") return read;
    if (read < header.length) return 0;
    if (!ARCHIVE_HEADER.every((byte, at) => header[at] === byte)) {
      this.#options.onProblem(name, "not an archive of this version; it is left as it is");
      return 0;
    }
    let window: Uint8Array = new Uint8Array(0);
    let start = header.length;
    let at = start;
    for (let count = 1; ; count++) {
      const record = decodeArchived(window, at - start, this.#checksum);
      if (record === null) return at;
      if (record === "more") {
        // A record that does not fit a window which begins with it needs a larger one.
        const size = at === start ? Math.max(PIECE_BYTES, 2 * window.length) : PIECE_BYTES;
        if (start + window.length >= fileBytes) return at;
        window = new Uint8Array(Math.min(size, fileBytes - at));
        start = at;
        const got = yield* readWhole(path, at, window);
        if (typeof got !== "number") return got;
        if (got < window.length) return at;
        continue;
      }
      this.#keep(record.jobId, { path, offset: at, bytes: record.bytes }, record.state);
      at += record.bytes;
      if (count % SLICE_RECORDS === 0) yield { kind: "turn" };
    }
  }

  #keep(
    jobId: string,
    place: { readonly path: string; readonly offset: number; readonly bytes: number },
    state: JobState,
  ): void {
    const times = [...trailEntries(state.trail)].map(({ hlc }) => hlc.wallMs);
    const from = times.reduce((a, b) => Math.min(a, b), Number.POSITIVE_INFINITY);
    const to = times.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);
    this.#places.set(jobId, { ...place, from, to });
  }
}

/** Few writes for many records: as many together as fit a piece, at least one. */
function* pieces(records: readonly Uint8Array[]): Generator<Uint8Array> {
  for (let from = 0; from < records.length; ) {
    let [to, bytes] = [from, 0];
    do bytes += records[to++]?.length ?? 0;
    while (to < records.length && bytes + (records[to]?.length ?? 0) <= PIECE_BYTES);
    const piece = new Uint8Array(bytes);
    let at = 0;
    for (; from < to; from++) {
      const record = records[from];
      if (record !== undefined) piece.set(record, at);
      at += record?.length ?? 0;
    }
    yield piece;
  }
}
