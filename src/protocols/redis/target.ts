/**
 * \n A Redis server, as users write it.
 *
 *   const cache = redis.target("redis://cache.test");
 *   const price = await step("cached", cache.get("price:7"));            // value: string | null
 *   await step("store", cache.pipeline(cache.set("price:7", "12", { ttl: "30s" }), cache.incr("misses")));
 */

import type { Duration } from "../../core/base/duration.ts";
import { DescribedCall } from "../target/described-call.ts";
import type { TargetResult } from "../target/result.ts";
import {
  checkNames,
  millisecondsOf,
  Target,
  type TargetOptions,
  type TargetProtocol,
} from "../target/target.ts";
import { type RedisCommand, RedisConnection, type RedisLogin } from "./connection.ts";
import { encodeCommand, type RedisArgument, type RedisReply } from "./resp.ts";

export interface RedisOptions extends TargetOptions {
  /** User to log in as; defaults to the user in the address (redis://user:password@host). */
  readonly username?: string;
  readonly password?: string;
  /** Number of the database; defaults to the path of the address (redis://host/2). */
  readonly database?: number;
  /** Protocol version: 2 by default; 3 is negotiated by HELLO. */
  readonly resp?: 2 | 3;
}

export interface SetOptions {
  /** The key expires after this time. */
  readonly ttl?: Duration;
  /** "absent": only when the key does not exist, else the value is null; "present": only when it exists. */
  readonly when?: "absent" | "present";
}

/** A plain value: text instead of bytes. */
export type RedisValue =
  | null
  | boolean
  | number
  | bigint
  | string
  | readonly RedisValue[]
  | ReadonlyMap<unknown, RedisValue>;

/** Measured result of a command; `value` of a pipeline is the list of its values. */
export type RedisResponse<Value = RedisValue> = TargetResult<Value>;

/** A described command; steps perform it, and pipelines can include it. */
export class RedisCall<Value> extends DescribedCall<RedisCommand, Value> {
  readonly decode: (reply: unknown) => Value;
  readonly words: string;

  constructor(
    target: Target<RedisCommand>,
    command: RedisCommand,
    words: string,
    decode: (reply: unknown) => Value,
  ) {
    super(target, {
      command,
      title: words.split(" ", 1)[0] ?? "",
      shown: words,
      decode,
    });
    this.decode = decode;
    this.words = words;
  }
}

type Values<Calls extends readonly RedisCall<unknown>[]> = {
  readonly [At in keyof Calls]: Calls[At] extends RedisCall<infer Value> ? Value : never;
};

export const REDIS: TargetProtocol = {
  name: "redis",
  schemes: { redis: { port: 6379, secure: false }, rediss: { port: 6379, secure: true } },
  optionNames: ["username", "password", "database", "resp"],
};

/** Commands of one pipeline. */
const PIPELINE_COMMANDS_MAX = 10_000;

export class RedisTarget {
  readonly #target: Target<RedisCommand>;

