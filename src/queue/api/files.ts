/**
 * Files of tasks between whoever has one and the database: named by their content, sent in chunks. A file
 * that is there already is not sent again.
 */

import { createHash } from "node:crypto";
import { QUEUE_LIMITS } from "../../core/queue/defaults.ts";
import { QueueError } from "../../core/queue/errors.ts";

export interface StoredFile {
  readonly hash: string;
  readonly bytes: number;
  readonly chunks: number;
}

/** A file that belongs to a task. */
export interface TaskFile extends StoredFile {
  readonly name: string;
  readonly attempt_id: number;
  readonly media_type: string;
}

/** The leader, as far as files go: in this process or over the network. Data is base64. */
export interface FilePort {
  /** Null when there is no such file. */
  useFile(hash: string): Promise<StoredFile | null>;
  putChunk(hash: string, chunk: number, data: string): Promise<void>;
  /** Says that all chunks are there; refused when they are not what the name says. */
  putFile(hash: string, chunks: number): Promise<void>;
  getChunk(hash: string, chunk: number): Promise<string>;
}

export async function storeFile(port: FilePort, content: Uint8Array): Promise<string> {
  if (content.length > QUEUE_LIMITS.fileBytesMax) {
    const problem = `a file of ${content.length} bytes cannot be stored`;
    throw new QueueError("TOO_LARGE", `${problem}: the limit is ${QUEUE_LIMITS.fileBytesMax}`);
  }
  const hash = createHash("sha256").update(content).digest("hex");
  if ((await port.useFile(hash)) !== null) return hash;
  const size = QUEUE_LIMITS.fileChunkBytes;
  const chunks = Math.ceil(content.length / size);
  for (let chunk = 0; chunk < chunks; chunk++) {
    const part = content.subarray(chunk * size, (chunk + 1) * size);
    await port.putChunk(hash, chunk, Buffer.from(part).toString("base64"));
  }
  await port.putFile(hash, chunks);
  return hash;
}

export async function loadFile(port: FilePort, hash: string): Promise<Buffer> {
  const file = await port.useFile(hash);
  if (file === null)
    throw new QueueError("NOT_FOUND", `the file ${hash} is not stored (any more): send it again`);
  const parts: Buffer[] = [];
  for (let chunk = 0; chunk < file.chunks; chunk++)
    parts.push(Buffer.from(await port.getChunk(hash, chunk), "base64"));
  const content = Buffer.concat(parts);
  const found = createHash("sha256").update(content).digest("hex");
  if (found !== hash) throw new QueueError("INTERNAL", `the file ${hash} is damaged`);
  return content;
}
