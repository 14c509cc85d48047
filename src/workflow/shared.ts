/**
 * Values shared by users beside their data, created once at the top of a file:
 *
 *   const ids = shared.counter("order-ids");           await ids.next()        each number once
 *   const orders = shared.queue<number>("orders");     await orders.push(id)   await orders.take()
 *
 * Shared over the whole run, all cores and workflows, unless limited by `scope: "core"`.
 */

import {
  type SharedAnswer,
  type SharedRequest,
  SharedValues,
} from "../core/load/job/shared-values.ts";
import { PROVIDED_BYTES_MAX, valueBytes } from "../core/load/job/value-size.ts";
import { DefinitionError } from "./errors.ts";

interface SharedOptions {
  /** "run" (default): between all users. "core": between those of one executor core, without a message. */
  readonly scope?: "run" | "core";
}

type Ask = (request: SharedRequest) => SharedAnswer | Promise<SharedAnswer>;

/** Values of this process: for `scope: "core"`, and outside of a run. */
const own = new SharedValues();
const askOwn: Ask = (request) => own.answer(request);
let askRun: Ask = askOwn;

/** Sets the connection of an executor core to the values shared by all cores. */
export function setSharedPort(ask: Ask): void {
  askRun = ask;
}

/** Numbers fetched at once by a counter of the whole run. */
const NUMBERS_PER_REQUEST = 64;

class SharedCounter {
  readonly #name: string;
  readonly #scope: "run" | "core";
  #from = 0;
  #to = 0;
  #fetching: Promise<void> | undefined;

  constructor(name: string, scope: "run" | "core") {
    this.#name = name;
    this.#scope = scope;
  }

  /** From 0; each number once, not in order over several cores. */
  async next(): Promise<number> {
    while (this.#from === this.#to) {
      this.#fetching ??= this.#fetch().finally(() => {
        this.#fetching = undefined;
      });
      await this.#fetching;
    }
    return this.#from++;
  }

  async #fetch(): Promise<void> {
    const ask = this.#scope === "core" ? askOwn : askRun;
    const count = this.#scope === "core" ? 1 : NUMBERS_PER_REQUEST;
    const answer = await ask({ kind: "numbers", name: this.#name, count });
    if (answer.kind !== "numbers") throw new Error("a counter was answered with something else");
    [this.#from, this.#to] = [answer.from, answer.to];
  }
}

class SharedQueue<Value> {
  readonly #name: string;
  readonly #ask: Ask;

  constructor(name: string, scope: "run" | "core") {
    this.#name = name;
    this.#ask = scope === "core" ? askOwn : (request) => askRun(request);
  }

  /** Accepts plain data; returns false when 100,000 values are queued already. */
  async push(value: Value): Promise<boolean> {
    const bytes = valueBytes(value);
    if (bytes > PROVIDED_BYTES_MAX)
      throw new RangeError(
        `queue "${this.#name}": a value of ${bytes} bytes; at most ${PROVIDED_BYTES_MAX}`,
      );
    const answer = await this.#ask({ kind: "push", name: this.#name, value });
    return answer.kind === "pushed" && answer.ok;
  }

  /** The oldest value; undefined when there is none. */
  async take(): Promise<Value | undefined> {
    const answer = await this.#ask({ kind: "take", name: this.#name });
    return answer.kind === "taken" && !answer.empty ? (answer.value as Value) : undefined;
  }
}

const NAMES_MAX = 1_000;
const names = new Set<string>();

function scopeOf(name: string, kind: string, options: SharedOptions): "run" | "core" {
  const { scope = "run" } = options;
  if (typeof name !== "string" || name === "")
    throw new DefinitionError(`shared.${kind} needs a name, the same on all cores`);
  if (scope !== "run" && scope !== "core")
    throw new DefinitionError(`shared.${kind}("${name}"): scope is "run" or "core"`);
  const key = `${kind} ${name}`;
  if (names.has(key)) throw new DefinitionError(`there are two shared ${kind}s named "${name}"`);
  if (names.size >= NAMES_MAX)
    throw new DefinitionError(
      `more than ${NAMES_MAX} shared values: make them once, at the top of a file`,
    );
  names.add(key);
  return scope;
}

export const shared = {
  counter: (name: string, options: SharedOptions = {}): SharedCounter =>
    new SharedCounter(name, scopeOf(name, "counter", options)),
  queue: <Value>(name: string, options: SharedOptions = {}): SharedQueue<Value> =>
    new SharedQueue<Value>(name, scopeOf(name, "queue", options)),
};
