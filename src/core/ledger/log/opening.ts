/**
 * Opening a log: inspect, reject, and only then modify. Every problem is found before the first byte is changed.
 *
 * The segments are read one after the other in pieces, and scanned in slices that yield in between. (IO-5) One buffer
 * has the current segment: the largest segment bounds the memory.
 */

import type { LogDirectory, SegmentFile } from "./directory.ts";
import {
  type FileOperation,
  type FileProblem,
  type FileWork,
  inOrder,
  pathIn,
  readWhole,
} from "./files.ts";
import type { WalConfig } from "./limits.ts";
import {
  type Recovered,
  Recovery,
  type RecoveryOptions,
  type RecoveryOutcome,
  type WriterPosition,
} from "./recovery.ts";
import { segmentName } from "./segment.ts";

const SLICE_RECORDS = 1_000;

interface ScanOptions extends RecoveryOptions {
  /** Uninitialised memory is fine. */
  readonly allocate?: (bytes: number) => Uint8Array;
}

/** Changes nothing. Payloads handed out are views into a buffer that is used again. */
export function* scanSegments(
  directory: string,
  segments: readonly SegmentFile[],
  options: ScanOptions,
): FileWork<RecoveryOutcome | FileProblem> {
  const recovery = new Recovery(options);
  const { allocate = (bytes: number) => new Uint8Array(bytes) } = options;
  const largest = segments.reduce((max, { bytes }) => Math.max(max, bytes), 0);
  const buffer = allocate(largest);
  for (const { segmentId, name, bytes } of segments) {
    recovery.beginSegment(segmentId, buffer, bytes);
    const path = pathIn(directory, name);
    const { pieceBytes } = options.config;
    const problem = yield* scanFile(recovery, path, buffer.subarray(0, bytes), pieceBytes);
    yield { kind: "release", path };
    if (problem !== null) return problem;
    if (recovery.refused) break;
  }
  return recovery.finish();
}

function* scanFile(
  recovery: Recovery,
  path: string,
  buffer: Uint8Array,
  pieceBytes: number,
): FileWork<FileProblem | null> {
  for (let read = 0; ; ) {
    const piece = buffer.subarray(read, read + pieceBytes);
    const bytes = yield* readWhole(path, read, piece);
    if (typeof bytes !== "number") return bytes;
    read += piece.length;
    // The file is shorter than its reported size: it was cut meanwhile; the rest reads as zeros.
    if (bytes < piece.length) {
      buffer.fill(0, read - piece.length + bytes);
      read = buffer.length;
    }
    const progress = yield* scanSlices(recovery, read);
    if (progress === "done" || read === buffer.length) return null;
  }
}

function* scanSlices(recovery: Recovery, read: number): FileWork<"starved" | "done"> {
  for (;;) {
    const progress = recovery.scan(read, SLICE_RECORDS);
    if (progress !== "more") return progress;
    yield { kind: "turn" };
  }
}

/**
 * Cuts a torn tail, removes unused files, and syncs the last segment: its entries may still be only in the page cache
 * of a killed process, and are about to be relied on. Returns where writing continues.
 */
export function* repairLog(
  directory: string,
  { segments, temporary }: LogDirectory,
  outcome: Recovered,
  config: WalConfig,
): FileWork<WriterPosition | FileProblem> {
  const removals: FileOperation[] = temporary.map((name) => {
    return { kind: "remove", path: pathIn(directory, name) };
  });
  for (const { kind, segmentId } of outcome.repairs) {
    if (kind === "remove") removals.push({ kind, path: pathIn(directory, segmentName(segmentId)) });
  }
  const removed = yield* inOrder(removals);
  if (removed !== null) return removed;
  const { position } = outcome;
  const syncDirectory = { kind: "syncDirectory", directory } as const;
  if (position.active === null) return (yield* inOrder([syncDirectory])) ?? position;
  const { segmentId, offset } = position.active;
  const path = pathIn(directory, segmentName(segmentId));
  const bytes = segments.find((file) => file.segmentId === segmentId)?.bytes ?? 0;
  const { segmentBytes } = config;
  const repairs: FileOperation[] = [];
  if (outcome.repairs.some(({ kind }) => kind === "cut")) {
    repairs.push({ kind: "resize", path, bytes: offset });
  }
  // A segment of another size (the setting was changed, or the file cut) is made as long as ours, or left.
  if (bytes <= segmentBytes) repairs.push({ kind: "resize", path, bytes: segmentBytes });
  const problem = yield* inOrder([...repairs, { kind: "sync", path }, syncDirectory]);
  if (problem !== null) return problem;
  if (bytes <= segmentBytes && offset < segmentBytes) return position;
  yield { kind: "release", path };
  return { ...position, active: null };
}
