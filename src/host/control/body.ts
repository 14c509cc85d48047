/** Bodies of requests and answers, read up to a bound. */

import type { IncomingMessage } from "node:http";

/**
 * A body over the bound is read and discarded up to this many times the bound, so that a caller gets the error; beyond
 * that the connection is closed.
 */
const DISCARDED_TIMES_MAX = 8;

type BoundedBody =
  | { readonly ok: true; readonly text: string }
  | { readonly ok: false; readonly bytes: number };

export async function readBody(message: IncomingMessage, bytesMax: number): Promise<BoundedBody> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of message) {
    const part = chunk as Buffer;
    bytes += part.length;
    if (bytes <= bytesMax) chunks.push(part);
    else if (bytes > DISCARDED_TIMES_MAX * bytesMax) {
      message.destroy();
      break;
    }
  }
  if (bytes > bytesMax) return { ok: false, bytes };
  return { ok: true, text: Buffer.concat(chunks).toString("utf8") };
}
