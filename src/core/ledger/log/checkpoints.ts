/**
 * Checkpoint files beside the log. A checkpoint is complete or absent: written under another name, synced, renamed, and
 * the directory synced. (CKPT-2) The one with the highest coverage counts; a damaged one is skipped with a warning.
 * (CKPT-5) The newest few are kept, and the log behind the oldest of them, so that recovery can continue from every
 * kept one. (CKPT-4)
 */

import { assert } from "../../base/assert.ts";
import type { Crc32 } from "../../base/crc32.ts";
import {
  CHECKPOINT_HEADER_BYTES,
  type CheckpointHeader,
  type CheckpointSlice,
  checkpointName,
  encodeCheckpointHeader,
  encodeSlice,
  readCheckpoint,
  readCoveredLsn,
} from "./checkpoint.ts";
import {
  type FileEntry,
  type FileOperation,
  type FileProblem,
  type FileWork,
  inOrder,
  pathIn,
  writeWhole,
} from "./files.ts";
import { ANY_IDENTITY } from "./segment.ts";

interface CheckpointsOptions {
  readonly directory: string;
  readonly identity: string;
  readonly keptMax: number;
  readonly checksum?: Crc32;
  readonly onDamaged: (name: string, problem: string) => void;
}

/** The checkpoint being written. */
interface Draft {
  readonly id: string;
  readonly localLsn: number;
  throughLsn: number;
  slices: number;
  bytes: number;
}

export class Checkpoints {
  readonly #options: CheckpointsOptions;
  readonly #checksum: { readonly checksum?: Crc32 };
  /** Intact, newest first. */
  #kept: CheckpointHeader[] = [];
  #draft: Draft | null = null;

  constructor(options: CheckpointsOptions) {
    this.#options = options;
    this.#checksum = options.checksum === undefined ? {} : { checksum: options.checksum };
  }

  /** Newest first. */
  get kept(): readonly CheckpointHeader[] {
    return this.#kept;
  }

  /** How much of the log may go; 0 before there is a checkpoint. */
  get safeLsn(): number {
    return this.#kept.at(-1)?.localLsn ?? 0;
  }

  /**
   * Reads every checkpoint, newest first, without changes. Calls `restore` for a consumer of each one's slices until
   * one is intact, whose slices count. Null: none is intact.
   */
  *look(
    files: readonly FileEntry[],
    restore: () => (slice: CheckpointSlice) => void,
  ): FileWork<CheckpointHeader | null> {
    const found: { readonly file: FileEntry; readonly lsn: number }[] = [];
    for (const file of files) {
      found.push({ file, lsn: yield* readCoveredLsn(this.#path(file.name)) });
    }
    found.sort((a, b) => b.lsn - a.lsn);
    for (const { file } of found) {
      const onSlice = this.#kept.length === 0 ? restore() : () => {};
      const header = yield* this.#read(file, onSlice);
      if (header !== null) this.#kept.push(header);
    }
    return this.#kept[0] ?? null;
  }

  *#read(
    { name, bytes }: FileEntry,
    onSlice: (slice: CheckpointSlice) => void,
  ): FileWork<CheckpointHeader | null> {
    const { identity, onDamaged } = this.#options;
    const read = { ...this.#checksum, onSlice };
    const header = yield* readCheckpoint(this.#path(name), bytes, read);
    if (typeof header === "string") {
      onDamaged(name, header);
      return null;
    }
    if ([header.identity, ANY_IDENTITY].includes(identity)) return header;
    onDamaged(name, `belongs to another cluster or node (${header.identity})`);
    return null;
  }

  #path(name: string): string {
    return pathIn(this.#options.directory, name);
  }

  /** Begins a file for a snapshot whose first slice is taken at this LSN. */
  *begin(localLsn: number): FileWork<FileProblem | null> {
    assert(localLsn > (this.#kept[0]?.localLsn ?? 0), "checkpoints go forwards");
    // An LSN is given once, so it names its checkpoint.
    const id = localLsn.toString(16).padStart(32, "0");
    this.#draft = { id, localLsn, throughLsn: localLsn, slices: 0, bytes: 0 };
    return yield* inOrder([{ kind: "create", path: this.#aside(id), bytes: 0 }]);
  }

  *add(slice: CheckpointSlice): FileWork<FileProblem | null> {
    const draft = this.#draft;
    assert(draft !== null && slice.lsn >= draft.throughLsn, "slices come in order");
    const bytes = encodeSlice(slice, this.#options.checksum);
    const at = CHECKPOINT_HEADER_BYTES + draft.bytes;
    const problem = yield* writeWhole(this.#aside(draft.id), at, bytes);
    draft.throughLsn = slice.lsn;
    draft.slices++;
    draft.bytes += bytes.length;
    return problem;
  }

  /** Makes the checkpoint durable, then removes older ones beyond those kept. */
  *commit(createdAt: number): FileWork<CheckpointHeader | FileProblem> {
    const draft = this.#draft;
    assert(draft !== null && draft.slices > 0, "a checkpoint has slices");
    const { directory, identity, keptMax } = this.#options;
    const header = { ...draft, identity, createdAt };
    const [aside, path] = [this.#aside(draft.id), this.#path(checkpointName(draft.id))];
    const problem =
      (yield* writeWhole(aside, 0, encodeCheckpointHeader(header))) ??
      (yield* inOrder([
        { kind: "sync", path: aside },
        { kind: "release", path: aside },
        { kind: "rename", from: aside, to: path },
        { kind: "syncDirectory", directory },
      ]));
    if (problem !== null) return problem;
    this.#draft = null;
    this.#kept.unshift(header);
    const removals: FileOperation[] = this.#kept.splice(keptMax).map(({ id }) => {
      return { kind: "remove", path: this.#path(checkpointName(id)) };
    });
    if (removals.length > 0) removals.push({ kind: "syncDirectory", directory });
    return (yield* inOrder(removals)) ?? header;
  }

  /** Removes an unfinished checkpoint; if even that fails, the next start removes it. */
  *abandon(): FileWork<void> {
    const draft = this.#draft;
    this.#draft = null;
    if (draft === null) return;
    const path = this.#aside(draft.id);
    yield* inOrder([
      { kind: "release", path },
      { kind: "remove", path },
    ]);
  }

  #aside(id: string): string {
    return `${this.#path(checkpointName(id))}.tmp`;
  }
}
