/**
 * Opening a directory: look, refuse, and only then touch. Everything that can be wrong with it is found
 * before the first byte is changed.
 */

import { access, constants, mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { type WalConfig, walConfig } from "../../core/ledger/log/limits.ts";
import type { Recovered, WriterPosition } from "../../core/ledger/log/recovery.ts";
import { readDirectory, refuseForeign, syncDirectory, type WalDirectory } from "./directory.ts";
import { systemCode, WalError } from "./errors.ts";
import { type DirectoryLock, lockDirectory } from "./lock.ts";
import { recoverFiles, refusalError } from "./recover.ts";
import { SegmentIo } from "./segment-io.ts";
import { Segments } from "./segments.ts";
import type { WalOptions } from "./types.ts";

export interface OpenedDirectory {
  readonly config: WalConfig;
  readonly outcome: Recovered;
  readonly position: WriterPosition;
  readonly segments: Segments;
  readonly io: SegmentIo;
  readonly lock: DirectoryLock;
}

export async function openDirectory(options: WalOptions): Promise<OpenedDirectory> {
  // A posted entry must not be dropped from the middle of its sequence.
  const fullDisk = options.onDurable === undefined ? "reject" : "wait";
  const config = walConfig({ fullDisk, ...options.config });
  await makeDirectory(options.directory);
  const lock = await lockDirectory(options.directory);
  try {
    const directory = await readDirectory(options.directory);
    refuseForeign(directory);
    const segments = new Segments(options.directory);
    const outcome = await recover(directory, segments, options, config);
    await refuseUnwritable(directory);
    const io = new SegmentIo(options.directory, config.segmentBytes);
    const position = await repair(directory, outcome, io, config);
    const last = outcome.segments.at(-1);
    for (const { segmentId, endOffset } of outcome.segments.slice(0, -1)) {
      await segments.refreshIndex(segmentId, endOffset);
    }
    segments.advance({
      segmentId: last?.segmentId ?? 0,
      offset: last?.endOffset ?? 0,
      lsn: outcome.maxLsn,
    });
    return { config, outcome, position, segments, io, lock };
  } catch (error) {
    await lock.release();
    throw error;
  }
}

async function makeDirectory(path: string): Promise<void> {
  try {
    await mkdir(path, { recursive: true, mode: 0o700 });
  } catch (error) {
    if (systemCode(error) === "EEXIST") {
      throw new WalError("WAL_MISSING", `${path} is not a directory`, error);
    }
    throw unwritable(path, error);
  }
}

function unwritable(path: string, error: unknown): WalError {
  const why = `${path} cannot be written (${systemCode(error)})`;
  return new WalError("WAL_UNWRITABLE", `${why}: check its owner, its mode and its mount`, error);
}

async function refuseUnwritable({ path, segments }: WalDirectory): Promise<void> {
  for (const target of [path, ...segments.map((segment) => segment.path)]) {
    try {
      await access(target, constants.R_OK | constants.W_OK);
    } catch (error) {
      throw unwritable(target, error);
    }
  }
}

/** Also finds where things are: the index of every segment comes free with the scan. */
async function recover(
  directory: WalDirectory,
  segments: Segments,
  options: WalOptions,
  config: WalConfig,
): Promise<Recovered> {
  let current = 0;
  const outcome = await recoverFiles(directory.segments, {
    config,
    identity: options.identity,
    onRecord: ({ lsn }, { segmentId, offset }) => {
      if (segmentId !== current) segments.open(segmentId, lsn);
      current = segmentId;
      segments.note(segmentId, lsn, offset);
    },
    ...(options.onEntry === undefined ? {} : { onEntry: options.onEntry }),
  });
  if (!outcome.ok) throw refusalError(outcome.refusal, options.directory, options.identity);
  return outcome;
}

/**
 * Cuts a torn tail, removes what was never used, and syncs the last segment: what was found in it may
 * still be only in the page cache of a process that was killed, and is about to be relied on.
 */
async function repair(
  directory: WalDirectory,
  outcome: Recovered,
  io: SegmentIo,
  config: WalConfig,
): Promise<WriterPosition> {
  for (const name of directory.temporary) await rm(join(directory.path, name), { force: true });
  for (const repair of outcome.repairs) {
    const file = directory.segments.find(({ segmentId }) => segmentId === repair.segmentId);
    if (repair.kind === "remove" && file !== undefined) await rm(file.path);
  }
  const { position } = outcome;
  if (position.active === null) {
    await syncDirectory(directory.path);
    return position;
  }
  const { segmentId, offset } = position.active;
  const bytes = directory.segments.find((file) => file.segmentId === segmentId)?.bytes ?? 0;
  const file = await io.adopt(segmentId);
  if (outcome.repairs.some(({ kind }) => kind === "cut")) await file.truncate(offset);
  // A segment of another size (the setting was changed, or the file cut) is made as long as ours, or left.
  if (bytes <= config.segmentBytes) await file.truncate(config.segmentBytes);
  await file.sync();
  await syncDirectory(directory.path);
  if (bytes <= config.segmentBytes && offset < config.segmentBytes) return position;
  await io.release(segmentId);
  return { ...position, active: null };
}
