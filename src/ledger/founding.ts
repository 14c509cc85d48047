/**
 * Whether this node may found the ledger's shards. An empty data directory alone is ambiguous: it may be the first
 * start of a new ledger, or a node that has lost its disk, and the second must never act as the first, since it has
 * forgotten its promises. (VSR-30) So an operator marks the data directory once, before the first start: a lost disk
 * loses the mark with it.
 */

import { existsSync } from "node:fs";
import { open, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { makeFolder } from "../host/folders.ts";
import { systemCode, WalError } from "./log/errors.ts";
import { syncDirectory } from "./log/file-executor.ts";

export type FirstStart = "found" | "join";

const TEXTS: Readonly<Record<FirstStart, string>> = {
  found: "This node founds its part of a new ledger at its first start, which removes this file.\n",
  join: "This node joins a ledger that others run; its first start removes this file.\n",
};
const MARKS: Readonly<Record<FirstStart, string>> = { found: "founding", join: "joining" };
const WAYS = ["found", "join"] as const;

/** Creates the mark of a first start. Returns the obstacle as text, or null if the mark exists. */
export async function allowFirstStart(dataDir: string, way: FirstStart): Promise<string | null> {
  try {
    await makeFolder(dataDir, { mode: 0o700 });
    if (await hasLog(dataDir)) return `${dataDir} holds a log already: start the node as it is`;
    for (const other of WAYS) await rm(join(dataDir, MARKS[other]), { force: true });
    const file = await open(join(dataDir, MARKS[way]), "w", 0o600);
    await file.writeFile(TEXTS[way]);
    await file.sync();
    await file.close();
    await syncDirectory(dataDir);
    return null;
  } catch (error) {
    return `${dataDir} cannot be written (${systemCode(error)}): check its owner, its mode and its mount`;
  }
}

/** How a first start was allowed; null when there is a log to go on with. Throws when neither is there. */
export async function firstStart(
  dataDir: string,
  { file, service }: { readonly file: string; readonly service: string },
): Promise<FirstStart | null> {
  for (const way of WAYS) if (existsSync(join(dataDir, MARKS[way]))) return way;
  if (await hasLog(dataDir)) return null;
  const command = (way: FirstStart): string => `"hyperscale ${service} ${way} --config ${file}"`;
  throw new WalError(
    "WAL_MISSING",
    `${dataDir} holds no log. Is the ledger new? Then run ${command("found")} once on every node. ` +
      `Is this node new in a ledger that runs? Then run ${command("join")}. Has it lost its disk? Then it ` +
      "must not come back under its name: give it a new one, let it join, and replace the old",
  );
}

/**
 * Removes the mark once the first records are durable: from now on the log is authoritative. Returns how the start was
 * allowed.
 */
export async function firstStartDone(dataDir: string): Promise<FirstStart | null> {
  const done = WAYS.find((way) => existsSync(join(dataDir, MARKS[way]))) ?? null;
  for (const way of WAYS) await rm(join(dataDir, MARKS[way]), { force: true });
  await syncDirectory(dataDir);
  return done;
}

async function hasLog(dataDir: string): Promise<boolean> {
  try {
    return (await readdir(join(dataDir, "wal"))).length > 0;
  } catch {
    return false;
  }
}
