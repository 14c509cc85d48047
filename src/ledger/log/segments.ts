/** The segments of an open log, what of them is durable, and where things are in them. */

import { readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { assert } from "../../core/base/assert.ts";
import { decodeSparseIndex, indexName, SparseIndex } from "../../core/ledger/log/sparse-index.ts";
import { segmentPath, syncDirectory } from "./directory.ts";

export interface SegmentInfo {
  readonly segmentId: number;
  readonly path: string;
  readonly firstLsn: number;
  readonly index: SparseIndex;
}

/** All bytes before this place are durable. */
interface DurableBound {
  readonly segmentId: number;
  readonly offset: number;
  readonly lsn: number;
}

export class Segments {
  readonly directory: string;
  readonly #list: SegmentInfo[] = [];
  #bound: DurableBound = { segmentId: 0, offset: 0, lsn: 0 };
  #compacting: Promise<unknown> = Promise.resolve();

  constructor(directory: string) {
    this.directory = directory;
  }

  open(segmentId: number, firstLsn: number): void {
    const path = segmentPath(this.directory, segmentId);
    this.#list.push({ segmentId, path, firstLsn, index: new SparseIndex(segmentId, firstLsn) });
  }

  note(segmentId: number, lsn: number, offset: number): void {
    const info = this.#list.at(-1);
    assert(info?.segmentId === segmentId, "records are noted in the last segment");
    info.index.note(lsn, offset);
  }

  advance(bound: DurableBound): void {
    this.#bound = bound;
  }

  /** Writes the index of a sealed segment again when its file is missing, stale or damaged. (SR-7) */
  async refreshIndex(segmentId: number, endOffset: number): Promise<void> {
    const info = this.#list.find((candidate) => candidate.segmentId === segmentId);
    const stored = await readIndex(this.directory, segmentId);
    if (stored?.firstLsn === info?.firstLsn && stored?.coveredBytes === endOffset) return;
    await this.writeIndex(segmentId, endOffset);
  }

  /** Nobody depends on the file: it is checked when read and made again when it is missing. */
  async writeIndex(segmentId: number, endOffset: number): Promise<void> {
    const info = this.#list.find((candidate) => candidate.segmentId === segmentId);
    if (info === undefined) return;
    info.index.coveredBytes = endOffset;
    const path = join(this.directory, indexName(segmentId));
    await writeFile(`${path}.tmp`, info.index.encode(), { mode: 0o600 });
    await rename(`${path}.tmp`, path);
  }

  /** One at a time: two would both see the same oldest segment. */
  compact(safeLsn: number): Promise<number> {
    const turn = this.#compacting.then(() => this.#compact(safeLsn));
    this.#compacting = turn.catch(() => {});
    return turn;
  }

  async #compact(safeLsn: number): Promise<number> {
    let removed = 0;
    for (;;) {
      const [oldest, next] = this.#list;
      // The one after it says where the oldest ends; without one it is the active segment.
      if (oldest === undefined || next === undefined || next.firstLsn - 1 > safeLsn) return removed;
      if (next.segmentId > this.#bound.segmentId) return removed;
      this.#list.shift();
      await rm(oldest.path, { force: true });
      await syncDirectory(this.directory);
      await rm(join(this.directory, indexName(oldest.segmentId)), { force: true });
      removed++;
    }
  }
}

/** Null: there is no intact index of this segment. */
export async function readIndex(directory: string, segmentId: number): Promise<SparseIndex | null> {
  try {
    const index = decodeSparseIndex(await readFile(join(directory, indexName(segmentId))));
    return index?.segmentId === segmentId ? index : null;
  } catch {
    return null;
  }
}