  constructor(address: string, options: RedisOptions = {}) {
    this.#target = new Target(REDIS, address, options, (host, now) => {
      return new RedisConnection(host, login, now);
    });
    const login = loginOf(this.#target.url, options);
  }

  get(key: RedisArgument): RedisCall<string | null> {
    return this.#call(["GET", key], textOrNull);
  }

  getBytes(key: RedisArgument): RedisCall<Buffer | null> {
    return this.#call(["GET", key], (reply) => (Buffer.isBuffer(reply) ? reply : null));
  }

  set(
    key: RedisArgument,
    value: RedisArgument,
    options: SetOptions = {},
  ): RedisCall<string | null> {
    checkNames("set", options, ["ttl", "when"]);
    const words: RedisArgument[] = ["SET", key, value];
    if (options.ttl !== undefined) words.push("PX", wholeMilliseconds(options.ttl, "ttl"));
    if (options.when !== undefined) words.push(options.when === "absent" ? "NX" : "XX");
    return this.#call(words, textOrNull);
  }

  del(...keys: readonly RedisArgument[]): RedisCall<number> {
    return this.#call(["DEL", ...keys], Number);
  }

  /** Adds to a number and returns the sum. */
  incr(key: RedisArgument, by = 1): RedisCall<number> {
    return this.#call(by === 1 ? ["INCR", key] : ["INCRBY", key, by], Number);
  }

  /** Returns the number of receivers. */
  publish(channel: RedisArgument, message: RedisArgument): RedisCall<number> {
    return this.#call(["PUBLISH", channel, message], Number);
  }

  ping(): RedisCall<string | null> {
    return this.#call(["PING"], textOrNull);
  }

  /** Any command: `command("ZADD", "scores", 7, "ada")`. */
  command(name: string, ...args: readonly RedisArgument[]): RedisCall<RedisValue> {
    if (typeof name !== "string" || name === "")
      throw new TypeError('a command has a name: command("ZADD", "scores", 7, "ada")');
    return this.#call([name, ...args], (reply) => programValue(reply as RedisReply));
  }

  /**
   * Several commands in one write and one measured call. It fails with the first error among the replies; the server
   * performs the other commands all the same.
   */
  pipeline<const Calls extends readonly RedisCall<unknown>[]>(
    ...calls: Calls
  ): RedisCall<Values<Calls>> {
    if (calls.length === 0 || calls.length > PIPELINE_COMMANDS_MAX)
      throw new RangeError(`a pipeline has 1 to ${PIPELINE_COMMANDS_MAX} commands`);
    const commands = calls.reduce((sum, { command }) => sum + command.commands, 0);
    if (commands !== calls.length) throw new TypeError("a pipeline takes commands, no pipelines");
    const bytes = Buffer.concat(calls.map(({ command }) => command.bytes));
    const words = `pipeline ${calls.map((call) => call.words).join("; ")}`;
    const decode = (replies: unknown): Values<Calls> => {
      const list = commands === 1 ? [replies] : (replies as readonly unknown[]);
      return calls.map((call, at) => call.decode(list[at])) as Values<Calls>;
    };
    return new RedisCall(this.#target, { bytes, commands }, words, decode);
  }

  #call<Value>(
    words: readonly RedisArgument[],
    decode: (reply: unknown) => Value,
  ): RedisCall<Value> {
    const command = { bytes: encodeCommand(words), commands: 1 };
    return new RedisCall(this.#target, command, shownWords(words), decode);
  }
}

/** Characters shown of an argument; longer ones are cut. */
const SHOWN_CHARACTERS = 40;

function shownWords(words: readonly RedisArgument[]): string {
  const shown = words.map((word) => {
    if (word instanceof Uint8Array) return `<${word.length} bytes>`;
    const text = String(word);
    return text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text;
  });
  return shown.join(" ");
}

function loginOf(url: URL, options: RedisOptions): RedisLogin {
  const { resp = 2 } = options;
  const password = options.password ?? decodeURIComponent(url.password);
  const username = options.username ?? decodeURIComponent(url.username);
  const database = options.database ?? databaseOf(url);
  if (resp !== 2 && resp !== 3) throw new TypeError("resp is 2 or 3");
  if (!Number.isInteger(database) || database < 0)
    throw new TypeError("database is a whole number from 0");
  if (username !== "" && password === "") throw new TypeError("a username needs a password");
  const who = username === "" ? "default" : username;
  const commands: (readonly RedisArgument[])[] = [];
  if (resp === 3) commands.push(["HELLO", 3, ...(password === "" ? [] : ["AUTH", who, password])]);
  else if (password !== "")
    commands.push(username === "" ? ["AUTH", password] : ["AUTH", username, password]);
  if (database > 0) commands.push(["SELECT", database]);
  return { commands };
}

function databaseOf({ href, pathname }: URL): number {
  const path = pathname.replace(/^\//, "");
  if (path === "") return 0;
  if (/^\d{1,5}$/.test(path)) return Number(path);
  throw new TypeError(`the path of ${href} is not a database number`);
}

function wholeMilliseconds(value: Duration, what: string): number {
  const ms = Math.round(millisecondsOf(value, what));
  if (ms < 1) throw new RangeError(`${what} must be at least 1 ms`);
  return ms;
}

function textOrNull(reply: unknown): string | null {
  if (reply === null || reply === undefined) return null;
  return Buffer.isBuffer(reply) ? reply.toString("utf8") : String(reply);
}

function programValue(reply: RedisReply): RedisValue {
  if (Buffer.isBuffer(reply)) return reply.toString("utf8");
  if (Array.isArray(reply)) return (reply as readonly RedisReply[]).map(programValue);
  if (reply instanceof Map)
    return new Map([...reply].map(([key, value]) => [key, programValue(value as RedisReply)]));
  return reply as RedisValue;
}
