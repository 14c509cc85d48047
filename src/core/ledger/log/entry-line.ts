/**
 * The line before the writer's queue: entries that find it full wait here, in order, until there is space. (CW-5, SW-7)
 */

import type { WalEntry } from "./writer-types.ts";

/** The line is bounded too, in both; beyond it even waiting is refused. */
const LINE_ENTRIES_MAX = 100_000;
const LINE_BYTES_MAX = 268_435_456;
const SHIFT_MIN = 1_024;

export class EntryLine {
  #entries: WalEntry[] = [];
  #head = 0;
  /** Payload bytes in line. */
  #bytes = 0;

  get length(): number {
    return this.#entries.length - this.#head;
  }

  get hasRoom(): boolean {
    return this.length < LINE_ENTRIES_MAX && this.#bytes < LINE_BYTES_MAX;
  }

  push(entry: WalEntry): void {
    this.#entries.push(entry);
    this.#bytes += entry.payload.length;
  }

  peek(): WalEntry | undefined {
    return this.#entries[this.#head];
  }

  shift(): void {
    this.#bytes -= this.peek()?.payload.length ?? 0;
    this.#head++;
    // A line that never empties must not keep what has passed.
    if (this.#head >= SHIFT_MIN && this.#head * 2 >= this.#entries.length) {
      this.#entries = this.#entries.slice(this.#head);
      this.#head = 0;
    }
  }

  clear(): void {
    this.#entries = [];
    this.#head = 0;
    this.#bytes = 0;
  }
}
