/**
 * The two clocks of a shard's primary. Waits in this process use its steady clock. Times that are stored and outlive
 * the process are the shard's own: the time reached by its log, plus the steady time since this primary took over. No
 * wall clock is involved, so a wrong one makes no key expire early; while the shard has no leader, its time stands
 * still. (IDEM-24)
 */

export interface Moment {
  /** Milliseconds of this process's steady clock. */
  readonly now: number;
  /** Milliseconds of the shard's own time. */
  readonly time: number;
}
