/**
 * Shared state of all users of a run, beside their data: counters that assign each number once, and queues. One machine
 * for all cores and workflows; a core sends requests, the answer is plain data.
 */

import { assertNever } from "../../base/assert.ts";

export type SharedRequest =
  /** Requests this many unique numbers. */
  | { readonly kind: "numbers"; readonly name: string; readonly count: number }
  | { readonly kind: "push"; readonly name: string; readonly value: unknown }
  | { readonly kind: "take"; readonly name: string };

export type SharedAnswer =
  | { readonly kind: "numbers"; readonly from: number; readonly to: number }
  /** False when the queue is full. */
  | { readonly kind: "pushed"; readonly ok: boolean }
  /** Absent: the queue was empty. */
  | { readonly kind: "taken"; readonly value?: unknown; readonly empty: boolean };

/** Maximum values in one queue; a full one rejects further ones, and its writer decides. */
const QUEUE_LENGTH_MAX = 100_000;

/** Numbers of one name that each of several places may assign. */
const NUMBERS_PER_PLACE = 2 ** 40;

/** Assigns each number once per name: from 0, or behind the range of the places before. */
export class NumberCounters {
  readonly #next: Map<string, number>;
  readonly #first: number;

  constructor(next: Readonly<Record<string, number>> = {}, place = 0) {
    this.#next = new Map(Object.entries(next));
    this.#first = place * NUMBERS_PER_PLACE;
  }

  /** The next number of each name. */
  get next(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#next);
  }

  take(name: string, count: number): { readonly from: number; readonly to: number } {
    const from = this.#next.get(name) ?? this.#first;
    const to = from + Math.max(1, Math.floor(count));
    this.#next.set(name, to);
    return { from, to };
  }
}

export class SharedValues {
  readonly #counters = new NumberCounters();
  readonly #queues = new Map<string, Queue>();

  answer(request: SharedRequest): SharedAnswer {
    switch (request.kind) {
      case "numbers":
        return { kind: "numbers", ...this.#counters.take(request.name, request.count) };
      case "push":
        return { kind: "pushed", ok: this.#queue(request.name).push(request.value) };
      case "take": {
        const queue = this.#queue(request.name);
        if (queue.length === 0) return { kind: "taken", empty: true };
        return { kind: "taken", empty: false, value: queue.shift() };
      }
      default:
        return assertNever(request);
    }
  }

  #queue(name: string): Queue {
    let queue = this.#queues.get(name);
    if (queue === undefined) {
      queue = new Queue();
      this.#queues.set(name, queue);
    }
    return queue;
  }
}

/** First in, first out. Taken values are removed in batches, so that taking is cheap. */
class Queue {
  #values: unknown[] = [];
  #taken = 0;

  get length(): number {
    return this.#values.length - this.#taken;
  }

  push(value: unknown): boolean {
    if (this.length >= QUEUE_LENGTH_MAX) return false;
    this.#values.push(value);
    return true;
  }

  shift(): unknown {
    const value = this.#values[this.#taken];
    this.#values[this.#taken++] = undefined;
    if (this.#taken > 1_024 && this.#taken * 2 > this.#values.length) {
      this.#values = this.#values.slice(this.#taken);
      this.#taken = 0;
    }
    return value;
  }
}
