/**
 * Whether this node may found the ledger's shards. An empty data directory alone does not say: it may be
 * the first start of a new ledger, or a node that has lost its disk, and the second must never act as
 * the first, since it has forgotten what it promised. (VSR-30) So a person says it once, before the first
 * start, in the data directory itself: a lost disk loses the word with it.
 */

import { existsSync } from "node:fs";
import { mkdir, open, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { syncDirectory } from "../wal/directory.ts";
import { systemCode, WalError } from "../wal/errors.ts";

const MARK = "founding";
const TEXT =
  "This node founds its part of a new ledger at its first start, which removes this file.\n";

/** What stands in the way, in words; null when the mark is there. */
export async function allowFounding(dataDir: string): Promise<string | null> {
  try {
    await mkdir(dataDir, { recursive: true, mode: 0o700 });
    if (await hasLog(dataDir)) return `${dataDir} holds a log already: there is nothing to found`;
    const file = await open(join(dataDir, MARK), "w", 0o600);
    await file.writeFile(TEXT);
    await file.sync();
    await file.close();
    await syncDirectory(dataDir);
    return null;
  } catch (error) {
    return `${dataDir} cannot be written (${systemCode(error)}): check its owner, its mode and its mount`;
  }
}

/** True: shards that are missing are founded. Throws when the directory is empty and nobody allowed it. */
export async function mayFound(dataDir: string, configFile: string): Promise<boolean> {
  if (existsSync(join(dataDir, MARK))) return true;
  if (await hasLog(dataDir)) return false;
  throw new WalError(
    "WAL_MISSING",
    `${dataDir} holds no log. Is this the first start of a new ledger? Then run ` +
      `"hyperscale ledger found --config ${configFile}" once on every node. Has this node lost its disk? ` +
      "Then it must not come back under its name: give it a new one, and replace the old",
  );
}

/** The first records are durable: from now on the log says what there is. */
export async function foundingDone(dataDir: string): Promise<void> {
  await rm(join(dataDir, MARK), { force: true });
  await syncDirectory(dataDir);
}

async function hasLog(dataDir: string): Promise<boolean> {
  try {
    return (await readdir(join(dataDir, "wal"))).length > 0;
  } catch {
    return false;
  }
}
