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
    this.#refill(now);
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }

  /** Until the next token is there: 0 when one is, infinite when none will ever be. (AD-24.4) */
  waitMs(now: number): number {
    this.#refill(now);
    if (this.#tokens >= 1) return 0;
    // Up by one in the last place, so that after this wait the token is whole.
    return Math.ceil(((1 - this.#tokens) / this.#perMs) * 1_000 + 1) / 1_000;
  }

  #refill(now: number): void {
    // A clock that stalls or steps back adds nothing.
    if (now <= this.#at) return;
    this.#tokens = Math.min(this.#size, this.#tokens + (now - this.#at) * this.#perMs);
    this.#at = now;
  }
}

/** A bucket per key; the least recently used one is evicted, so spoofed keys cannot grow the table. */
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
    return this.#of(key, now).take(now);
  }

  waitMs(key: string, now: number): number {
    return this.#buckets.get(key)?.waitMs(now) ?? 0;
  }

  #of(key: string, now: number): TokenBucket {
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
    return bucket;
  }
}
