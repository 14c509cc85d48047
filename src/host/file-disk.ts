/**
 * Small named regions as files of one directory. `sync` returns after the bytes are on the medium; the directory is
 * synced when a region is created, so that its name survives too.
 */

import { constants } from "node:fs";
import { type FileHandle, open, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { makeFolder } from "./folders.ts";
import type { DiskPort } from "./ports/disk.ts";

export class FileDisk implements DiskPort {
  readonly #directory: string;
  readonly #handles = new Map<string, Promise<FileHandle>>();

  constructor(directory: string) {
    this.#directory = directory;
  }

  read(region: string, done: (bytes: Uint8Array | null, error: string | null) => void): void {
    readFile(this.nameOf(region)).then(
      (bytes) => done(bytes, null),
      (error: NodeJS.ErrnoException) => {
        if (error.code === "ENOENT") done(null, null);
        else done(null, error.message);
      },
    );
  }

  write(region: string, at: number, bytes: Uint8Array, done: (error: string | null) => void): void {
    this.#run(region, (file) => file.write(bytes, 0, bytes.length, at), done);
  }

  sync(region: string, done: (error: string | null) => void): void {
    this.#run(region, (file) => file.datasync(), done);
  }

  nameOf(region: string): string {
    return join(this.#directory, `${region}.bin`);
  }

  async close(): Promise<void> {
    for (const opening of this.#handles.values()) {
      const handle = await opening.catch(() => null);
      await handle?.close();
    }
    this.#handles.clear();
  }

  #run(
    region: string,
    work: (file: FileHandle) => Promise<unknown>,
    done: (error: string | null) => void,
  ): void {
    this.#open(region)
      .then(work)
      .then(
        () => done(null),
        (error: NodeJS.ErrnoException) => done(error.message),
      );
  }

  #open(region: string): Promise<FileHandle> {
    const held = this.#handles.get(region);
    if (held !== undefined) return held;
    const opening = openDurably(this.nameOf(region));
    this.#handles.set(region, opening);
    return opening;
  }
}

async function openDurably(path: string): Promise<FileHandle> {
  await makeFolder(dirname(path), { mode: 0o700 });
  const file = await open(path, constants.O_RDWR | constants.O_CREAT, 0o600);
  const directory = await open(dirname(path), "r");
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
  return file;
}
