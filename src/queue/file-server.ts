/** Serves a file that an execution attached to its task, over HTTP. */

import { once } from "node:events";
import { HttpError } from "../host/control/http-error.ts";
import type { Answer, ControlRequest } from "../host/control/server.ts";
import { mediaTypeOf } from "./file-api.ts";
import type { Reader } from "./store/reader.ts";

/**
 * Untrusted content: in a browser it runs in an origin of its own, without access to the token of the queue's page or
 * to its API, and without network access.
 */
const SANDBOX =
  "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; " +
  "style-src 'unsafe-inline'; img-src data: blob:; font-src data:; frame-ancestors 'none'";

export async function sendFile(reader: Reader, request: ControlRequest): Promise<Answer> {
  const { id = "", name = "" } = request.params;
  if (!/^\d{1,15}$/.test(id)) throw new HttpError(404, `there is no task ${id.slice(0, 40)}`);
  const [file] = await reader.files(Number(id), name);
  if (file === undefined)
    throw new HttpError(404, `task ${id} has no file "${name.slice(0, 200)}"`);
  const response = request.takeResponse();
  response.writeHead(200, {
    "content-type": mediaTypeOf(file),
    "content-length": file.bytes,
    "content-security-policy": SANDBOX,
    "x-content-type-options": "nosniff",
    "cache-control": "private, no-cache",
    etag: `"${file.hash}"`,
  });
  for (let chunk = 0; chunk < file.chunks && !response.destroyed; chunk++) {
    const free = response.write(await reader.fileChunk(file.hash, chunk));
    if (!free) await Promise.race([once(response, "drain"), once(response, "close")]);
  }
  response.end();
  return "taken";
}
