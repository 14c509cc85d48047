/**
 * Files of tasks on their way to and from the database: named by their content, sent in chunks. An existing file is not
 * sent again.
 */

import { createHash } from "node:crypto";
import { QUEUE_LIMITS } from "../../core/queue/defaults.ts";
import { QueueError } from "../../core/queue/errors.ts";
import type { FilePort } from "./types.ts";

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
