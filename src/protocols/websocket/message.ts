/** Encodes, decodes and matches messages. */

import type { Duration } from "../../core/base/duration.ts";
import { parseJsonBody } from "../json-body.ts";

/** Text and bytes are sent unchanged, everything else as JSON. */
export type OutgoingMessage = string | Uint8Array | object;

/** Selects the response: text that it contains, a pattern, or a function. */
export type Match = string | RegExp | ((message: WebsocketMessage) => boolean);

export interface WaitOptions {
  /** Selects the response; the next message by default. */
  readonly match?: Match;
  readonly timeout?: Duration;
}

export class WebsocketMessage {
  readonly bytes: Buffer;
  readonly isBinary: boolean;
  /** Arrival time by the clock of calls. */
  readonly arrivedAt: number;
  #text: string | undefined;
  #json: { readonly value: unknown } | undefined;

  constructor(bytes: Buffer, isBinary: boolean, arrivedAt: number) {
    this.bytes = bytes;
    this.isBinary = isBinary;
    this.arrivedAt = arrivedAt;
  }

  text(): string {
    this.#text ??= this.bytes.toString("utf8");
    return this.#text;
  }

  /** Throws when the message is not JSON. Parsed once, however many calls check whether it matches. */
  json<Value = unknown>(): Value {
    this.#json ??= { value: parseJsonBody(this.text(), "the message") };
    return this.#json.value as Value;
  }
}

/** Encodes for the wire: text frames for text and JSON, binary ones for bytes. */
export function encodeMessage(message: OutgoingMessage): string | Buffer {
  if (typeof message === "string") return message;
  if (message instanceof Uint8Array)
    return Buffer.from(message.buffer, message.byteOffset, message.byteLength);
  const text = JSON.stringify(message) as string | undefined;
  if (text === undefined) throw new TypeError(`a message cannot be a ${typeof message}`);
  return text;
}

export type Matcher = (message: WebsocketMessage) => boolean;

/** Without a match, the next message is the response. */
export function matcherOf(match: Match | undefined): Matcher | null {
  if (match === undefined) return null;
  if (typeof match === "string") return (message) => message.text().includes(match);
  // `search` ignores the position that a pattern with the flag g or y remembers.
  if (match instanceof RegExp) return (message) => message.text().search(match) >= 0;
  if (typeof match === "function") return match;
  throw new TypeError("match: text, a pattern or a function");
}
