/** The leader's writer of files: chunks, complete files, and the task they belong to. */

import { QUEUE_LIMITS } from "../../core/queue/defaults.ts";
import { QueueError } from "../../core/queue/errors.ts";
import type { Attachment, FilePort, LeaseRef, StoredFile } from "../api/types.ts";
import type { FencedWriter } from "../store/fenced-writer.ts";

export class FileWriter implements FilePort {
  readonly #writer: FencedWriter;

  constructor(writer: FencedWriter) {
    this.#writer = writer;
  }

  async useFile(hash: string): Promise<StoredFile | null> {
    const { row } = await this.#writer.write("control", "file-use", [hash]);
    if (row["bytes"] === null) return null;
    return { hash, bytes: Number(row["bytes"]), chunks: Number(row["chunks"]) };
  }

  async putChunk(hash: string, chunk: number, data: string): Promise<void> {
    await this.#writer.write("control", "file-chunk-put", [hash, chunk, data]);
  }

  async putFile(hash: string, chunks: number): Promise<void> {
    const { row } = await this.#writer.write("control", "file-put", [hash, chunks]);
    if (row["bytes"] !== null) return;
    throw new QueueError(
      "INVALID_PARAMS",
      `the chunks of ${hash} are not there, or of another file`,
    );
  }

  async getChunk(hash: string, chunk: number): Promise<string> {
    const [row] = await this.#writer.read("file-chunk-get", [hash, chunk]);
    if (row === undefined)
      throw new QueueError("NOT_FOUND", `there is no chunk ${chunk} of file ${hash}`);
    return String(row["data"]);
  }

  async attach(lease: LeaseRef, { name, hash, media_type }: Attachment): Promise<void> {
    const { row } = await this.#writer.write("control", "file-attach", [
      ...[lease.task_id, lease.lease_token, name, hash, media_type],
      ...[QUEUE_LIMITS.taskFilesMax, QUEUE_LIMITS.fileBytesMax],
    ]);
    if (Number(row["changed"]) > 0) return;
    if (Number(row["leased"]) === 0)
      throw new QueueError("LEASE_REFUSED", `the lease of task ${lease.task_id} is not current`);
    const limits = `${QUEUE_LIMITS.taskFilesMax} files and ${QUEUE_LIMITS.fileBytesMax} bytes`;
    const problem = `"${name}" cannot be left with task ${lease.task_id}`;
    throw new QueueError("TOO_LARGE", `${problem}: it is not stored, or above ${limits} per task`);
  }
}
