/**
 * The identity of a data directory: a random text, created once and kept beside the log. Peers store it with the node's
 * name and accept no other one under that name, so a lost or emptied disk cannot come back as the node it was. (VSR-30)
 * A copy of a directory has the same identity: restoring an old copy is not noticed and must not be done.
 */

import { randomBytes } from "node:crypto";
import { open, readFile, rename } from "node:fs/promises";
import { join } from "node:path";
import { makeFolder } from "../host/folders.ts";
import { systemCode, WalError } from "./log/errors.ts";
import { syncDirectory } from "./log/file-executor.ts";

const NAME = "identity";
const IDENTITY_BYTES = 16;
const PATTERN = /^[0-9a-f]{32}\n$/;

/** Durable when it resolves. */
export async function identityOfDirectory(dataDir: string): Promise<string> {
  const path = join(dataDir, NAME);
  try {
    const known = await readFile(path, "utf8");
    if (PATTERN.test(known)) return known.trim();
  } catch (error) {
    if (systemCode(error) === "ENOENT") return makeIdentity(dataDir, path);
    throw error;
  }
  throw new WalError(
    "WAL_CORRUPT",
    `${path} does not hold the identity of this data directory; restore it from a backup of the file, ` +
      "or move the directory away and let the node join under a new name",
  );
}

async function makeIdentity(dataDir: string, path: string): Promise<string> {
  const identity = randomBytes(IDENTITY_BYTES).toString("hex");
  await makeFolder(dataDir, { mode: 0o700 });
  const file = await open(`${path}.tmp`, "w", 0o600);
  try {
    await file.writeFile(`${identity}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(`${path}.tmp`, path);
  await syncDirectory(dataDir);
  return identity;
}
