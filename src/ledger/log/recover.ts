/**
 * Recovery of a directory: its segments are read one after the other, the next piece while the last is
 * scanned, in slices that leave the event loop alone in between. (IO-5) Nothing is changed here.
 */

import { open } from "node:fs/promises";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { WalConfig } from "../../core/ledger/log/limits.ts";
import type { WalRecord } from "../../core/ledger/log/record.ts";
import {
  type RecordPlace,
  Recovery,
  type RecoveryOutcome,
  type RecoveryRefusal,
  refusalText,
} from "../../core/ledger/log/recovery.ts";
import { checksum } from "./checksum.ts";
import type { SegmentFile } from "./directory.ts";
import { WalError } from "./errors.ts";

const PIECE_BYTES = 4_194_304;
const SLICE_RECORDS = 1_000;
const SLICE_MS_MAX = 5;

interface RecoverOptions {
  readonly config: WalConfig;
  readonly identity: string;
  readonly onEntry?: (record: WalRecord, place: RecordPlace) => void;
  readonly onRecord?: (record: WalRecord, place: RecordPlace) => void;
}

export async function recoverFiles(
  segments: readonly SegmentFile[],
  options: RecoverOptions,
): Promise<RecoveryOutcome> {
  const recovery = new Recovery({ ...options, checksum });
  const largest = segments.reduce((max, { bytes }) => Math.max(max, bytes), 0);
  // One buffer for all: payloads handed to `onEntry` are views into it.
  const buffer = Buffer.allocUnsafeSlow(largest);
  for (const segment of segments) {
    await scanFile(recovery, segment, buffer);
    if (recovery.refused) break;
  }
  return recovery.finish();
}

async function scanFile(recovery: Recovery, segment: SegmentFile, buffer: Buffer): Promise<void> {
  const file = await open(segment.path, "r");
  try {
    recovery.beginSegment(segment.segmentId, buffer, segment.bytes);
    let read = 0;
    let reading = file.read(buffer, 0, Math.min(PIECE_BYTES, segment.bytes), 0);
    for (;;) {
      const { bytesRead } = await reading;
      read += bytesRead;
      const more = bytesRead > 0 && read < segment.bytes;
      if (more)
        reading = file.read(buffer, read, Math.min(PIECE_BYTES, segment.bytes - read), read);
      // A file that is shorter than its size said was cut meanwhile; zeros stand for the rest.
      if (!more && read < segment.bytes) {
        buffer.fill(0, read, segment.bytes);
        read = segment.bytes;
      }
      const progress = await scanSlices(recovery, read);
      if (progress === "done" || !more) {
        if (more) await reading;
        return;
      }
    }
  } finally {
    await file.close();
  }
}

async function scanSlices(recovery: Recovery, read: number): Promise<"starved" | "done"> {
  let sliceEnd = performance.now() + SLICE_MS_MAX;
  for (;;) {
    const progress = recovery.scan(read, SLICE_RECORDS);
    if (progress !== "more") return progress;
    if (performance.now() < sliceEnd) continue;
    await nextTurn();
    sliceEnd = performance.now() + SLICE_MS_MAX;
  }
}

export function refusalError(
  refusal: RecoveryRefusal,
  directory: string,
  identity: string,
): WalError {
  const advice: Readonly<Record<RecoveryRefusal["code"], string>> = {
    WAL_CORRUPT: `inspect it with "hyperscale wal verify ${directory}"; restore this node from its peers`,
    WAL_VERSION: "start the version that wrote it, or give this one an empty directory",
    WAL_FOREIGN: "move that file away, or give the log a directory of its own",
    WAL_IDENTITY: "check the configured data directory, cluster and node name",
    WAL_UNKNOWN_TYPE: "start the version that wrote it",
  };
  const text = `${directory}: ${refusalText(refusal, identity)}. To go on: ${advice[refusal.code]}`;
  return new WalError(refusal.code, text);
}
