/**
 * Deadlines of many requests that nearly all come in order and are nearly all gone before their time: a
 * queue for those, and a heap for the few that come out of order. Taking one out only marks it, so the
 * common way costs two array operations.
 */

import { Deadlines } from "../../base/deadlines.ts";

export interface Timed {
  readonly deadline: number;
  /** Set when it is answered; it is passed over then. */
  over: boolean;
}

/** Dead places at the front of the queue before it is copied together. */
const SLACK = 1_024;

export class Timeouts<Item extends Timed> {
  #queue: Item[] = [];
  #head = 0;
  readonly #heap = new Deadlines<Item>();
  #size = 0;

  /** Items that wait. */
  get size(): number {
    return this.#size;
  }

  add(item: Item): void {
    this.#size++;
    const last = this.#queue.at(-1);
    if (last === undefined || last.deadline <= item.deadline) this.#queue.push(item);
    else this.#heap.set(item, item.deadline);
  }

  end(item: Item): void {
    if (item.over) return;
    item.over = true;
    this.#size--;
    this.#heap.delete(item);
  }

  next(): number | null {
    this.#skip();
    const first = this.#queue[this.#head]?.deadline ?? Number.POSITIVE_INFINITY;
    const at = Math.min(first, this.#heap.next() ?? Number.POSITIVE_INFINITY);
    return at === Number.POSITIVE_INFINITY ? null : at;
  }

  /** Removes and returns those whose time has come. */
  takeDue(now: number): Item[] {
    const due = this.#heap.takeDue(now);
    for (;;) {
      this.#skip();
      const first = this.#queue[this.#head];
      if (first === undefined || first.deadline > now) break;
      this.#head++;
      due.push(first);
    }
    for (const item of due) this.end(item);
    return due;
  }

  #skip(): void {
    while (this.#queue[this.#head]?.over === true) this.#head++;
    if (this.#head < SLACK || this.#head * 2 < this.#queue.length) return;
    this.#queue = this.#queue.slice(this.#head);
    this.#head = 0;
  }
}
