/**
 * The directory of a log: which files are ours.
 *
 *     segment_00000001.wal   records                      segment_00000001.idx   where they are
 *     checkpoint_<id>.ckpt   snapshots                    *.tmp                  unfinished, removed at opening
 *
 * A file of any other name aborts the opening: a log has its directory to itself, and a mistaken path must not be
 * filled with segments.
 */

import { checkpointIdOf } from "./checkpoint.ts";
import type { FileEntry } from "./files.ts";
import { segmentIdOf } from "./segment.ts";

export interface SegmentFile {
  readonly segmentId: number;
  readonly name: string;
  readonly bytes: number;
}

export interface LogDirectory {
  /** In order of their ids. */
  readonly segments: readonly SegmentFile[];
  readonly indexes: readonly FileEntry[];
  readonly checkpoints: readonly FileEntry[];
  /** Left behind by a crash. */
  readonly temporary: readonly string[];
  readonly foreign: readonly string[];
}

/** Present in the root of a mounted file system; ignored. */
const IGNORED = new Set(["lost+found"]);
/** Lock file of the process that uses the log, where sockets cannot be locks. */
export const LOCK_NAME = "wal.lock";

export function logDirectory(files: readonly FileEntry[]): LogDirectory {
  const segments: SegmentFile[] = [];
  const indexes: FileEntry[] = [];
  const checkpoints: FileEntry[] = [];
  const temporary: string[] = [];
  const foreign: string[] = [];
  const sorted = [...files].sort((a, b) => (a.name < b.name ? -1 : 1));
  for (const { name, bytes } of sorted) {
    const segmentId = segmentIdOf(name);
    if (segmentId !== null) segments.push({ segmentId, name, bytes });
    else if (/^segment_\d{8}\.idx$/.test(name)) indexes.push({ name, bytes });
    else if (checkpointIdOf(name) !== null) checkpoints.push({ name, bytes });
    else if (/^(segment_\d{8}\.idx|checkpoint_[0-9a-f]+\.ckpt)\.tmp$/.test(name)) {
      temporary.push(name);
    } else if (name !== LOCK_NAME && !IGNORED.has(name)) foreign.push(name);
  }
  return { segments, indexes, checkpoints, temporary, foreign };
}
