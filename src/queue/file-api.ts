/** Methods for files of tasks, and access to one by its name. */

import { z } from "zod";
import { QUEUE_LIMITS } from "../core/queue/defaults.ts";
import { QueueError } from "../core/queue/errors.ts";
import { parseParams, taskId } from "./api/submit-request.ts";
import type { TaskFile } from "./api/types.ts";
import type { Reader } from "./store/reader.ts";
import type { LeaderMethod } from "./worker-api.ts";

const hash = z.string().regex(/^[0-9a-f]{64}$/, "a file is named by its SHA-256 in hexadecimal");
const chunksMax = QUEUE_LIMITS.fileBytesMax / QUEUE_LIMITS.fileChunkBytes;
const chunk = z
  .int()
  .min(0)
  .max(chunksMax - 1);
const name = z
  .string()
  .max(QUEUE_LIMITS.fileNameLengthMax)
  .regex(/^[\w.-]+$/, "letters, digits, dots and dashes")
  .refine((text) => !/^\.+$/.test(text), "not only dots");

/** A valid header value, such as `text/plain; charset=utf-8`. */
const MEDIA_TYPE = /^[\w.+-]+\/[\w.+-]+[\x20-\x7e]*$/;
const UNKNOWN_TYPE = "application/octet-stream";

/** As a header; files attached by earlier versions may have any text. */
export function mediaTypeOf(file: Pick<TaskFile, "media_type">): string {
  return MEDIA_TYPE.test(file.media_type) ? file.media_type : UNKNOWN_TYPE;
}

export const fileMethods: Readonly<Record<string, LeaderMethod>> = {
  async use_file(leader, params) {
    const file = parseParams(z.strictObject({ hash }), params);
    return { file: await leader.files.useFile(file.hash) };
  },
  async put_file_chunk(leader, params) {
    // Four characters of base64 encode three bytes.
    const data = z.base64().max((QUEUE_LIMITS.fileChunkBytes / 3 + 1) * 4);
    const part = parseParams(z.strictObject({ hash, chunk, data }), params);
    await leader.files.putChunk(part.hash, part.chunk, part.data);
    return {};
  },
  async put_file(leader, params) {
    const chunks = z.int().min(0).max(chunksMax);
    const file = parseParams(z.strictObject({ hash, chunks }), params);
    await leader.files.putFile(file.hash, file.chunks);
    return { hash: file.hash };
  },
  async get_file_chunk(leader, params) {
    const part = parseParams(z.strictObject({ hash, chunk }), params);
    return { data: await leader.files.getChunk(part.hash, part.chunk) };
  },
  async attach_file(leader, params) {
    const schema = z.strictObject({
      task_id: z.coerce.string().regex(/^\d{1,15}$/),
      lease_token: z.uuid(),
      name,
      hash,
      media_type: z.string().max(100).regex(MEDIA_TYPE, "as type/subtype").default(UNKNOWN_TYPE),
    });
    const { task_id, lease_token, ...file } = parseParams(schema, params);
    await leader.files.attach({ task_id, lease_token }, file);
    return {};
  },
};

/** Files attached to a task, without the content. */
export async function listFiles(reader: Reader, params: unknown): Promise<unknown> {
  const { task_id } = parseParams(z.strictObject({ task_id: taskId }), params);
  const files = await reader.files(task_id);
  if (files.length === 0 && (await reader.tasks([task_id])).length === 0)
    throw new QueueError("NOT_FOUND", `there is no task ${task_id}`);
  return files;
}
