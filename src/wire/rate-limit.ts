/** Token buckets: one, and a bounded table of them by source. (SEC-7, SEC-8) */

import { assert } from "../core/base/assert.ts";

export class TokenBucket {
  readonly #size: number;
  readonly #perMs: number;
  #tokens: number;
  #at: number;

  constructor(size: number, perSecond: number, now: number) {
    assert(size >= 1 && perSecond >= 0, "a bucket holds at least one token");
    this.#size = size;
    this.#perMs = perSecond / 1_000;
    this.#tokens = size;
    this.#at = now;
  }

  take(now: number): boolean {
    // A clock that stands still or steps back adds nothing.
    if (now > this.#at) {
      this.#tokens = Math.min(this.#size, this.#tokens + (now - this.#at) * this.#perMs);
      this.#at = now;
    }
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }
}

/** A bucket per key; the least recently used one makes room, so spoofed keys cannot grow the table. */
export class BucketTable {
  readonly #buckets = new Map<string, TokenBucket>();
  readonly #size: number;
  readonly #perSecond: number;
  readonly #entriesMax: number;

  constructor(size: number, perSecond: number, entriesMax: number) {
    this.#size = size;
    this.#perSecond = perSecond;
    this.#entriesMax = entriesMax;
  }

  get entries(): number {
    return this.#buckets.size;
  }

  take(key: string, now: number): boolean {
    const held = this.#buckets.get(key);
    const bucket = held ?? new TokenBucket(this.#size, this.#perSecond, now);
    if (held !== undefined) this.#buckets.delete(key);
    this.#buckets.set(key, bucket);
    if (this.#buckets.size > this.#entriesMax) {
      for (const oldest of this.#buckets.keys()) {
        this.#buckets.delete(oldest);
        break;
      }
    }
    return bucket.take(now);
  }
}
