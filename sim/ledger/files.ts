/**
 * The port of the log on a simulated disk: each operation takes its time, may fail or stop half-way, and
 * does what a system call would have done to the disk. No order and no rule is here: the store decides.
 */

import {
  FILE_DONE,
  type FileEffect,
  type FileOperation,
  type FileResult,
} from "../../src/core/ledger/log/files.ts";
import type { LedgerDisk } from "./disk.ts";

interface FilesHost {
  readonly disk: LedgerDisk;
  /** Runs after this much time, unless the process is dead by then. */
  after(delayMs: number, run: () => void): void;
  answer(id: number, result: FileResult): void;
}

/** Operations that wait for the medium; the others end in the page cache. */
const SLOW = new Set<FileOperation["kind"]>(["create", "sync", "syncDirectory", "resize"]);

export class SimFiles {
  readonly #host: FilesHost;

  constructor(host: FilesHost) {
    this.#host = host;
  }

  run({ id, operation }: FileEffect): void {
    const { disk } = this.#host;
    const finish = this.#begin(operation);
    const delayMs = SLOW.has(operation.kind) ? disk.drawSyncMs() : disk.drawWriteMs();
    this.#host.after(delayMs, () => this.#host.answer(id, finish()));
  }

  /** Performs the immediate part of an operation; the returned function does the rest when it completes. */
  #begin(operation: FileOperation): () => FileResult {
    const { disk } = this.#host;
    switch (operation.kind) {
      case "create": {
        const code = disk.drawError("create", true);
        if (code !== null) return () => failure(code);
        disk.create(operation.path, operation.bytes);
        return done(disk.beginSync(operation.path));
      }
      case "sync":
        return this.#sync(operation.path);
      case "write":
        return () => this.#write(operation);
      case "list":
        return () => ({ ok: true, bytes: 0, files: disk.list(operation.directory) });
      case "read":
        return () => this.#read(operation);
      case "resize":
        return done(() => disk.resize(operation.path, operation.bytes));
      case "rename":
        return done(() => disk.rename(operation.from, operation.to));
      case "remove":
        return done(() => disk.remove(operation.path));
      case "syncDirectory":
        return () => {
          const code = disk.drawError("sync");
          if (code !== null) return failure(code);
          disk.syncDirectory(operation.directory);
          return FILE_DONE;
        };
      case "release":
        return () => FILE_DONE;
    }
  }

  #sync(path: string): () => FileResult {
    const { disk } = this.#host;
    const finish = disk.beginSync(path);
    return () => {
      const code = disk.drawError("sync");
      if (code === null) {
        finish();
        return FILE_DONE;
      }
      disk.failSync(path);
      return failure(code);
    };
  }

  #write({ path, offset, chunks }: Extract<FileOperation, { kind: "write" }>): FileResult {
    const { disk } = this.#host;
    const bytes = chunks.reduce((sum, chunk) => sum + chunk.length, 0);
    const grows = offset + bytes > disk.read(path).length;
    const code = disk.drawError("write", grows);
    const length = disk.drawLength(bytes, code !== null);
    const written = disk.write(path, offset, chunks, length);
    return code === null ? { ok: true, bytes: written, files: [] } : failure(code);
  }

  #read({ path, offset, into }: Extract<FileOperation, { kind: "read" }>): FileResult {
    const part = this.#host.disk.read(path).subarray(offset, offset + into.length);
    into.set(part);
    return { ok: true, bytes: part.length, files: [] };
  }
}

function done(run: () => void): () => FileResult {
  return () => {
    run();
    return FILE_DONE;
  };
}

function failure(code: string): FileResult {
  return { ok: false, code, message: code };
}
