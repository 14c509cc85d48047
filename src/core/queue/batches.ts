/** Batches of messages between nodes: bounded by count and by bytes, in order. (TQ-38) */

import { assert } from "../base/assert.ts";

interface BatchBounds {
  readonly countMax: number;
  readonly bytesMax: number;
}

/** Number of items from the front that go together: at least one, so that none is stuck because of its size. */
export function batchLength<Item>(
  items: readonly Item[],
  bounds: BatchBounds,
  bytesOf: (item: Item) => number,
): number {
  assert(bounds.countMax >= 1, "a batch holds at least one item");
  let bytes = 0;
  let count = 0;
  for (const item of items) {
    bytes += bytesOf(item);
    if (count > 0 && (count >= bounds.countMax || bytes > bounds.bytesMax)) break;
    count++;
  }
  return count;
}

/** Splits all items into batches of at most `countMax`. */
export function batchesOf<Item>(items: readonly Item[], countMax: number): readonly Item[][] {
  const batches: Item[][] = [];
  for (let from = 0; from < items.length; from += countMax)
    batches.push(items.slice(from, from + countMax));
  return batches;
}

/**
 * Upper bound of the bytes of a text inside a JSON message, without encoding it: a character has at most three bytes in
 * UTF-8, and an escape of JSON inside JSON at most doubles a single byte.
 */
export function textBytesBound(text: string | null | undefined): number {
  return text === null || text === undefined ? 0 : text.length * 3;
}
