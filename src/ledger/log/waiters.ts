/**
 * Callers waiting for appends. Tickets are consecutive, so the waiters are a queue beside the log: each is answered
 * once, when its entry is durable. (WAL-3)
 */

export interface Appended {
  readonly lsn: number;
  readonly wall: number;
  readonly logical: number;
}

interface PromiseWaiter {
  readonly wall: number;
  readonly logical: number;
  lsn: number | null;
  readonly resolve: (appended: Appended) => void;
  readonly reject: (error: Error) => void;
}

/** A promise, or the ordinal of a posted entry. */
export type Waiter = PromiseWaiter | number;

const SHIFT_MIN = 4_096;

export class Waiters {
  /** The first `count` posted entries are durable. */
  readonly #onPosted: (count: number) => void;
  /** Null: already rejected and notified. */
  #items: (Waiter | null)[] = [];
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
    }
  }

  durable(ticket: number): void {
    let posted = 0;
    for (; this.#first <= ticket; this.#first++) {
      const waiter = this.#items[this.#head++] ?? null;
      if (typeof waiter === "number") posted = waiter;
      else if (waiter !== null && waiter.lsn !== null) {
        const { lsn, wall, logical, resolve } = waiter;
        resolve({ lsn, wall, logical });
      }
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
}
