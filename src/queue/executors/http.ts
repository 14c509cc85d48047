/**
 * One HTTP request, to targets that the node allows. The result is status, headers and body (parsed if JSON). Statuses
 * 500 and above, 408 and 429 are retried; other statuses outside 200-399 are final.
 */

import { type IncomingMessage, request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { PassThrough, pipeline, type Transform } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";
import { z } from "zod";
import { errorText } from "../../core/base/error-text.ts";
import { QUEUE_LIMITS } from "../../core/queue/defaults.ts";
import { type Executor, NotRetryable } from "../worker/executor.ts";
import { type HttpPolicy, HttpTargets } from "./http-targets.ts";
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
const REDIRECTS_MAX = 20;
const REDIRECTS: readonly (number | undefined)[] = [301, 302, 303, 307, 308];
/** Sent only to the host they were given for. */
const CREDENTIALS = ["authorization", "cookie", "proxy-authorization"];

interface Request {
  readonly url: URL;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
  readonly signal: AbortSignal;
}

export function httpExecutor(policy?: HttpPolicy): Executor {
  const targets = new HttpTargets(policy);
  return async (value, context) => {
    const input = parseInput(schema, value);
    const { body, headers } = bodyOf(input.body, lowerCase(input.headers));
    if (body !== undefined && (input.method === "GET" || input.method === "HEAD"))
      throw new NotRetryable(`input.body: a ${input.method} request has no body`);
    headers["idempotency-key"] ??= context.idempotencyKey;
    const signal = AbortSignal.any([context.signal, AbortSignal.timeout(input.timeout_ms)]);
    const first = { url: new URL(input.url), method: input.method, headers, body, signal };
    const title = `${input.method} ${input.url}`;
    try {
      const response = await follow(first, targets);
      const text = await readBounded(response, input.method);
      return resultOf(title, response, text);
    } catch (error) {
      if (error instanceof NotRetryable || error instanceof StatusError) throw error;
      const reason = signal.aborted ? signal.reason : error;
      throw new Error(`${title}: ${causeOf(reason)}`, { cause: reason });
    }
  };
}

class StatusError extends Error {
  override readonly name = "StatusError";
}

function resultOf(title: string, response: IncomingMessage, text: string): object {
  const status = response.statusCode ?? 0;
  if (status < 200 || status >= 400) {
    const message = `${title} answered ${status}: ${text.slice(0, 500)}`;
    const again = status >= 500 || status === 408 || status === 429;
    throw again ? new StatusError(message) : new NotRetryable(message);
  }
  const type = response.headers["content-type"];
  const headers = Object.entries(response.headers).map(([name, value]) => [name, String(value)]);
  return {
    status,
    headers: Object.fromEntries(headers),
    body: type !== undefined && /\bjson\b/i.test(type) ? parseJson(text) : text,
  };
}

/** Follows redirects as browsers do; checks every target, and again when its name was resolved. */
async function follow(first: Request, targets: HttpTargets): Promise<IncomingMessage> {
  let request = first;
  for (let redirects = 0; redirects <= REDIRECTS_MAX; redirects++) {
    const response = await send(request, targets);
    const { location } = response.headers;
    if (!REDIRECTS.includes(response.statusCode) || location === undefined) return response;
    response.destroy();
    request = redirected(request, response.statusCode, location);
  }
  throw new NotRetryable(`${first.url} redirects more than ${REDIRECTS_MAX} times`);
}

function redirected(request: Request, status: number | undefined, location: string): Request {
  const url = URL.canParse(location, String(request.url))
    ? new URL(location, request.url)
    : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol))
    throw new NotRetryable(
      `${request.url} redirects to "${location}", which is no address of the web`,
    );
  const { method } = request;
  const isForm = method === "POST" && (status === 301 || status === 302);
  const asGet = isForm || (status === 303 && method !== "HEAD");
  const dropped = [
    ...(asGet ? ["content-type", "content-length"] : []),
    ...(url.origin === request.url.origin ? [] : CREDENTIALS),
  ];
  const kept = Object.entries(request.headers).filter(([name]) => !dropped.includes(name));
  const headers = Object.fromEntries(kept);
  return asGet
    ? { ...request, url, headers, method: "GET", body: undefined }
    : { ...request, url, headers };
}

function send(
  { url, method, headers, body, signal }: Request,
  targets: HttpTargets,
): Promise<IncomingMessage> {
  const lookup = targets.check(url);
  const length = body === undefined ? {} : { "content-length": String(Buffer.byteLength(body)) };
  const usual = {
    accept: "*/*",
    "accept-encoding": "gzip, deflate, br",
    "user-agent": "hyperscale",
  };
  return new Promise((resolve, reject) => {
    const start = url.protocol === "https:" ? requestHttps : requestHttp;
    const options = { method, lookup, signal, headers: { ...usual, ...headers, ...length } };
    const request = start(url, options, resolve);
    request.on("error", reject);
    request.end(body);
  });
}

/** The underlying reason: a failed connection to several addresses has one for each. */
function causeOf(error: unknown): string {
  return errorText(error instanceof AggregateError ? (error.errors[0] ?? error) : error);
}

/** Headers of the connection, which the request sets itself: a task could smuggle a second request past a proxy. */
const CONNECTION_HEADERS: readonly string[] = [
  ...["connection", "content-length", "expect", "keep-alive", "proxy-connection"],
  ...["te", "trailer", "transfer-encoding", "upgrade"],
];

function lowerCase(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers)
      .map(([name, value]): [string, string] => [name.toLowerCase(), value])
      .filter(([name]) => !CONNECTION_HEADERS.includes(name)),
  );
}

function bodyOf(
  value: unknown,
  headers: Record<string, string>,
): { readonly body: string | undefined; readonly headers: Record<string, string> } {
  if (value === undefined || value === null) return { body: undefined, headers };
  if (typeof value === "string") return { body: value, headers };
  return {
    body: JSON.stringify(value),
    headers: { "content-type": "application/json", ...headers },
  };
}

async function readBounded(response: IncomingMessage, method: string): Promise<string> {
  const decoder = method === "HEAD" ? new PassThrough() : decoderOf(response);
  const chunks: Buffer[] = [];
  let length = 0;
  // An error of either, and the abort of the request, ends the loop below.
  pipeline(response, decoder, () => undefined);
  for await (const chunk of decoder as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > BODY_BYTES_MAX)
      throw new NotRetryable(`the answer is larger than ${BODY_BYTES_MAX} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function decoderOf({ headers }: IncomingMessage): Transform {
  switch (headers["content-encoding"]?.toLowerCase()) {
    case "gzip":
    case "x-gzip":
      return createGunzip();
    case "deflate":
      return createInflate();
    case "br":
      return createBrotliDecompress();
    default:
      return new PassThrough();
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
