/**
 * The event ids that a job's trail has let go of, so that a late repetition is still known for one. An id
 * is kept as 52 bits of its hash, in the order the ids went: two ids of one job would have to agree in
 * all of them, and then the second is refused, never applied twice. (EVT-2)
 *
 *     a chunk of 32 │ 64 │ … │ the oldest, largest block          blocks of one size become one
 *
 * A value like the trail it belongs to: adding a chunk shares all blocks that it does not merge.
 */

import { encodeUtf8 } from "../../base/bytes.ts";
import { sha256 } from "../../base/sha256.ts";
import type { EventId } from "./events.ts";
import { FORGOTTEN_EVENTS_MAX } from "./limits.ts";

/** Oldest first. */
export type Forgotten = readonly ReadonlySet<number>[];

export const FINGERPRINT_MAX = 2 ** 52 - 1;

export function fingerprintOf(eventId: EventId): number {
  const hash = sha256(encodeUtf8(eventId));
  const view = new DataView(hash.buffer, hash.byteOffset, hash.byteLength);
  return view.getUint32(0) * 2 ** 20 + (view.getUint32(4) >>> 12);
}

/** One chunk more, unless as many are known as ever will be: by then only repeatable events are taken. */
export function forget(forgotten: Forgotten, chunk: Iterable<number>): Forgotten {
  if (isFull(forgotten)) return forgotten;
  const blocks = [...forgotten, new Set(chunk)];
  for (;;) {
    const [older, newer] = blocks.slice(-2);
    if (older === undefined || newer === undefined || older.size > newer.size) return blocks;
    blocks.splice(-2, 2, new Set([...older, ...newer]));
  }
}

export function isForgotten(forgotten: Forgotten, eventId: EventId): boolean {
  if (forgotten.length === 0) return false;
  const fingerprint = fingerprintOf(eventId);
  return forgotten.some((block) => block.has(fingerprint));
}

export function isFull(forgotten: Forgotten): boolean {
  return countForgotten(forgotten) >= FORGOTTEN_EVENTS_MAX;
}

export function countForgotten(forgotten: Forgotten): number {
  let count = 0;
  for (const { size } of forgotten) count += size;
  return count;
}
