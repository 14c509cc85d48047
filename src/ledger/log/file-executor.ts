/**
 * Carries out file operations with system calls, and decides nothing. The calls that every batch makes
 * go straight to the file descriptor with callbacks: promises of file handles cost about a third more
 * per batch.
 */

import { fdatasync, writev } from "node:fs";
import { type FileHandle, open, readdir, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import {
  FILE_DONE,
  type FileEntry,
  type FileOperation,
  type FileProblem,
  type FileResult,
  type FileWork,
} from "../../core/ledger/log/files.ts";
import { systemCode } from "./errors.ts";

const ZEROS = Buffer.alloc(1_048_576);
/** Zeros are synced in small steps, so that a sync of the active segment never waits behind 64 MB. */
const ZERO_SYNC_BYTES = 4 * ZEROS.length;

type Done = (result: FileResult) => void;

export class FileExecutor {
  readonly #root: string;
  /** Apart, so that what is only read needs no right to write. */
  readonly #readers = new Map<string, FileHandle>();
  readonly #writers = new Map<string, FileHandle>();
  #underWay = 0;

  constructor(root: string) {
    this.#root = root;
  }

  run(operation: FileOperation, done: Done): void {
    this.#underWay++;
    const finish: Done = (result) => {
      this.#underWay--;
      done(result);
    };
    if (operation.kind === "write" || operation.kind === "sync") {
      const file = this.#writers.get(operation.path);
      if (file !== undefined) {
        atOnce(file.fd, operation, finish);
        return;
      }
    }
    this.#carryOut(operation).then(finish, (error: unknown) => finish(problemOf(error)));
  }

  /** Waits for calls under way before the files are closed: their descriptors must not go to others. */
  async close(): Promise<void> {
    while (this.#underWay > 0) await nextTurn();
    const files = [...this.#readers.values(), ...this.#writers.values()];
    this.#readers.clear();
    this.#writers.clear();
    await Promise.all(files.map((file) => file.close()));
  }

  async #carryOut(operation: FileOperation): Promise<FileResult> {
    switch (operation.kind) {
      case "list":
        return {
          ok: true,
          bytes: 0,
          files: await listFiles(join(this.#root, operation.directory)),
        };
      case "read": {
        const file = await this.#file(this.#readers, operation.path, "r");
        const { into, offset } = operation;
        const { bytesRead } = await file.read(into, 0, into.length, offset);
        return { ok: true, bytes: bytesRead, files: [] };
      }
      case "create":
        await this.#create(operation.path, operation.bytes);
        return FILE_DONE;
      case "write":
      case "sync": {
        const file = await this.#file(this.#writers, operation.path, "r+");
        return new Promise((resolve) => atOnce(file.fd, operation, resolve));
      }
      case "resize": {
        const file = await this.#file(this.#writers, operation.path, "r+");
        await file.truncate(operation.bytes);
        return FILE_DONE;
      }
      case "rename":
        await rename(join(this.#root, operation.from), join(this.#root, operation.to));
        return FILE_DONE;
      case "remove":
        await rm(join(this.#root, operation.path), { force: true });
        return FILE_DONE;
      case "syncDirectory":
        await syncDirectory(join(this.#root, operation.directory));
        return FILE_DONE;
      case "release":
        await this.#release(operation.path);
        return FILE_DONE;
    }
  }

  async #file(files: Map<string, FileHandle>, path: string, mode: string): Promise<FileHandle> {
    const known = files.get(path);
    if (known !== undefined) return known;
    const file = await open(join(this.#root, path), mode);
    files.set(path, file);
    return file;
  }

  /** With its blocks on the medium, so that later syncs inside it need not touch the file's size. */
  async #create(path: string, bytes: number): Promise<void> {
    await this.#release(path);
    const file = await open(join(this.#root, path), "w+", 0o600);
    this.#writers.set(path, file);
    for (let at = 0; at < bytes; ) {
      const size = Math.min(ZEROS.length, bytes - at);
      const { bytesWritten } = await file.write(ZEROS, 0, size, at);
      at += bytesWritten;
      if (at % ZERO_SYNC_BYTES === 0) await file.datasync();
    }
    if (bytes > 0) await file.sync();
  }

  async #release(path: string): Promise<void> {
    const files = [this.#readers.get(path), this.#writers.get(path)];
    this.#readers.delete(path);
    this.#writers.delete(path);
    for (const file of files) await file?.close();
  }
}

function atOnce(
  fd: number,
  operation: Extract<FileOperation, { kind: "write" | "sync" }>,
  done: Done,
): void {
  if (operation.kind === "sync") {
    fdatasync(fd, (error) => done(error === null ? FILE_DONE : problemOf(error)));
    return;
  }
  writev(fd, operation.chunks, operation.offset, (error, bytes) => {
    done(error === null ? { ok: true, bytes, files: [] } : problemOf(error));
  });
}

export async function listFiles(path: string): Promise<FileEntry[]> {
  const files: FileEntry[] = [];
  for (const name of await readdir(path)) {
    // Removed since: the log is being written while it is inspected.
    const found = await stat(join(path, name)).catch(() => null);
    if (found !== null) files.push({ name, bytes: found.size });
  }
  return files;
}

/** Windows has no directory to sync. */
export async function syncDirectory(path: string): Promise<void> {
  if (process.platform === "win32") return;
  const directory = await open(path, "r");
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

function problemOf(error: unknown): FileProblem {
  const message = error instanceof Error ? error.message : String(error);
  return { ok: false, code: systemCode(error), message };
}

/** File work that belongs to no machine: what it comes to. */
export async function carryOut<Value>(root: string, work: FileWork<Value>): Promise<Value> {
  const executor = new FileExecutor(root);
  try {
    let next = work.next(FILE_DONE);
    while (next.done !== true) {
      const request = next.value;
      if (request.kind === "until") throw new Error("nothing else happens while this work waits");
      if (request.kind === "turn") await nextTurn();
      const result =
        request.kind === "turn"
          ? FILE_DONE
          : await new Promise<FileResult>((resolve) => executor.run(request, resolve));
      next = work.next(result);
    }
    return next.value;
  } finally {
    await executor.close();
  }
}
