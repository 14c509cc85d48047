/**
 * One HTTP request. The result is status, headers and body (JSON when it says so). A status of 500
 * and above, 408 and 429 are failures that are tried again; other statuses outside 200-399 are final.
 */

import { z } from "zod";
import { errorText } from "../../core/base/error-text.ts";
import { QUEUE_LIMITS } from "../../core/queue/defaults.ts";
import { type ExecutionContext, NotRetryable } from "../worker/executor.ts";
import { parseInput } from "./input.ts";

const schema = z.strictObject({
  url: z.url({ protocol: /^https?$/ }),
  method: z.enum(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]).default("GET"),
  headers: z.record(z.string(), z.string()).default({}),
  /** Text is sent as it is, anything else as JSON. */
  body: z.unknown().optional(),
  timeout_ms: z.number().positive().max(3_600_000).default(30_000),
});

const BODY_BYTES_MAX = QUEUE_LIMITS.payloadBytesMax / 2;

export async function httpExecutor(value: unknown, context: ExecutionContext): Promise<unknown> {
  const input = parseInput(schema, value);
  const { body, headers } = bodyOf(input.body, { ...input.headers });
  if (body !== undefined && (input.method === "GET" || input.method === "HEAD"))
    throw new NotRetryable(`input.body: a ${input.method} request has no body`);
  const named = Object.keys(headers).some((name) => name.toLowerCase() === "idempotency-key");
  if (!named) headers["idempotency-key"] = context.idempotencyKey;
  const response = await fetch(input.url, {
    method: input.method,
    headers,
    ...(body === undefined ? {} : { body }),
    signal: AbortSignal.any([context.signal, AbortSignal.timeout(input.timeout_ms)]),
  }).catch((error: unknown) => {
    throw new Error(`${input.method} ${input.url}: ${causeOf(error)}`, { cause: error });
  });
  const text = await readBounded(response);
  const failed = response.status < 200 || response.status >= 400;
  if (failed) {
    const message = `${input.method} ${input.url} answered ${response.status}: ${text.slice(0, 500)}`;
    const again = response.status >= 500 || response.status === 408 || response.status === 429;
    throw again ? new Error(message) : new NotRetryable(message);
  }
  return {
    status: response.status,
    headers: Object.fromEntries(response.headers),
    body: isJson(response.headers.get("content-type")) ? parseJson(text) : text,
  };
}

/** What really happened: fetch says only that it failed, its cause says why. */
function causeOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  const first = cause instanceof AggregateError ? (cause.errors[0] ?? cause) : cause;
  return errorText(first);
}

function bodyOf(
  value: unknown,
  headers: Record<string, string>,
): { readonly body: string | undefined; readonly headers: Record<string, string> } {
  if (value === undefined || value === null) return { body: undefined, headers };
  if (typeof value === "string") return { body: value, headers };
  const named = Object.keys(headers).some((name) => name.toLowerCase() === "content-type");
  return {
    body: JSON.stringify(value),
    headers: named ? headers : { ...headers, "content-type": "application/json" },
  };
}

async function readBounded(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of response.body ?? []) {
    length += chunk.length;
    if (length > BODY_BYTES_MAX)
      throw new NotRetryable(`the answer is larger than ${BODY_BYTES_MAX} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function isJson(type: string | null): boolean {
  return type !== null && /\bjson\b/i.test(type);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
