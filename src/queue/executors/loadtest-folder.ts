/**
 * Folders of a load test. Another user than the node's cannot access anything below the data directory: what they run
 * and write is in a temporary folder, and is read with protection against links.
 */

import { randomUUID } from "node:crypto";
import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  fstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
} from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { ExecutorUser } from "../../host/executor-user.ts";
import { removeFolder } from "../../host/user-files.ts";

export interface LoadtestFolder {
  /** Folder for the results of the test. */
  readonly out: string;
  /** Folder of its files, if any came with the task. */
  readonly bundle: string;
  /** Folder for results that cannot be stored with the task. */
  readonly kept: string;
  /** User that the test runs as; null: the user of this process. */
  readonly user: ExecutorUser | null;
  /** Removes everything but the kept results; rejects when the user's files cannot be removed. */
  close(): Promise<void>;
}

export function openFolder(kept: string, user: ExecutorUser | null): LoadtestFolder {
  if (user === null) {
    const out = resolve(kept);
    mkdirSync(out, { recursive: true, mode: 0o700 });
    const bundle = `${out}-bundle`;
    return {
      out,
      bundle,
      kept: out,
      user,
      close: () => rm(bundle, { recursive: true, force: true }),
    };
  }
  const root = mkdtempSync(join(tmpdir(), "hyperscale-loadtest-"));
  // The user may traverse it to folders they know, and cannot list it or replace folders by links.
  chmodSync(root, 0o711);
  const out = join(root, `results-${randomUUID()}`);
  mkdirSync(out, { mode: 0o700 });
  chownSync(out, user.uid, user.gid);
  const bundle = join(root, `bundle-${randomUUID()}`);
  return { out, bundle, kept: resolve(kept), user, close: () => removeFolder(root) };
}

/** Throws for anything but a regular file of the user: a link could expose a key of the node. */
export function readResult(file: string, user: ExecutorUser | null): Buffer {
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const opened = openSync(file, user === null ? constants.O_RDONLY : flags);
  try {
    const found = fstatSync(opened);
    if (user !== null && (!found.isFile() || found.uid !== user.uid))
      throw new Error(`${file} is not a file of user ${user.name}`);
    return readFileSync(opened);
  } finally {
    closeSync(opened);
  }
}
