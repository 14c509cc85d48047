/**
 * When those that are refused are to come back: one after the other, about as fast as this node has served lately.
 * Told the same time, they would come back together, press the node again and be refused together, for ever; while
 * a node that serves nobody has nothing to do.
 */

/**
 * What was served is counted by such times, and the last of them are what this node can do. Not the best of them: a
 * job is taken on sooner than it is run, and a node that had nothing to do takes on more than it can bear.
 */
const BUCKET_MS = 5_000;
const BUCKETS_KEPT = 6;
/** More than was served are called back: some find it pressed and are refused again, which costs it little. */
const OVERBOOKED = 2;
/** Before anything is known of it. */
const PER_SECOND_MIN = 2;
/** Nobody is sent away for longer: from then on several come back at the same time. */
export const RETURN_MS_MAX = 15_000;

export class ReturnSlots {
  /** Requests that were served, the present time last. */
  readonly #served: number[] = [0];
  #bucket = 0;
  #nextAt = 0;

  served(now: number): void {
    this.#turn(now);
    const last = this.#served.length - 1;
    this.#served[last] = (this.#served[last] ?? 0) + 1;
  }

  /** As it served lately. */
  perSecond(now: number): number {
    this.#turn(now);
    const all = this.#served.reduce((sum, one) => sum + one, 0);
    const forMs = (this.#served.length - 1) * BUCKET_MS + (now % BUCKET_MS);
    return Math.max(PER_SECOND_MIN, (1_000 * all) / Math.max(BUCKET_MS, forMs));
  }

  /** Milliseconds; `leastMs`: not before that. */
  take(leastMs: number, now: number): number {
    const gapMs = 1_000 / (this.perSecond(now) * OVERBOOKED);
    const isFull = this.#nextAt > now + RETURN_MS_MAX;
    const at = isFull ? now + leastMs : Math.max(now + leastMs, this.#nextAt);
    this.#nextAt = at + gapMs;
    return Math.ceil(at - now);
  }

  #turn(now: number): void {
    const bucket = Math.floor(now / BUCKET_MS);
    for (let missed = Math.min(bucket - this.#bucket, BUCKETS_KEPT); missed > 0; missed--)
      this.#served.push(0);
    this.#bucket = Math.max(bucket, this.#bucket);
    while (this.#served.length > BUCKETS_KEPT) this.#served.shift();
  }
}
