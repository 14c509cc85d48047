/** First in, first out: taking an item does not move the rest. The caller of `push` bounds it. */

/** Places of what was taken are kept up to this many, or to as many as are left. */
const TAKEN_KEPT_MIN = 64;

export class Fifo<Item> {
  #items: (Item | undefined)[] = [];
  /** Where the first one is. */
  #head = 0;

  get size(): number {
    return this.#items.length - this.#head;
  }

  push(item: Item): void {
    this.#items.push(item);
  }

  /** The oldest; undefined when there is none. */
  take(): Item | undefined {
    const item = this.#items[this.#head];
    if (this.size === 0) return undefined;
    this.#items[this.#head++] = undefined;
    if (this.#head >= TAKEN_KEPT_MIN && this.#head >= this.size) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }

  takeAll(): Item[] {
    const all = this.#items.slice(this.#head) as Item[];
    this.#items = [];
    this.#head = 0;
    return all;
  }
}
