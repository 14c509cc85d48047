/**
 * The port between a log and a disk: the few file operations. The machines of this module decide which ones are done
 * and in which order; production executes them with system calls, the simulator on a disk that tears, loses and runs
 * full.
 *
 *     machine ──► { id, operation } ──► disk ──► done(id, result) ──► machine
 *
 * Operations started without waiting may be carried out in any order and concurrently; where order matters, the machine
 * waits for the previous result. Paths are relative to the directory the disk was given.
 */

export type FileOperation =
  /** All names of a directory, with the sizes of files. */
  | { readonly kind: "list"; readonly directory: string }
  /** Fills `into` from `offset` on. Fewer bytes than fit: the file ends there. */
  | {
      readonly kind: "read";
      readonly path: string;
      readonly offset: number;
      readonly into: Uint8Array;
    }
  /** A new file of zeros, its bytes and size on the medium; its name is so after `syncDirectory`. */
  | { readonly kind: "create"; readonly path: string; readonly bytes: number }
  /** May write less than all. The chunks belong to the disk until it answers. */
  | {
      readonly kind: "write";
      readonly path: string;
      readonly offset: number;
      readonly chunks: readonly Uint8Array[];
    }
  /** Every write that was answered before this began is on the medium afterwards. */
  | { readonly kind: "sync"; readonly path: string }
  /** Cuts the file, or lengthens it by zeros. */
  | { readonly kind: "resize"; readonly path: string; readonly bytes: number }
  | { readonly kind: "rename"; readonly from: string; readonly to: string }
  /** A file that is not there is removed already. */
  | { readonly kind: "remove"; readonly path: string }
  /** Names made, changed and removed before are so on the medium. (WAL-6) */
  | { readonly kind: "syncDirectory"; readonly directory: string }
  /** No more operations on this file for now: its handle may be closed. */
  | { readonly kind: "release"; readonly path: string };

export interface FileEntry {
  readonly name: string;
  readonly bytes: number;
}

/** `ENOSPC` and so on, as systems name their errors. */
export interface FileProblem {
  readonly ok: false;
  readonly code: string;
  readonly message: string;
}

export type FileResult =
  | {
      readonly ok: true;
      /** Read or written. */
      readonly bytes: number;
      /** Result of a `list` operation. */
      readonly files: readonly FileEntry[];
    }
  | FileProblem;

export const FILE_DONE: FileResult = { ok: true, bytes: 0, files: [] };

/** To be carried out by the disk, which answers with the same id. */
export interface FileEffect {
  readonly kind: "file";
  readonly id: number;
  readonly operation: FileOperation;
}

export interface FileAnswer {
  readonly kind: "done";
  readonly id: number;
  readonly result: FileResult;
}

/** Requests that file work yields and waits for. */
type FileRequest =
  | FileOperation
  /** Others go first: the rest of this work is for a later turn. */
  | { readonly kind: "turn" }
  /** Checked after every step of the machine. */
  | { readonly kind: "until"; readonly holds: () => boolean };

/**
 * Sequential work on files: a generator that stops at each request and continues with its result. The return value is
 * the outcome; an error of the disk is a value like any other.
 */
export type FileWork<Value> = Generator<FileRequest, Value, FileResult>;

export function isFullDisk({ code }: { readonly code: string }): boolean {
  return code === "ENOSPC" || code === "EDQUOT";
}

/** One after the other, up to the first that fails; null: all are done. */
export function* inOrder(operations: readonly FileOperation[]): FileWork<FileProblem | null> {
  for (const operation of operations) {
    const result = yield operation;
    if (!result.ok) return result;
  }
  return null;
}

/** All of the bytes, however often the disk takes only a part; null: they are written. */
export function* writeWhole(
  path: string,
  offset: number,
  bytes: Uint8Array,
): FileWork<FileProblem | null> {
  for (let done = 0; done < bytes.length; ) {
    const chunks = [bytes.subarray(done)];
    const result = yield { kind: "write", path, offset: offset + done, chunks };
    if (!result.ok) return result;
    done += result.bytes;
  }
  return null;
}

/** As many bytes as fit, or as there are: how many. */
export function* readWhole(
  path: string,
  offset: number,
  into: Uint8Array,
): FileWork<number | FileProblem> {
  let done = 0;
  while (done < into.length) {
    const rest = into.subarray(done);
    const result = yield { kind: "read", path, offset: offset + done, into: rest };
    if (!result.ok) return result;
    if (result.bytes === 0) break;
    done += result.bytes;
  }
  return done;
}

export function pathIn(directory: string, name: string): string {
  return directory === "" ? name : `${directory}/${name}`;
}
