/** Payloads as HTTP requests. Which answers pass and which do not is decided here, for every back-end alike. */

import { Agent as HttpAgent, type IncomingMessage, request } from "node:http";
import { Agent as HttpsAgent, request as secureRequest } from "node:https";
import { gzipSync } from "node:zlib";
import { ANSWER_CHARACTERS_MAX, GZIP_BYTES_MIN, REQUEST_MS_MAX } from "../limits.ts";
import type { SendOutcome, Transport } from "./delivery.ts";
import type { Payload } from "./payload-queue.ts";
import { retryAfterMs } from "./retry.ts";

interface HttpRequest {
  readonly method: string;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

interface HttpOptions {
  /** The request of a payload; signed, if it must be. A promise, where a token is fetched before. */
  readonly request: (payload: Payload) => HttpRequest | Promise<HttpRequest>;
  /** Compress bodies that are worth it. */
  readonly gzip: boolean;
  readonly timeoutMs?: number | undefined;
  /** An answer that says yes and means no, as some services do; null: it means yes. */
  readonly refusal?: ((answer: string) => string | null) | undefined;
}

/** Answers after which the same request may succeed. */
const PASSING: ReadonlySet<number> = new Set([408, 425, 429, 500, 502, 503, 504]);
/** Of an answer that is read at all. */
const ANSWER_BYTES_MAX = 64 * 1_024;

export class HttpTransport implements Transport {
  readonly #options: HttpOptions;
  // A connection that is kept idle between two frames is often closed by the server just as the next one
  // is sent, which looks like a failure; making one every few seconds costs less.
  readonly #plain = new HttpAgent({ keepAlive: false, maxSockets: 1 });
  readonly #secure = new HttpsAgent({ keepAlive: false, maxSockets: 1 });

  constructor(options: HttpOptions) {
    this.#options = options;
  }

  async send(payload: Payload, signal: AbortSignal): Promise<SendOutcome> {
    const packed = this.#options.gzip && payload.body.length >= GZIP_BYTES_MIN;
    const sent = packed ? { ...payload, body: gzipSync(payload.body, { level: 4 }) } : payload;
    const made = await this.#options.request(sent);
    const headers = packed ? { ...made.headers, "content-encoding": "gzip" } : made.headers;
    const { retryAfter, status, text } = await this.#exchange({ ...made, headers }, signal);
    if (status >= 200 && status < 300) {
      const refusal = this.#options.refusal?.(text) ?? null;
      return refusal === null ? { kind: "ok" } : { kind: "refused", problem: refusal };
    }
    const problem = `it answered ${status}${text === "" ? "" : `: ${text}`}`;
    return PASSING.has(status)
      ? { kind: "retry", problem, afterMs: retryAfterMs(retryAfter, Date.now()) }
      : { kind: "refused", problem };
  }

  async close(): Promise<void> {
    this.#plain.destroy();
    this.#secure.destroy();
  }

  async #exchange(made: HttpRequest, signal: AbortSignal): Promise<Answer> {
    const { timeoutMs = REQUEST_MS_MAX } = this.#options;
    const late = new AbortController();
    const timer = setTimeout(
      () => late.abort(new Error(`it did not answer within ${timeoutMs / 1_000} s`)),
      timeoutMs,
    );
    const stop = (): void => late.abort(signal.reason);
    signal.addEventListener("abort", stop);
    if (signal.aborted) stop();
    try {
      return await readAnswer(await this.#call(made, late.signal));
    } catch (error) {
      // What was aborted says only that it was.
      throw late.signal.aborted ? late.signal.reason : error;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", stop);
    }
  }

  #call(
    { body, headers, method, url }: HttpRequest,
    signal: AbortSignal,
  ): Promise<IncomingMessage> {
    const secure = url.protocol === "https:";
    const options = {
      ...{ method, signal },
      headers: { ...headers, "content-length": String(body.length) },
      agent: secure ? this.#secure : this.#plain,
    };
    return new Promise((resolve, reject) => {
      const call = (secure ? secureRequest : request)(url, options, resolve);
      call.on("error", reject);
      call.end(body);
    });
  }
}

interface Answer {
  readonly status: number;
  readonly retryAfter: string | undefined;
  /** On one line, and not long. */
  readonly text: string;
}

async function readAnswer(message: IncomingMessage): Promise<Answer> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of message) {
    bytes += (part as Buffer).length;
    if (bytes <= ANSWER_BYTES_MAX) parts.push(part as Buffer);
  }
  const text = Buffer.concat(parts).toString("utf8").replace(/\s+/g, " ").trim();
  return {
    status: message.statusCode ?? 0,
    retryAfter: message.headers["retry-after"],
    text: text.slice(0, ANSWER_CHARACTERS_MAX),
  };
}
