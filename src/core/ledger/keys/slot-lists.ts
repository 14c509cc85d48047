/**
 * Several doubly linked lists over the slots of one table; a slot is in at most one of them. Taking out of
 * the middle and moving between lists cost the same small time, without an object per entry.
 */

import { assert } from "../../base/assert.ts";
import { grownCapacity, grownColumn } from "./packed-table.ts";

const NOWHERE = 255;

export class SlotLists {
  /** slot + 1; 0 is the end. */
  #next = new Int32Array(0);
  #previous = new Int32Array(0);
  #lists = new Uint8Array(0);
  readonly #heads: number[];
  readonly #tails: number[];
  readonly #sizes: number[];

  constructor(count: number) {
    assert(count < NOWHERE, "a list's number is a byte");
    this.#heads = new Array<number>(count).fill(-1);
    this.#tails = new Array<number>(count).fill(-1);
    this.#sizes = new Array<number>(count).fill(0);
  }

  get bytes(): number {
    return this.#next.byteLength + this.#previous.byteLength + this.#lists.byteLength;
  }

  size(list: number): number {
    return this.#sizes[list] ?? 0;
  }

  /** The slot that has been in the list longest; -1 when empty. */
  first(list: number): number {
    return this.#heads[list] ?? -1;
  }

  /** -1 at the end. */
  after(slot: number): number {
    return (this.#next[slot] ?? 0) - 1;
  }

  /** Which list holds the slot. */
  listOf(slot: number): number {
    const list = this.#lists[slot] ?? NOWHERE;
    assert(list !== NOWHERE, "a slot in use is in a list");
    return list;
  }

  append(list: number, slot: number): void {
    this.#ensure(slot);
    assert(this.#lists[slot] === NOWHERE, "a slot is in one list");
    const tail = this.#tails[list] ?? -1;
    this.#lists[slot] = list;
    this.#previous[slot] = tail + 1;
    this.#next[slot] = 0;
    if (tail < 0) this.#heads[list] = slot;
    else this.#next[tail] = slot + 1;
    this.#tails[list] = slot;
    this.#sizes[list] = this.size(list) + 1;
  }

  remove(slot: number): void {
    const list = this.listOf(slot);
    const previous = (this.#previous[slot] ?? 0) - 1;
    const next = (this.#next[slot] ?? 0) - 1;
    if (previous < 0) this.#heads[list] = next;
    else this.#next[previous] = next + 1;
    if (next < 0) this.#tails[list] = previous;
    else this.#previous[next] = previous + 1;
    this.#lists[slot] = NOWHERE;
    this.#sizes[list] = this.size(list) - 1;
  }

  /** To the end of a list, from wherever it is. */
  move(list: number, slot: number): void {
    this.remove(slot);
    this.append(list, slot);
  }

  #ensure(slot: number): void {
    const held = this.#lists.length;
    if (slot < held) return;
    const capacity = Math.max(slot + 1, grownCapacity(held));
    this.#next = grownColumn(this.#next, capacity, new Int32Array(capacity));
    this.#previous = grownColumn(this.#previous, capacity, new Int32Array(capacity));
    this.#lists = grownColumn(this.#lists, capacity, new Uint8Array(capacity));
    this.#lists.fill(NOWHERE, held);
  }
}
