/** Looking at the files of a log without changing a byte of them. */

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type LogDirectory, logDirectory } from "../../core/ledger/log/directory.ts";
import { scanSegments } from "../../core/ledger/log/opening.ts";
import type { RecoveryOptions, RecoveryOutcome } from "../../core/ledger/log/recovery.ts";
import {
  decodeSparseIndex,
  indexName,
  type SparseIndex,
} from "../../core/ledger/log/sparse-index.ts";
import { checksum } from "./checksum.ts";
import { systemCode, WalError } from "./errors.ts";
import { carryOut, listFiles } from "./file-executor.ts";

export async function readDirectory(path: string): Promise<LogDirectory> {
  try {
    return logDirectory(await listFiles(path));
  } catch (error) {
    if (systemCode(error) === "ENOENT")
      throw new WalError("WAL_MISSING", `${path} does not exist`, error);
    if (systemCode(error) === "ENOTDIR") {
      throw new WalError("WAL_MISSING", `${path} is not a directory`, error);
    }
    throw new WalError("WAL_MISSING", `${path} cannot be read: ${String(error)}`, error);
  }
}

/** Scans a log and reports what opening it would find. */
export async function scanDirectory(
  path: string,
  { segments }: LogDirectory,
  options: RecoveryOptions,
): Promise<RecoveryOutcome> {
  const allocate = (bytes: number): Uint8Array => Buffer.allocUnsafeSlow(bytes);
  const work = scanSegments("", segments, { ...options, checksum, allocate });
  const outcome = await carryOut(path, work);
  if (outcome.ok || "refusal" in outcome) return outcome;
  throw new WalError("WAL_MISSING", `${path} cannot be read: ${outcome.message}`);
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
