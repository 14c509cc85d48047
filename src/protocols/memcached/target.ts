/**
 * \n A memcached server, as users write it.
 *
 *   const cache = memcached.target("memcached://cache.test");
 *   const price = await step("cached", cache.get("price:7"));            // value: string | null
 */

import type { Duration } from "../../core/base/duration.ts";
import { DescribedCall } from "../target/described-call.ts";
import { type Payload, payloadBytes } from "../target/payload.ts";
import type { TargetResult } from "../target/result.ts";
import {
  checkNames,
  millisecondsOf,
  Target,
  type TargetOptions,
  type TargetProtocol,
} from "../target/target.ts";
import { type MemcachedCommand, MemcachedConnection } from "./connection.ts";

export interface SetOptions {
  /** Whole seconds; the key expires after that. */
  readonly ttl?: Duration;
}

export type MemcachedResponse<Value = unknown> = TargetResult<Value>;

export type MemcachedCall<Value> = DescribedCall<MemcachedCommand, Value>;

export const MEMCACHED: TargetProtocol = {
  name: "memcached",
  schemes: {
    memcached: { port: 11211, secure: false },
    memcacheds: { port: 11211, secure: true },
  },
  optionNames: [],
};

export class MemcachedTarget {
  readonly #target: Target<MemcachedCommand>;

  constructor(address: string, options: TargetOptions = {}) {
    this.#target = new Target(
      MEMCACHED,
      address,
      options,
      (host, now) => new MemcachedConnection(host, now),
    );
  }

  get(key: string): MemcachedCall<string | null> {
    const decode = (value: unknown) => (Buffer.isBuffer(value) ? value.toString("utf8") : null);
    return this.#call("get", `get ${checkKey(key)}`, decode);
  }

  /** `value` is true when it was stored. */
  set(key: string, value: Payload, options: SetOptions = {}): MemcachedCall<boolean> {
    checkNames("set", options, ["ttl"]);
    const seconds = options.ttl === undefined ? 0 : millisecondsOf(options.ttl, "ttl") / 1_000;
    if (!Number.isInteger(seconds)) throw new RangeError("ttl is in whole seconds");
    const data = payloadBytes(value);
    const line = `set ${checkKey(key)} 0 ${seconds} ${data.length}`;
    return this.#call("set", line, (answer) => answer === "STORED", data);
  }

  /** `value` is true when the key existed. */
  delete(key: string): MemcachedCall<boolean> {
    return this.#call("delete", `delete ${checkKey(key)}`, (answer) => answer === "DELETED");
  }

  /** `value` is the sum; null when the key does not exist. */
  incr(key: string, by = 1): MemcachedCall<number | null> {
    const decode = (answer: unknown) => (answer === "NOT_FOUND" ? null : Number(answer));
    return this.#call("incr", `incr ${checkKey(key)} ${by}`, decode);
  }

  version(): MemcachedCall<string> {
    return this.#call("version", "version", String);
  }

  #call<Value>(
    title: string,
    line: string,
    decode: (answer: unknown) => Value,
    data?: Uint8Array,
  ): MemcachedCall<Value> {
    const parts = [Buffer.from(`${line}\r\n`), ...(data === undefined ? [] : [data, CRLF])];
    return new DescribedCall(this.#target, {
      command: { bytes: Buffer.concat(parts) },
      title,
      shown: line,
      decode,
    });
  }
}

const CRLF = Buffer.from("\r\n");

function checkKey(key: unknown): string {
  if (typeof key === "string" && /^[!-~]{1,250}$/.test(key)) return key;
  throw new TypeError(`${JSON.stringify(key)} is not a key: 1 to 250 characters without spaces`);
}
