/**
 * Many deadlines, one tick. Far ones wait in coarse buckets of a second, near ones in fine buckets of
 * a tenth; when the coarse hand reaches a bucket, its entries cascade by their exact time. Entries
 * beyond the horizon are filed at its end and filed again when the hand comes round. Adding, moving
 * and removing are O(1); nothing fires early, nor more than one fine tick late. (AD-30, WHEEL-1..7)
 */

import { assert } from "../../base/assert.ts";

export const COARSE_TICK_MS = 1_000;
export const COARSE_BUCKETS = 64;
export const FINE_TICK_MS = 100;
export const FINE_BUCKETS = 10;
export const WHEEL_ENTRIES_MAX = 10_000;

interface Entry {
  readonly key: string;
  deadline: number;
  bucket: Map<string, Entry>;
}

export class TimingWheel {
  readonly #entries = new Map<string, Entry>();
  readonly #coarse = Array.from({ length: COARSE_BUCKETS }, () => new Map<string, Entry>());
  readonly #fine = Array.from({ length: FINE_BUCKETS }, () => new Map<string, Entry>());
  /** Fine ticks since the beginning of time; the hands are derived from it. */
  #tick: number;
  #refused = 0;

  constructor(now: number) {
    this.#tick = Math.floor(now / FINE_TICK_MS);
  }

  get size(): number {
    return this.#entries.size;
  }

  get refused(): number {
    return this.#refused;
  }

  /** False when the wheel is full; a known key is moved. */
  set(key: string, deadline: number): boolean {
    const known = this.#entries.get(key);
    if (known !== undefined) {
      known.bucket.delete(key);
      known.deadline = deadline;
      this.#file(known);
      return true;
    }
    if (this.#entries.size >= WHEEL_ENTRIES_MAX) {
      this.#refused++;
      return false;
    }
    const entry: Entry = { key, deadline, bucket: new Map() };
    this.#entries.set(key, entry);
    this.#file(entry);
    return true;
  }

  delete(key: string): boolean {
    const entry = this.#entries.get(key);
    if (entry === undefined) return false;
    entry.bucket.delete(key);
    this.#entries.delete(key);
    return true;
  }

  /** When the hand must move next; null while nothing waits. */
  nextTickAt(): number | null {
    return this.#entries.size === 0 ? null : (this.#tick + 1) * FINE_TICK_MS;
  }

  /** Moves the hand to `now`; missed ticks are made up in order. Returns what is due, earliest tick first. */
  advance(now: number): string[] {
    const due: string[] = [];
    const until = Math.floor(now / FINE_TICK_MS);
    if (this.#entries.size === 0) this.#tick = Math.max(this.#tick, until);
    while (this.#tick < until) {
      this.#tick++;
      if (this.#tick % FINE_BUCKETS === 0) this.#cascade();
      const bucket = this.#fine[this.#tick % FINE_BUCKETS] as Map<string, Entry>;
      for (const entry of [...bucket.values()]) {
        if (Math.ceil(entry.deadline / FINE_TICK_MS) > this.#tick) continue;
        bucket.delete(entry.key);
        this.#entries.delete(entry.key);
        due.push(entry.key);
      }
    }
    return due;
  }

  /** One coarse bucket comes due: each entry goes where its exact time says. */
  #cascade(): void {
    const index = Math.floor(this.#tick / FINE_BUCKETS) % COARSE_BUCKETS;
    const bucket = this.#coarse[index] as Map<string, Entry>;
    const entries = [...bucket.values()];
    bucket.clear();
    for (const entry of entries) this.#file(entry);
  }

  #file(entry: Entry): void {
    // Due no earlier than the next fine tick, and never before the deadline.
    const tick = Math.max(Math.ceil(entry.deadline / FINE_TICK_MS), this.#tick + 1);
    const coarseNow = Math.floor(this.#tick / FINE_BUCKETS);
    const coarseThen = Math.floor(tick / FINE_BUCKETS);
    if (coarseThen === coarseNow) {
      entry.bucket = this.#fine[tick % FINE_BUCKETS] as Map<string, Entry>;
    } else {
      // Beyond the horizon: the last bucket before the hand; it is filed again when that comes due.
      const ahead = Math.min(coarseThen - coarseNow, COARSE_BUCKETS - 1);
      assert(ahead >= 1, "a coarse entry lies ahead of the hand");
      entry.bucket = this.#coarse[(coarseNow + ahead) % COARSE_BUCKETS] as Map<string, Entry>;
    }
    entry.bucket.set(entry.key, entry);
  }
}
