/**
 * When those that are refused are to come back: one after the other, about as fast as this node has served lately.
 * Told the same time, they would come back together, press the node again and be refused together, for ever; while
 * a node that serves nobody has nothing to do.
 *
 * How much faster or slower than it has served shows in whom it refuses: each refusal costs it what a part of a job
 * costs. Where many are refused there are enough without them, and fewer are called back; where few are, it could
 * serve more, and more are.
 */

import { assert } from "../../base/assert.ts";

/**
 * What was served is counted by such times, and the last of them are what this node can do. Not the best of them: a
 * job is taken on sooner than it is run, and a node that had nothing to do takes on more than it can bear.
 */
const BUCKET_MS = 5_000;
const BUCKETS_KEPT = 6;
/** So many are called back for each that was served: at first and at most, and at least. */
const BOOKED_MAX = 2;
const BOOKED_MIN = 0.5;
/** By how much that changes from one time to the next. */
const BOOKED_STEP = 1.25;
/** Of all who come: fewer refusals than the first leave the node idle, more than the other keep it from its work. */
const REFUSED_FEW = 0.15;
const REFUSED_MANY = 0.25;
/** Before anything is known of it. */
const PER_SECOND_MIN = 2;
/** Nobody is sent away for longer: from then on several come back at the same time. */
export const RETURN_MS_MAX = 15_000;

assert(REFUSED_FEW < REFUSED_MANY && BOOKED_MIN < BOOKED_MAX, "between bounds there is room");

interface Bucket {
  served: number;
  refused: number;
}

export class ReturnSlots {
  /** The present time last. */
  readonly #buckets: Bucket[] = [{ served: 0, refused: 0 }];
  #last = 0;
  #nextAt = 0;
  #booked = BOOKED_MAX;

  served(now: number): void {
    this.#present(now).served++;
  }

  /** As it served lately. */
  perSecond(now: number): number {
    this.#present(now);
    const all = this.#buckets.reduce((sum, { served }) => sum + served, 0);
    const forMs = (this.#buckets.length - 1) * BUCKET_MS + (now % BUCKET_MS);
    return Math.max(PER_SECOND_MIN, (1_000 * all) / Math.max(BUCKET_MS, forMs));
  }

  /** Milliseconds; `leastMs`: not before that. */
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

  /** A time is over: what it shows for the next. */
  #book({ refused, served }: Bucket = { refused: 0, served: 0 }): void {
    const share = refused === 0 ? 0 : refused / (refused + served);
    if (share > REFUSED_MANY) this.#booked = Math.max(BOOKED_MIN, this.#booked / BOOKED_STEP);
    if (share < REFUSED_FEW) this.#booked = Math.min(BOOKED_MAX, this.#booked * BOOKED_STEP);
  }
}
