/**
 * Who waits for which append. Tickets are consecutive, so the waiters are a queue beside the log: each
 * is answered once, at the moment its mode promises. (WAL-3)
 */

import type { DurabilityMode } from "../../core/ledger/log/limits.ts";

export interface Appended {
  /** Null for mode NONE: it is answered before a number is assigned. */
  readonly lsn: number | null;
  readonly wall: number;
  readonly logical: number;
}

export interface PromiseWaiter {
  readonly mode: DurabilityMode;
  readonly wall: number;
  readonly logical: number;
  lsn: number | null;
  readonly resolve: (appended: Appended) => void;
  readonly reject: (error: Error) => void;
}

/** A promise, the ordinal of a posted entry, or nobody. */
export type Waiter = PromiseWaiter | number | null;

const SHIFT_MIN = 4_096;

export class Waiters {
  /** The first `count` posted entries are durable. */
  readonly #onPosted: (count: number) => void;
  #items: Waiter[] = [];
  #head = 0;
  /** The ticket of the waiter at the head. */
  #first = 1;

  constructor(onPosted: (count: number) => void) {
    this.#onPosted = onPosted;
  }

  push(waiter: Waiter): void {
    this.#items.push(waiter);
  }

  written(firstTicket: number, count: number, firstLsn: number): void {
    for (let i = 0; i < count; i++) {
      const at = this.#head + firstTicket + i - this.#first;
      const waiter = this.#items[at] ?? null;
      if (waiter === null || typeof waiter === "number") continue;
      waiter.lsn = firstLsn + i;
      if (waiter.mode === "FLUSH") this.#answer(waiter);
    }
  }

  durable(ticket: number): void {
    let posted = 0;
    for (; this.#first <= ticket; this.#first++) {
      const waiter = this.#items[this.#head++] ?? null;
      if (typeof waiter === "number") posted = waiter;
      else if (waiter !== null && waiter.lsn !== null) this.#answer(waiter);
    }
    if (this.#head >= SHIFT_MIN && this.#head * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    if (posted > 0) this.#onPosted(posted);
  }

  rejected(firstTicket: number, count: number, error: Error): void {
    for (let i = 0; i < count; i++) {
      const at = this.#head + firstTicket + i - this.#first;
      const waiter = this.#items[at] ?? null;
      if (waiter !== null && typeof waiter !== "number") waiter.reject(error);
      this.#items[at] = null;
    }
  }

  failed(error: Error): void {
    const left = this.#items.slice(this.#head);
    this.#items = [];
    this.#head = 0;
    for (const waiter of left) {
      if (waiter !== null && typeof waiter !== "number") waiter.reject(error);
    }
  }

  /** A second answer to a promise changes nothing, so FLUSH needs no mark. */
  #answer({ lsn, wall, logical, resolve }: PromiseWaiter): void {
    resolve({ lsn, wall, logical });
  }
}
