/**
 * \n A server of events (text/event-stream), as users write it.
 *
 *   const shop = sse.target("https://shop.test");
 *   const prices = await step("prices", shop.events("/prices", { take: 10 }));
 *   const answer = await step("chat", shop.events("/chat", { method: "POST", body: { text: "hi" } }));
 */

import type { Duration } from "../../core/base/duration.ts";
import { DescribedCall } from "../target/described-call.ts";
import { type Payload, payloadBytes } from "../target/payload.ts";
import type { TargetResult } from "../target/result.ts";
import { checkNames, Target, type TargetOptions, type TargetProtocol } from "../target/target.ts";
import { TRACEPARENT } from "../trace-context.ts";
import { type SseCommand, SseConnection } from "./connection.ts";
import type { SseEvent } from "./events.ts";

export interface SseOptions extends TargetOptions {
  /** Sent with every request: `{ authorization: "Bearer …" }`. */
  readonly headers?: Readonly<Record<string, string>>;
}

export interface EventsOptions {
  /** GET by default; POST when there is a body. */
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Payload;
  /** Finishes after this many events; without it the call waits until the server ends the stream. */
  readonly take?: number;
  readonly timeout?: Duration;
}

export type SseResponse = TargetResult<readonly SseEvent[]>;
export type SseCall = DescribedCall<SseCommand, readonly SseEvent[]>;

const SSE: TargetProtocol = {
  name: "sse",
  schemes: { http: { port: 80, secure: false }, https: { port: 443, secure: true } },
  optionNames: ["headers"],
};

/** Events of one call. */
const EVENTS_MAX = 1_000_000;
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;

export class SseTarget {
  readonly #target: Target<SseCommand>;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(address: string, options: SseOptions = {}) {
    this.#target = new Target(SSE, address, options, (host, now) => new SseConnection(host, now));
    this.#headers = options.headers ?? {};
  }

  /** Requests a stream; `value` is the list of its events. */
  events(path: string, options: EventsOptions = {}): SseCall {
    checkNames("events", options, ["method", "headers", "body", "take", "timeout"]);
    const { body, headers = {}, take = 0, timeout } = options;
    const { method = body === undefined ? "GET" : "POST" } = options;
    if (!Number.isInteger(take) || take < 0 || take > EVENTS_MAX)
      throw new RangeError(`take is a whole number from 0 to ${EVENTS_MAX}`);
    if (typeof path !== "string" || !/^\/[!-~]*$/.test(path))
      throw new TypeError(
        `${JSON.stringify(path)} is not a path: it begins with "/", without spaces`,
      );
    const content = body === undefined ? null : payloadBytes(body);
    const all = { ...this.#head(content, body), ...lowered(this.#headers), ...lowered(headers) };
    if (!TOKEN.test(method)) throw new TypeError(`${JSON.stringify(method)} is not a method`);
    const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
    const head = Buffer.from(
      `${method} ${path} HTTP/1.1\r\n${lines.join("")}${END_OF_HEAD}`,
      "latin1",
    );
    return new DescribedCall(this.#target, {
      command: {
        bytes: Buffer.concat([head, content ?? NO_BYTES]),
        traceAt: TRACEPARENT in all ? -1 : head.length - END_OF_HEAD.length,
        take,
      },
      title: `${method} ${path.split("?", 1)[0]}`,
      shown: `${method} ${path}`,
      timeout,
      decode: (value) => value as readonly SseEvent[],
    });
  }

  #head(content: Uint8Array | null, body: unknown): Record<string, string> {
    const json = typeof body === "string" || body instanceof Uint8Array ? {} : JSON_TYPE;
    return {
      host: this.#target.url.host,
      accept: "text/event-stream",
      "cache-control": "no-store",
      ...(content === null ? {} : { "content-length": `${content.length}`, ...json }),
    };
  }
}

const END_OF_HEAD = "\r\n";
const NO_BYTES = Buffer.alloc(0);
const JSON_TYPE = { "content-type": "application/json" };

function lowered(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => {
      if (!TOKEN.test(name) || /[\r\n\0]/.test(String(value)))
        throw new TypeError(`the header ${JSON.stringify(name)} cannot be sent`);
      return [name.toLowerCase(), String(value)];
    }),
  );
}
