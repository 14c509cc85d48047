/**
 * The I/O that the writer asks for, on real files. The calls that every batch makes go straight to the
 * file descriptor with callbacks: promises of file handles cost about a third more per batch.
 */

import { fdatasync, writev } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { createZeroed, cutFile, segmentPath } from "./directory.ts";

type IoDone = (error: Error | null) => void;

export class SegmentIo {
  readonly #directory: string;
  readonly #segmentBytes: number;
  readonly #files = new Map<number, FileHandle>();

  constructor(directory: string, segmentBytes: number) {
    this.#directory = directory;
    this.#segmentBytes = segmentBytes;
  }

  /** Takes an existing segment to go on with it. */
  async adopt(segmentId: number): Promise<FileHandle> {
    const file = await open(segmentPath(this.#directory, segmentId), "r+");
    this.#files.set(segmentId, file);
    return file;
  }

  create(segmentId: number, bytes: number, done: IoDone): void {
    createZeroed(segmentPath(this.#directory, segmentId), bytes).then((file) => {
      this.#files.set(segmentId, file);
      done(null);
    }, done);
  }

  write(
    segmentId: number,
    offset: number,
    chunks: readonly Uint8Array[],
    done: (error: Error | null, bytes: number) => void,
  ): void {
    writev(this.#fd(segmentId), chunks, offset, (error, bytes) => done(error, bytes));
  }

  sync(segmentId: number, done: IoDone): void {
    fdatasync(this.#fd(segmentId), done);
  }

  cut(segmentId: number, offset: number, done: IoDone): void {
    const file = this.#files.get(segmentId);
    if (file === undefined) done(new Error(`segment ${segmentId} is not open`));
    else cutFile(file, offset, this.#segmentBytes).then(() => done(null), done);
  }

  /** Nothing more will be written to it. */
  async release(segmentId: number): Promise<void> {
    const file = this.#files.get(segmentId);
    this.#files.delete(segmentId);
    await file?.close();
  }

  /** The ids of files that were open. */
  async close(): Promise<void> {
    const files = [...this.#files.values()];
    this.#files.clear();
    await Promise.all(files.map((file) => file.close()));
  }

  #fd(segmentId: number): number {
    const file = this.#files.get(segmentId);
    if (file === undefined) throw new Error(`segment ${segmentId} is not open`);
    return file.fd;
  }
}
