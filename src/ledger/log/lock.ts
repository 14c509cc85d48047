/**
 * One process per log. On Linux the lock is an abstract socket named after the directory's inode: the kernel gives it
 * to one process and releases it when that process exits, for whatever reason, and not before its last system call on
 * our files has finished. Elsewhere it is a file with the owner's process id; a file of a dead process is taken over.
 *
 * Processes in different network namespaces (or machines, over a shared file system) do not see each other's sockets:
 * they must not share a data directory.
 */

import { open, readFile, rm, stat } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { LOCK_NAME } from "../../core/ledger/log/directory.ts";
import { systemCode, WalError } from "./errors.ts";

export interface DirectoryLock {
  release(): Promise<void>;
}

export async function lockDirectory(directory: string): Promise<DirectoryLock> {
  return process.platform === "linux" ? lockBySocket(directory) : lockByFile(directory);
}

async function lockBySocket(directory: string): Promise<DirectoryLock> {
  const { dev, ino } = await stat(directory);
  const server: Server = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error) =>
      reject(systemCode(error) === "EADDRINUSE" ? lockedError(directory) : error),
    );
    server.listen({ path: `\0hyperscale-wal-${dev}-${ino}` }, resolve);
  });
  server.unref();
  return { release: () => new Promise((resolve) => server.close(() => resolve())) };
}

async function lockByFile(directory: string): Promise<DirectoryLock> {
  const path = join(directory, LOCK_NAME);
  for (let attempt = 0; attempt < 2; attempt++) {
    try {
      const file = await open(path, "wx", 0o600);
      await file.writeFile(`${process.pid}\n`);
      await file.close();
      return { release: () => rm(path, { force: true }) };
    } catch (error) {
      if (systemCode(error) !== "EEXIST") throw error;
      if (isAlive(Number.parseInt(await readFile(path, "utf8"), 10))) throw lockedError(directory);
      await rm(path, { force: true });
    }
  }
  throw lockedError(directory);
}

function isAlive(pid: number): boolean {
  if (!Number.isInteger(pid) || pid <= 0) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return systemCode(error) === "EPERM";
  }
}

function lockedError(directory: string): WalError {
  return new WalError(
    "WAL_LOCKED",
    `${directory} is in use by another process: stop it first, or give this one another directory`,
  );
}
