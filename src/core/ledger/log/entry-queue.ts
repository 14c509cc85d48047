/** The bounded queue before the writer: first in, first out, limited in entries and in bytes. (SW-8) */

import { assert } from "../../base/assert.ts";
import type { Millis } from "../../base/brand.ts";
import type { WalConfig } from "./limits.ts";
import { recordBytes } from "./record.ts";
import type { WalEntry } from "./writer-types.ts";

export interface QueuedEntry {
  readonly entry: WalEntry;
  readonly ticket: number;
  readonly at: Millis;
}

const SHIFT_MIN = 1_024;

export class EntryQueue {
  readonly #config: WalConfig;
  #items: QueuedEntry[] = [];
  #head = 0;
  #bytes = 0;

  constructor(config: WalConfig) {
    this.#config = config;
  }

  get length(): number {
    return this.#items.length - this.#head;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** An entry larger than the whole bound passes when nothing else waits. */
  hasRoom(payloadBytes: number): boolean {
    const { queueEntriesMax, queueBytesMax } = this.#config;
    if (this.length === 0) return true;
    const bytes = this.#bytes + recordBytes(payloadBytes);
    return this.length < queueEntriesMax && bytes <= queueBytesMax;
  }

  push(item: QueuedEntry): void {
    this.#items.push(item);
    this.#count(item, 1);
  }

  peek(index = 0): QueuedEntry | undefined {
    return this.#items[this.#head + index];
  }

  last(): QueuedEntry | undefined {
    return this.length === 0 ? undefined : this.#items.at(-1);
  }

  shift(): QueuedEntry {
    const item = this.#items[this.#head];
    assert(item !== undefined, "a shift is from a queue that holds something");
    this.#head++;
    this.#count(item, -1);
    if (this.#head >= SHIFT_MIN && this.#head * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }

  /** Back to the front, in their order. So the queue may hold one batch more than its bound. */
  unshift(items: readonly QueuedEntry[]): void {
    this.#items = [...items, ...this.#items.slice(this.#head)];
    this.#head = 0;
    for (const item of items) this.#count(item, 1);
  }

  drain(): readonly QueuedEntry[] {
    const all = this.#items.slice(this.#head);
    this.#items = [];
    this.#head = 0;
    this.#bytes = 0;
    return all;
  }

  #count(item: QueuedEntry, sign: 1 | -1): void {
    this.#bytes += sign * recordBytes(item.entry.payload.length);
  }
}
