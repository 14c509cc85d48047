/**
 * Many deadlines, one timer. A deadline that is moved or no longer needed leaves nothing behind.
 * Setting, moving and removing cost O(log n), and next to nothing for deadlines that come in order.
 * Equal times come due in the order in which they were set.
 */

import { Heap, type HeapItem } from "./heap.ts";

interface Entry<Key> extends HeapItem {
  readonly key: Key;
  at: number;
  order: number;
}

export class Deadlines<Key> {
  readonly #heap = new Heap<Entry<Key>>(before);
  readonly #entries = new Map<Key, Entry<Key>>();
  #made = 0;

  get size(): number {
    return this.#heap.size;
  }

  /** The earliest deadline; null when there is none. */
  next(): number | null {
    return this.#heap.peek()?.at ?? null;
  }

  /** Sets or moves the deadline of a key. */
  set(key: Key, at: number): void {
    const order = this.#made++;
    const known = this.#entries.get(key);
    if (known !== undefined) {
      known.at = at;
      known.order = order;
      this.#heap.moved(known);
      return;
    }
    const entry = { key, at, order, place: -1 };
    this.#entries.set(key, entry);
    this.#heap.push(entry);
  }

  /** Returns false if the key has no deadline. */
  delete(key: Key): boolean {
    const entry = this.#entries.get(key);
    if (entry === undefined) return false;
    this.#entries.delete(key);
    this.#heap.remove(entry);
    return true;
  }

  /** Removes and returns the keys whose deadline has passed, in order. */
  takeDue(now: number): Key[] {
    const due: Key[] = [];
    for (;;) {
      const first = this.#heap.peek();
      if (first === undefined || first.at > now) return due;
      this.#heap.remove(first);
      this.#entries.delete(first.key);
      due.push(first.key);
    }
  }
}

function before<Key>(a: Entry<Key>, b: Entry<Key>): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}
