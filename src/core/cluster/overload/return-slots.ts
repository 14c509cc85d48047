/**
 * Retry times of rejected clients: spaced at about the rate this node has served lately. With the same time for all,
 * they would return together, overload the node again and be rejected together, for ever, while it idles in between.
 *
 * The share of rejections adjusts the rate: each rejection costs as much as a part of a job. When many are rejected
 * there are enough clients without them, and fewer are called back; when few are, the node could serve more, and more
 * are called back.
 */

import { assert } from "../../base/assert.ts";

/**
 * Served requests are counted in intervals of this length; the average of the last ones is the capacity of this node.
 * The maximum would be wrong: a job is accepted faster than it runs, and an idle node accepts more than it can sustain.
 */
const BUCKET_MS = 5_000;
const BUCKETS_KEPT = 6;
/** Clients called back per served request: initially and at most, and at least. */
const BOOKED_MAX = 2;
const BOOKED_MIN = 0.5;
/** Factor of change from one interval to the next. */
const BOOKED_STEP = 1.25;
/**
 * Share of rejections among all requests: below the first the node idles, above the other rejections keep it from its
 * work.
 */
const REFUSED_FEW = 0.15;
const REFUSED_MANY = 0.25;
/** Rate before anything is known. */
const PER_SECOND_MIN = 2;
/** Maximum delay: beyond it several clients share a slot. */
export const RETURN_MS_MAX = 15_000;

assert(REFUSED_FEW < REFUSED_MANY && BOOKED_MIN < BOOKED_MAX, "between bounds there is room");

interface Bucket {
  served: number;
  refused: number;
}

export class ReturnSlots {
  /** The current interval last. */
  readonly #buckets: Bucket[] = [{ served: 0, refused: 0 }];
  #last = 0;
  #nextAt = 0;
  #booked = BOOKED_MAX;

  served(now: number): void {
    this.#present(now).served++;
  }

  /** Recent service rate. */
  perSecond(now: number): number {
    this.#present(now);
    const all = this.#buckets.reduce((sum, { served }) => sum + served, 0);
    const forMs = (this.#buckets.length - 1) * BUCKET_MS + (now % BUCKET_MS);
    return Math.max(PER_SECOND_MIN, (1_000 * all) / Math.max(BUCKET_MS, forMs));
  }

  /** Returns a delay in milliseconds, at least `leastMs`. */
  take(leastMs: number, now: number): number {
    this.#present(now).refused++;
    const gapMs = 1_000 / (this.perSecond(now) * this.#booked);
    const isFull = this.#nextAt > now + RETURN_MS_MAX;
    const at = isFull ? now + leastMs : Math.max(now + leastMs, this.#nextAt);
    this.#nextAt = at + gapMs;
    return Math.ceil(at - now);
  }

  #present(now: number): Bucket {
    const bucket = Math.floor(now / BUCKET_MS);
    for (let missed = Math.min(bucket - this.#last, BUCKETS_KEPT); missed > 0; missed--) {
      this.#book(this.#buckets.at(-1));
      this.#buckets.push({ served: 0, refused: 0 });
    }
    this.#last = Math.max(bucket, this.#last);
    while (this.#buckets.length > BUCKETS_KEPT) this.#buckets.shift();
    const present = this.#buckets.at(-1);
    assert(present !== undefined, "there is a present");
    return present;
  }

  /** Adjusts the rate after an interval. */
  #book({ refused, served }: Bucket = { refused: 0, served: 0 }): void {
    const share = refused === 0 ? 0 : refused / (refused + served);
    if (share > REFUSED_MANY) this.#booked = Math.max(BOOKED_MIN, this.#booked / BOOKED_STEP);
    if (share < REFUSED_FEW) this.#booked = Math.min(BOOKED_MAX, this.#booked * BOOKED_STEP);
  }
}
