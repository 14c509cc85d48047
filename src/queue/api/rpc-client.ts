/** JSON-RPC over HTTP with kept connections. Errors come back as the `QueueError` the server meant. */

import { Agent, type IncomingMessage, request } from "node:http";
import { Agent as SecureAgent, request as secureRequest } from "node:https";
import { errorText } from "../../core/base/error-text.ts";
import { codeOfNumber, QueueError } from "../../core/queue/errors.ts";
import type { RpcResponse } from "./rpc.ts";

const DEFAULT_TIMEOUT_MS = 30_000;
const ANSWER_BYTES_MAX = 64 * 1024 * 1024;

export interface RpcClientOptions {
  readonly url: string;
  readonly token?: string | undefined;
  /** Marks calls that a node passes on, so that they are not passed on again. */
  readonly forwarded?: boolean;
}

export class RpcClient {
  readonly url: string;
  readonly #target: URL;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #agent: Agent;
  #lastId = 0;

  constructor(options: RpcClientOptions) {
    this.url = options.url;
    this.#target = new URL(options.url);
    const secure = this.#target.protocol === "https:";
    this.#agent = new (secure ? SecureAgent : Agent)({ keepAlive: true, maxSockets: 64 });
    this.#headers = {
      "content-type": "application/json",
      ...(options.token === undefined ? {} : { authorization: `Bearer ${options.token}` }),
      ...(options.forwarded === true ? { "x-hyperscale-forwarded": "1" } : {}),
    };
  }

  async call(method: string, params: unknown, timeoutMs = DEFAULT_TIMEOUT_MS): Promise<unknown> {
    const id = ++this.#lastId;
    const text = await this.#post(
      JSON.stringify({ jsonrpc: "2.0", id, method, params }),
      timeoutMs,
    );
    const response = parseResponse(text, this.url);
    if ("error" in response) throw errorOf(response.error);
    return response.result;
  }

  /** A stream of the node, for following; the caller reads it to its end. */
  open(path: string, signal?: AbortSignal): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const call = this.#request("GET", path, signal);
      call.on("response", resolve);
      call.on("error", (error) => reject(this.#unreachable(error)));
      call.end();
    });
  }

  async get(path: string): Promise<string> {
    return readAll(await this.open(path));
  }

  close(): void {
    this.#agent.destroy();
  }

  #post(body: string, timeoutMs: number): Promise<string> {
    return new Promise((resolve, reject) => {
      const call = this.#request("POST", "/", undefined);
      const timer = setTimeout(
        () => call.destroy(new Error(`no answer within ${timeoutMs} ms`)),
        timeoutMs,
      );
      call.on("response", (response) => {
        readAll(response)
          .then(resolve, (error) => reject(this.#unreachable(error)))
          .finally(() => clearTimeout(timer));
      });
      call.on("error", (error) => {
        clearTimeout(timer);
        reject(this.#unreachable(error));
      });
      call.end(body);
    });
  }

  #request(method: string, path: string, signal: AbortSignal | undefined) {
    const make = this.#target.protocol === "https:" ? secureRequest : request;
    return make(new URL(path, this.#target), {
      method,
      agent: this.#agent,
      headers: this.#headers,
      ...(signal === undefined ? {} : { signal }),
    });
  }

  #unreachable(error: unknown): QueueError {
    const reason = errorText(error);
    return new QueueError("UNAVAILABLE", `cannot reach the queue node at ${this.url}: ${reason}`, {
      cause: error,
    });
  }
}

async function readAll(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of response) {
    const bytes = chunk as Buffer;
    length += bytes.length;
    if (length > ANSWER_BYTES_MAX)
      throw new Error(`the answer is larger than ${ANSWER_BYTES_MAX} bytes`);
    chunks.push(bytes);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function parseResponse(text: string, url: string): RpcResponse {
  try {
    const value: unknown = JSON.parse(text);
    if (value !== null && typeof value === "object" && ("result" in value || "error" in value)) {
      return value as RpcResponse;
    }
  } catch {
    // Told below, with what came instead.
  }
  throw new QueueError(
    "UNAVAILABLE",
    `${url} did not answer as a queue node: ${text.slice(0, 200)}`,
  );
}

function errorOf(body: {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}): QueueError {
  const data =
    body.data !== null && typeof body.data === "object"
      ? (body.data as Record<string, unknown>)
      : undefined;
  return new QueueError(codeOfNumber(body.code), body.message, data === undefined ? {} : { data });
}
