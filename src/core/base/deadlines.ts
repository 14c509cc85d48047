/**
 * Many deadlines, one timer: a binary heap that also knows where each key is, so that a deadline which
 * is no longer needed is removed at once and leaves nothing behind. Equal times come in the order set.
 */

import { assert } from "./assert.ts";

interface Entry<Key> {
  readonly key: Key;
  readonly at: number;
  readonly order: number;
}

export class Deadlines<Key> {
  readonly #heap: Entry<Key>[] = [];
  readonly #places = new Map<Key, number>();
  #made = 0;

  get size(): number {
    return this.#heap.length;
  }

  /** The earliest deadline; null when there is none. */
  next(): number | null {
    return this.#heap[0]?.at ?? null;
  }

  /** Sets or moves the deadline of a key. */
  set(key: Key, at: number): void {
    this.delete(key);
    this.#heap.push({ key, at, order: this.#made++ });
    this.#rise(this.#heap.length - 1);
  }

  delete(key: Key): void {
    const place = this.#places.get(key);
    if (place === undefined) return;
    this.#places.delete(key);
    const last = this.#heap.pop();
    assert(last !== undefined, "a key with a place is in the heap");
    if (place === this.#heap.length) return;
    this.#put(place, last);
    this.#sink(place);
    this.#rise(place);
  }

  clear(): void {
    this.#heap.length = 0;
    this.#places.clear();
  }

  /** Removes and returns the keys whose time has come, in order. */
  takeDue(now: number): Key[] {
    const due: Key[] = [];
    for (;;) {
      const first = this.#heap[0];
      if (first === undefined || first.at > now) return due;
      due.push(first.key);
      this.delete(first.key);
    }
  }

  #rise(from: number): void {
    let place = from;
    const entry = this.#at(place);
    while (place > 0) {
      const parent = (place - 1) >> 1;
      if (!before(entry, this.#at(parent))) break;
      this.#put(place, this.#at(parent));
      place = parent;
    }
    this.#put(place, entry);
  }

  #sink(from: number): void {
    let place = from;
    const entry = this.#at(place);
    for (;;) {
      let child = 2 * place + 1;
      if (child >= this.#heap.length) break;
      const right = child + 1;
      if (right < this.#heap.length && before(this.#at(right), this.#at(child))) child = right;
      if (!before(this.#at(child), entry)) break;
      this.#put(place, this.#at(child));
      place = child;
    }
    this.#put(place, entry);
  }

  #at(place: number): Entry<Key> {
    const entry = this.#heap[place];
    assert(entry !== undefined, "a place lies inside the heap");
    return entry;
  }

  #put(place: number, entry: Entry<Key>): void {
    this.#heap[place] = entry;
    this.#places.set(entry.key, place);
  }
}

function before<Key>(a: Entry<Key>, b: Entry<Key>): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}
