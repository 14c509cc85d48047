/**
 * The directory of a log: which files are ours, and the few ways they are made and changed.
 *
 *     segment_00000001.wal   records                      segment_00000001.idx   where they are
 *     checkpoint_<id>.ckpt   snapshots                    *.tmp                  unfinished, removed at opening
 *
 * A file of any other name stops the opening: a log shares its directory with nobody, and a mistaken
 * path must not be filled with segments.
 */

import { type FileHandle, open, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { checkpointIdOf } from "../../core/ledger/log/checkpoint.ts";
import { segmentIdOf, segmentName } from "../../core/ledger/log/segment.ts";
import { systemCode, WalError } from "./errors.ts";

export interface SegmentFile {
  readonly segmentId: number;
  readonly path: string;
  readonly bytes: number;
}

export interface WalDirectory {
  readonly path: string;
  /** In order of their ids. */
  readonly segments: readonly SegmentFile[];
  readonly checkpoints: readonly string[];
  /** Left behind by a crash. */
  readonly temporary: readonly string[];
  readonly foreign: readonly string[];
}

/** The root of a mounted file system has it, and it is nobody's. */
const IGNORED = new Set(["lost+found"]);

export async function readDirectory(path: string): Promise<WalDirectory> {
  const names = (await list(path)).sort();
  const segments: SegmentFile[] = [];
  const checkpoints: string[] = [];
  const temporary: string[] = [];
  const foreign: string[] = [];
  for (const name of names) {
    const segmentId = segmentIdOf(name);
    if (segmentId !== null) {
      const file = join(path, name);
      segments.push({ segmentId, path: file, bytes: (await stat(file)).size });
    } else if (checkpointIdOf(name) !== null) checkpoints.push(name);
    else if (/^(segment_\d{8}\.idx|checkpoint_[0-9a-f]+\.ckpt)\.tmp$/.test(name))
      temporary.push(name);
    else if (!/^segment_\d{8}\.idx$/.test(name) && name !== LOCK_NAME && !IGNORED.has(name)) {
      foreign.push(name);
    }
  }
  return { path, segments, checkpoints, temporary, foreign };
}

export const LOCK_NAME = "wal.lock";

async function list(path: string): Promise<string[]> {
  try {
    return await readdir(path);
  } catch (error) {
    if (systemCode(error) === "ENOENT")
      throw new WalError("WAL_MISSING", `${path} does not exist`, error);
    if (systemCode(error) === "ENOTDIR") {
      throw new WalError("WAL_MISSING", `${path} is not a directory`, error);
    }
    throw new WalError("WAL_MISSING", `${path} cannot be read: ${String(error)}`, error);
  }
}

export function refuseForeign(directory: WalDirectory): void {
  const [name, ...others] = directory.foreign;
  if (name === undefined) return;
  const more = others.length === 0 ? "" : ` (and ${others.length} more)`;
  throw new WalError(
    "WAL_FOREIGN",
    `${join(directory.path, name)}${more} is no file of a write-ahead log: ` +
      "give the log a directory of its own, or move that file away",
  );
}

/** Windows has no directory to sync. (WAL-6) */
export async function syncDirectory(path: string): Promise<void> {
  if (process.platform === "win32") return;
  const directory = await open(path, "r");
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

const ZEROS = Buffer.alloc(1_048_576);
/** Zeros are synced in small steps, so that a sync of the active segment never waits behind 64 MB. */
const ZERO_SYNC_BYTES = 4 * ZEROS.length;

/**
 * A new zero-filled file whose blocks and name are on the medium: later syncs of data inside it need
 * not touch the file's size. What is half-made is removed again.
 */
export async function createZeroed(path: string, bytes: number): Promise<FileHandle> {
  const file = await open(path, "w+", 0o600);
  try {
    for (let at = 0; at < bytes; ) {
      const size = Math.min(ZEROS.length, bytes - at);
      const { bytesWritten } = await file.write(ZEROS, 0, size, at);
      at += bytesWritten;
      if (at % ZERO_SYNC_BYTES === 0) await file.datasync();
    }
    await file.sync();
    await syncDirectory(join(path, ".."));
    return file;
  } catch (error) {
    await file.close();
    await rm(path, { force: true });
    throw error;
  }
}

/** Everything from `offset` on becomes zero; the size stays. The space may have to be found anew. */
export async function cutFile(file: FileHandle, offset: number, bytes: number): Promise<void> {
  await file.truncate(offset);
  await file.truncate(bytes);
  await file.sync();
}

export function segmentPath(directory: string, segmentId: number): string {
  return join(directory, segmentName(segmentId));
}
