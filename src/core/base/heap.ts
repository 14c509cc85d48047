/**
 * A binary min-heap whose items know their index, so that any of them can be moved or removed in O(log n). The caller
 * defines the order of items; an order without ties makes it deterministic.
 */

import { assert } from "./assert.ts";

export interface HeapItem {
  /** Written by the heap; -1 while the item is in none. */
  place: number;
}

export class Heap<Item extends HeapItem> {
  readonly #items: Item[] = [];
  readonly #before: (a: Item, b: Item) => boolean;

  constructor(before: (a: Item, b: Item) => boolean) {
    this.#before = before;
  }

  get size(): number {
    return this.#items.length;
  }

  /** The first item, which stays. */
  peek(): Item | undefined {
    return this.#items[0];
  }

  /** Every item, in no order: not to be changed meanwhile. */
  items(): Iterable<Item> {
    return this.#items;
  }

  push(item: Item): void {
    assert(item.place < 0, "an item is in one heap, once");
    this.#rise(item, this.#items.length);
  }

  pop(): Item | undefined {
    const first = this.#items[0];
    if (first !== undefined) this.remove(first);
    return first;
  }

  remove(item: Item): void {
    const { place } = item;
    assert(this.#items[place] === item, "an item is where it says");
    item.place = -1;
    const last = this.#items.pop() as Item;
    if (last === item) return;
    last.place = place;
    this.moved(last);
  }

  /** An item of this heap has changed what it is ordered by. */
  moved(item: Item): void {
    const { place } = item;
    if (!this.#sink(item, place)) this.#rise(item, place);
  }

  #rise(item: Item, from: number): void {
    const items = this.#items;
    let place = from;
    while (place > 0) {
      const above = (place - 1) >> 1;
      const parent = items[above] as Item;
      if (!this.#before(item, parent)) break;
      items[place] = parent;
      parent.place = place;
      place = above;
    }
    items[place] = item;
    item.place = place;
  }

  /** False when the item stays where it is. */
  #sink(item: Item, from: number): boolean {
    const items = this.#items;
    let place = from;
    for (;;) {
      let below = 2 * place + 1;
      if (below >= items.length) break;
      const right = items[below + 1];
      if (right !== undefined && this.#before(right, items[below] as Item)) below++;
      const child = items[below] as Item;
      if (!this.#before(child, item)) break;
      items[place] = child;
      child.place = place;
      place = below;
    }
    items[place] = item;
    item.place = place;
    return place !== from;
  }
}
