/** Measured result of a call to a target. */

import { contentAsked } from "../failed-content.ts";
import { type CallRecord, CallResult } from "../protocol.ts";
import type { Answer } from "./exchange.ts";

export class TargetResult<Value> extends CallResult {
  override readonly protocol: string;
  /** The protocol's own name of the error, such as WRONGTYPE; "" where it has none. */
  readonly errorCode: string;
  /** Time of the login on a new connection, part of `connectMs`; negative on an open one. */
  readonly loginMs: number;
  readonly #answer: unknown;
  readonly #decode: (answer: unknown) => Value;

  constructor(
    protocol: string,
    record: CallRecord,
    answer: Answer,
    decode: (answer: unknown) => Value,
  ) {
    super(record, answer.error);
    this.protocol = protocol;
    this.errorCode = answer.errorCode;
    this.loginMs = answer.loginMs;
    this.#answer = answer.value;
    this.#decode = decode;
  }

  /** In a flow, accessing it on a failed call ends the iteration because of that call. */
  get value(): Value {
    contentAsked(this);
    if (this.errorKind !== null) throw new Error(this.error ?? "the call failed");
    return this.#decode(this.#answer);
  }

  /** The value as human-readable text. */
  text(): string {
    const { value } = this;
    if (typeof value === "string") return value;
    return value instanceof Uint8Array
      ? Buffer.from(value).toString("utf8")
      : (JSON.stringify(value, (_, item: unknown) =>
          typeof item === "bigint" ? item.toString() : item,
        ) ?? "");
  }
}
