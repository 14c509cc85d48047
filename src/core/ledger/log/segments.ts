/** The segments of an open log and where things are in them: their indexes, and which of them may go. */

import { assert } from "../../base/assert.ts";
import type { LogDirectory } from "./directory.ts";
import {
  type FileProblem,
  type FileWork,
  inOrder,
  pathIn,
  readWhole,
  writeWhole,
} from "./files.ts";
import { segmentName } from "./segment.ts";
import { decodeSparseIndex, indexName, SparseIndex } from "./sparse-index.ts";

interface SegmentInfo {
  readonly segmentId: number;
  readonly firstLsn: number;
  readonly index: SparseIndex;
}

export class Segments {
  readonly #directory: string;
  readonly #list: SegmentInfo[] = [];
  /** Everything before this segment is durable. */
  durableSegmentId = 0;
  #compacting = false;

  constructor(directory: string) {
    this.#directory = directory;
  }

  path(segmentId: number): string {
    return pathIn(this.#directory, segmentName(segmentId));
  }

  open(segmentId: number, firstLsn: number): void {
    this.#list.push({ segmentId, firstLsn, index: new SparseIndex(segmentId, firstLsn) });
  }

  note(segmentId: number, lsn: number, offset: number): void {
    const info = this.#list.at(-1);
    assert(info?.segmentId === segmentId, "records are noted in the last segment");
    info.index.note(lsn, offset);
  }

  /** Writes the index of a sealed segment again when its file is missing, stale or damaged. (SR-7) */
  *refreshIndex(
    segmentId: number,
    endOffset: number,
    { indexes }: LogDirectory,
  ): FileWork<FileProblem | null> {
    const info = this.#find(segmentId);
    const file = indexes.find(({ name }) => name === indexName(segmentId));
    if (info !== undefined && file !== undefined) {
      const bytes = new Uint8Array(file.bytes);
      const path = pathIn(this.#directory, file.name);
      const read = yield* readWhole(path, 0, bytes);
      yield { kind: "release", path };
      const stored = read === bytes.length ? decodeSparseIndex(bytes) : null;
      const same = stored?.segmentId === segmentId && stored.firstLsn === info.firstLsn;
      if (same && stored.coveredBytes === endOffset) return null;
    }
    return yield* this.writeIndex(segmentId, endOffset);
  }

  /** Writes the index of a segment. The file is optional: it is verified when read and rebuilt when missing. */
  *writeIndex(segmentId: number, endOffset: number): FileWork<FileProblem | null> {
    const info = this.#find(segmentId);
    if (info === undefined) return null;
    info.index.coveredBytes = endOffset;
    const path = pathIn(this.#directory, indexName(segmentId));
    const aside = `${path}.tmp`;
    const made = yield { kind: "create", path: aside, bytes: 0 };
    if (!made.ok) return made;
    const problem = yield* writeWhole(aside, 0, info.index.encode());
    if (problem !== null) return problem;
    return yield* inOrder([
      { kind: "release", path: aside },
      { kind: "rename", from: aside, to: path },
    ]);
  }

  /**
   * Deletes segments whose every entry is covered, oldest first, the directory synced after each; returns how many.
   * Never the active one: the next segment's header marks where a segment ends. (WAL-17)
   */
  *compact(safeLsn: number): FileWork<number | FileProblem> {
    // One at a time: two would not remove the oldest first.
    yield { kind: "until", holds: () => !this.#compacting };
    this.#compacting = true;
    const removed = yield* this.#compact(safeLsn);
    this.#compacting = false;
    return removed;
  }

  *#compact(safeLsn: number): FileWork<number | FileProblem> {
    for (let removed = 0; ; removed++) {
      const [oldest, next] = this.#list;
      if (oldest === undefined || next === undefined || next.firstLsn - 1 > safeLsn) return removed;
      if (next.segmentId > this.durableSegmentId) return removed;
      this.#list.shift();
      const problem = yield* inOrder([
        { kind: "remove", path: this.path(oldest.segmentId) },
        { kind: "syncDirectory", directory: this.#directory },
        { kind: "remove", path: pathIn(this.#directory, indexName(oldest.segmentId)) },
      ]);
      if (problem !== null) return problem;
    }
  }

  #find(segmentId: number): SegmentInfo | undefined {
    return this.#list.find((candidate) => candidate.segmentId === segmentId);
  }
}
