/**
 * The two times of a shard's primary. What waits in this process is timed by its steady clock. What is
 * written down and outlives the process is the shard's own time: as far as its log has come, and what has
 * passed since this primary took over, by the steady clock again. No wall clock is in it, so a wrong one
 * makes no key expire early; while nobody leads, the shard's time stands still. (IDEM-24)
 */

export interface Moment {
  /** Milliseconds of this process's steady clock. */
  readonly now: number;
  /** Milliseconds of the shard's own time. */
  readonly time: number;
}
