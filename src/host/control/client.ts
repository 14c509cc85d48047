/**
 * Client of a control server: requests with a token, a deadline and a bounded answer, and lines of a streamed answer.
 * The caller, which knows the command, explains a failure to a person.
 *
 * Connections are kept for the next request until `close`; an open one keeps the process alive, so that a command never
 * exits silently while it waits.
 */

import { Agent, type IncomingMessage, request } from "node:http";
import { Agent as SecureAgent, request as secureRequest } from "node:https";
import { errorText } from "../../core/base/error-text.ts";
import { readBody } from "./body.ts";
import { operatorHeaders } from "./requester.ts";

const TIMEOUT_MS = 30_000;
const ANSWER_BYTES_MAX = 64 * 1_048_576;
const LINE_CHARACTERS_MAX = 16 * 1_048_576;
const CONNECTIONS_MAX = 64;

interface ControlClientOptions {
  /** `host:port`, or a whole URL. */
  readonly address: string;
  readonly token?: string | undefined;
  /** PEM: certificate authorities for `https://` addresses, in place of the default ones. */
  readonly ca?: string | undefined;
  /** Requester, for the server; by default the user of this process. */
  readonly caller?: Readonly<Record<string, string>>;
}

interface CallOptions {
  readonly body?: string | undefined;
  readonly timeoutMs?: number | undefined;
}

export interface Reply {
  readonly status: number;
  readonly text: string;
}

/** No answer, a late one, or one over the limit: the request may have had an effect. */
export class UnreachableError extends Error {
  override readonly name = "UnreachableError";
  readonly address: string;
  /** Short, for a sentence: a code like ECONNREFUSED, or what happened. */
  readonly reason: string;

  constructor(address: string, cause: unknown) {
    const reason = reasonOf(cause);
    super(`no answer from ${address}: ${reason}`, { cause });
    this.address = address;
    this.reason = reason;
  }
}

export class ControlClient {
  readonly address: string;
  readonly #target: URL;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #agent: Agent;

  constructor({ address, token, ca, caller }: ControlClientOptions) {
    this.address = address;
    this.#target = new URL(address.includes("://") ? address : `http://${address}`);
    const options = { keepAlive: true, maxSockets: CONNECTIONS_MAX };
    this.#agent = this.#secure
      ? new SecureAgent({ ...options, ...(ca === undefined ? {} : { ca }) })
      : new Agent(options);
    this.#headers = {
      "content-type": "application/json",
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(caller ?? operatorHeaders()),
    };
  }

  call(method: "GET" | "POST", path: string, options: CallOptions = {}): Promise<Reply> {
    const { body, timeoutMs = TIMEOUT_MS } = options;
    return new Promise((resolve, reject) => {
      const call = this.#request(method, path);
      const late = new Error(`no answer within ${timeoutMs} ms`);
      const timer = setTimeout(() => call.destroy(late), timeoutMs);
      const fail = (error: unknown): void => {
        clearTimeout(timer);
        reject(new UnreachableError(this.address, error));
      };
      call.on("error", fail);
      call.on("response", (response) => {
        readReply(response).then((reply) => {
          clearTimeout(timer);
          resolve(reply);
        }, fail);
      });
      call.end(body);
    });
  }

  /** Opens a streamed answer; the caller reads it to its end or destroys it. */
  open(path: string, signal?: AbortSignal): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const call = this.#request("GET", path, signal);
      call.on("response", resolve);
      call.on("error", (error) => reject(new UnreachableError(this.address, error)));
      call.end();
    });
  }

  close(): void {
    this.#agent.destroy();
  }

  get #secure(): boolean {
    return this.#target.protocol === "https:";
  }

  #request(method: string, path: string, signal?: AbortSignal) {
    return (this.#secure ? secureRequest : request)(new URL(path, this.#target), {
      ...{ method, agent: this.#agent, headers: this.#headers },
      ...(signal === undefined ? {} : { signal }),
    });
  }
}

export async function readReply(response: IncomingMessage): Promise<Reply> {
  const body = await readBody(response, ANSWER_BYTES_MAX);
  if (!body.ok) throw new Error(`the answer is larger than ${ANSWER_BYTES_MAX} bytes`);
  return { status: response.statusCode ?? 0, text: body.text };
}

/** Whole lines, without their line breaks, until the stream ends. */
export async function* readLines(stream: IncomingMessage): AsyncGenerator<string> {
  stream.setEncoding("utf8");
  let rest = "";
  for await (const chunk of stream) {
    const lines = (rest + String(chunk)).split("\n");
    rest = lines.pop() ?? "";
    if (rest.length > LINE_CHARACTERS_MAX) throw new Error("a line of the answer never ends");
    yield* lines;
  }
}

/** Error text of a server: `{"error": text}`, or the status. */
export function refusalOf({ status, text }: Reply): string {
  try {
    const { error } = JSON.parse(text) as { readonly error?: unknown };
    if (typeof error === "string") return error;
  } catch {
    // Not from our server: only the status is known.
  }
  return `status ${status}`;
}

/** The first cause with a code explains the failure: ECONNREFUSED, ENOTFOUND. */
function reasonOf(error: unknown): string {
  const { code } = error as NodeJS.ErrnoException;
  return code ?? errorText(error);
}
