/** Binary min-heap with a stable order: equal keys leave in the order they came. */

interface Entry<Item> {
  readonly key: number;
  readonly order: number;
  readonly item: Item;
}

export class Heap<Item> {
  readonly #entries: Entry<Item>[] = [];
  #pushed = 0;

  get size(): number {
    return this.#entries.length;
  }

  peekKey(): number | undefined {
    return this.#entries[0]?.key;
  }

  push(key: number, item: Item): void {
    const entries = this.#entries;
    const entry = { key, order: this.#pushed++, item };
    let at = entries.length;
    entries.push(entry);
    while (at > 0) {
      const parentAt = (at - 1) >> 1;
      const parent = entries[parentAt] as Entry<Item>;
      if (!before(entry, parent)) break;
      entries[at] = parent;
      at = parentAt;
    }
    entries[at] = entry;
  }

  pop(): Item | undefined {
    const entries = this.#entries;
    const top = entries[0];
    const last = entries.pop();
    if (top === undefined || last === undefined || entries.length === 0) return top?.item;
    let at = 0;
    for (;;) {
      let childAt = 2 * at + 1;
      if (childAt >= entries.length) break;
      const right = entries[childAt + 1];
      if (right !== undefined && before(right, entries[childAt] as Entry<Item>)) childAt++;
      const child = entries[childAt] as Entry<Item>;
      if (!before(child, last)) break;
      entries[at] = child;
      at = childAt;
    }
    entries[at] = last;
    return top.item;
  }
}

function before<Item>(a: Entry<Item>, b: Entry<Item>): boolean {
  return a.key < b.key || (a.key === b.key && a.order < b.order);
}
