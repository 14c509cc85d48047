/**
 * The folders of a load test. Another user than the node's cannot reach anything below the data directory: what he
 * runs and writes lies in a temporary folder, and is read with care for links that he may have left.
 */

import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  fstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { ExecutorUser } from "../../host/executor-user.ts";

export interface LoadtestFolder {
  /** Where the test writes its results. */
  readonly out: string;
  /** Where its files lie, if any came with the task. */
  readonly bundle: string;
  /** Where results stay that cannot be stored with the task. */
  readonly kept: string;
  /** Whom the test runs as; null: the user of this process. */
  readonly user: ExecutorUser | null;
  /** Removes everything but the results that stay. */
  close(): void;
}

export function openFolder(kept: string, user: ExecutorUser | null): LoadtestFolder {
  if (user === null) {
    const out = resolve(kept);
    mkdirSync(out, { recursive: true, mode: 0o700 });
    const bundle = `${out}-bundle`;
    return { out, bundle, kept: out, user, close: () => remove(bundle) };
  }
  const root = mkdtempSync(join(tmpdir(), "hyperscale-loadtest-"));
  // He may pass through it to what is his, and cannot put links in the place of folders.
  chmodSync(root, 0o711);
  const out = join(root, "results");
  mkdirSync(out, { mode: 0o700 });
  chownSync(out, user.uid, user.gid);
  const bundle = join(root, "bundle");
  return { out, bundle, kept: resolve(kept), user, close: () => remove(root) };
}

/** Hands over the folder with everything in it; nothing is changed there afterwards. */
export function giveFolder(folder: string, user: ExecutorUser | null): void {
  if (user === null) return;
  const inside = readdirSync(folder, { recursive: true }).map(String);
  for (const path of ["", ...inside]) chownSync(join(folder, path), user.uid, user.gid);
}

/** Throws for what is no file of the user: through a link to a key of the node he would read it. */
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

function remove(folder: string): void {
  rmSync(folder, { recursive: true, force: true });
}
