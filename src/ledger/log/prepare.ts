/** Preparation before a log is opened: its directory exists, is ours alone, and is writable. */

import { access, constants, readdir } from "node:fs/promises";
import { join } from "node:path";
import { makeFolder } from "../../host/folders.ts";
import { systemCode, WalError } from "./errors.ts";
import { type DirectoryLock, lockDirectory } from "./lock.ts";

export async function prepareDirectory(path: string): Promise<DirectoryLock> {
  await makeDirectory(path);
  const lock = await lockDirectory(path);
  try {
    const files = (await readdir(path)).filter((name) => name.endsWith(".wal"));
    for (const target of [path, ...files.map((name) => join(path, name))]) {
      await refuseUnwritable(target);
    }
    return lock;
  } catch (error) {
    await lock.release();
    throw error;
  }
}

async function makeDirectory(path: string): Promise<void> {
  try {
    await makeFolder(path, { mode: 0o700 });
  } catch (error) {
    if (systemCode(error) === "EEXIST") {
      throw new WalError("WAL_MISSING", `${path} is not a directory`, error);
    }
    throw unwritable(path, error);
  }
}

async function refuseUnwritable(path: string): Promise<void> {
  try {
    await access(path, constants.R_OK | constants.W_OK);
  } catch (error) {
    throw unwritable(path, error);
  }
}

function unwritable(path: string, error: unknown): WalError {
  const why = `${path} cannot be written (${systemCode(error)})`;
  return new WalError("WAL_UNWRITABLE", `${why}: check its owner, its mode and its mount`, error);
}
