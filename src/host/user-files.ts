/**
 * Folders that a node started as root shares with the user of job code. That user can replace whatever lies in a folder
 * of theirs by a link at any time, so root never changes, reads or deletes below one.
 */

import { spawn } from "node:child_process";
import { chmod, chown, lstat, readdir, rmdir, unlink } from "node:fs/promises";
import { join } from "node:path";
import { asUser, type ExecutorUser } from "./executor-user.ts";
import { startTimer } from "./timer.ts";

/** Time for the user's own process to empty one folder. */
const EMPTY_MS_MAX = 30_000;
/** Deletes the content of a folder, as far as its user may. */
const EMPTY_SCRIPT = `
const { readdirSync, rmSync } = require("node:fs");
for (const name of readdirSync(".")) try { rmSync("./" + name, { recursive: true, force: true }); } catch {}`;

/** The user may read the folder and its content, and change nothing: everything stays this process's own. */
export async function letRead(folder: string, user: ExecutorUser | null): Promise<void> {
  if (user === null) return;
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) await letRead(path, user);
    else await share(path, user, 0o640);
  }
  await share(folder, user, 0o750);
}

async function share(path: string, { gid }: ExecutorUser, mode: number): Promise<void> {
  await chown(path, ownUid(), gid);
  await chmod(path, mode);
}

/**
 * Deletes a folder of this process. Folders of another user in it are emptied by a process of that user; one that is
 * not empty afterwards is kept, and the error names it. Leaves a folder alone that belongs to somebody else.
 */
export async function removeFolder(folder: string): Promise<void> {
  const found = await lstat(folder).catch(() => null);
  if (found?.isDirectory() === true && found.uid === ownUid()) await removeOwn(folder);
}

async function removeOwn(folder: string): Promise<void> {
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) await removeInside(path);
    else await unlink(path);
  }
  await rmdir(folder);
}

/** Requires a parent folder of this process, so that no other user can replace `folder`. */
async function removeInside(folder: string): Promise<void> {
  const { gid, uid } = await lstat(folder);
  if (uid === ownUid()) return removeOwn(folder);
  if ((await readdir(folder)).length > 0) await emptyAs({ name: String(uid), uid, gid }, folder);
  await rmdir(folder);
}

function emptyAs(user: ExecutorUser, folder: string): Promise<void> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, ["-e", EMPTY_SCRIPT], {
      ...asUser(user),
      cwd: folder,
      stdio: "ignore",
    });
    const timer = startTimer(EMPTY_MS_MAX, () => child.kill("SIGKILL"));
    const settle = (): void => {
      timer.cancel();
      resolve();
    };
    child.once("error", settle);
    child.once("exit", settle);
  });
}

function ownUid(): number {
  return process.getuid?.() ?? 0;
}
