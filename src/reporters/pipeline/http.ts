/** Payloads as HTTP requests. Decides for every back-end which answers are transient. */

import { Agent as HttpAgent, type IncomingMessage, request } from "node:http";
import { Agent as HttpsAgent, request as secureRequest } from "node:https";
import { gzipSync } from "node:zlib";
import { GZIP_BYTES_MIN, REQUEST_MS_MAX } from "../limits.ts";
import { RefusedError, type SendOutcome, type Transport } from "./delivery.ts";
import type { Payload } from "./payload-queue.ts";
import { retryAfterMs } from "./retry.ts";

export interface HttpRequest {
  readonly method: string;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/** Preliminary request before a payload can be sent, such as one for a token; throws if it is rejected. */
export type Ask = (made: HttpRequest) => Promise<string>;

interface HttpOptions {
  /** Request for a payload, signed where required. */
  readonly request: (payload: Payload, ask: Ask) => HttpRequest | Promise<HttpRequest>;
  /** Compress bodies that are worth it. */
  readonly gzip: boolean;
  readonly timeoutMs?: number | undefined;
  /** Detects a success status that means failure, as some services send; null: a real success. */
  readonly refusal?: ((answer: string) => string | null) | undefined;
  /** Detects a transient rejection: some services report overload with status 400. */
  readonly isBusy?: ((answer: string) => boolean) | undefined;
}

/** Answers after which the same request may succeed. */
const PASSING: ReadonlySet<number> = new Set([408, 425, 429, 500, 502, 503, 504]);
/** Part of an answer that is read at all. */
const ANSWER_BYTES_MAX = 64 * 1_024;

/** Sends requests and reads answers, each with a timeout. */
export class HttpClient {
  readonly #timeoutMs: number;
  // A connection kept idle between two frames is often closed by the server just as the next one is sent, which looks
  // like a failure; opening one every few seconds costs less.
  readonly #plain = new HttpAgent({ keepAlive: false, maxSockets: 1 });
  readonly #secure = new HttpsAgent({ keepAlive: false, maxSockets: 1 });

  constructor(timeoutMs = REQUEST_MS_MAX) {
    this.#timeoutMs = timeoutMs;
  }

  /** Returns the text of a successful answer; throws otherwise. */
  async ask(made: HttpRequest, signal: AbortSignal): Promise<string> {
    const answer = await this.exchange(made, signal);
    if (isYes(answer)) return answer.text;
    const problem = problemOf(answer);
    throw PASSING.has(answer.status) ? new Error(problem) : new RefusedError(problem);
  }

  async exchange(made: HttpRequest, signal: AbortSignal): Promise<Answer> {
    const late = new AbortController();
    const timer = setTimeout(
      () => late.abort(new Error(`it did not answer within ${this.#timeoutMs / 1_000} s`)),
      this.#timeoutMs,
    );
    const stop = (): void => late.abort(signal.reason);
    signal.addEventListener("abort", stop);
    if (signal.aborted) stop();
    try {
      return await readAnswer(await this.#call(made, late.signal));
    } catch (error) {
      // The abort error itself carries no reason.
      throw late.signal.aborted ? late.signal.reason : error;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", stop);
    }
  }

  close(): void {
    this.#plain.destroy();
    this.#secure.destroy();
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

export class HttpTransport implements Transport {
  readonly #options: HttpOptions;
  readonly #client: HttpClient;

  constructor(options: HttpOptions) {
    this.#options = options;
    this.#client = new HttpClient(options.timeoutMs);
  }

  async send(payload: Payload, signal: AbortSignal): Promise<SendOutcome> {
    const { gzip, isBusy, refusal, request: requestOf } = this.#options;
    const packed = gzip && payload.body.length >= GZIP_BYTES_MIN;
    const sent = packed ? { ...payload, body: gzipSync(payload.body, { level: 4 }) } : payload;
    const made = await requestOf(sent, (first) => this.#client.ask(first, signal));
    const headers = packed ? { ...made.headers, "content-encoding": "gzip" } : made.headers;
    const answer = await this.#client.exchange({ ...made, headers }, signal);
    if (isYes(answer)) {
      const why = refusal?.(answer.text) ?? null;
      return why === null ? { kind: "ok" } : { kind: "refused", problem: why };
    }
    const problem = problemOf(answer);
    return PASSING.has(answer.status) || (isBusy?.(answer.text) ?? false)
      ? { kind: "retry", problem, afterMs: retryAfterMs(answer.retryAfter, Date.now()) }
      : { kind: "refused", problem };
  }

  async close(): Promise<void> {
    this.#client.close();
  }
}

interface Answer {
  readonly status: number;
  readonly retryAfter: string | undefined;
  /** On one line. */
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
    text,
  };
}

function isYes({ status }: Answer): boolean {
  return status >= 200 && status < 300;
}

function problemOf({ status, text }: Answer): string {
  return `it answered ${status}${text && `: ${text}`}`;
}
