/**
 * When something happens, on two clocks. Waits and repetitions inside one process follow the monotonic clock,
 * which no operator can set; what is written down and outlives the process is wall time, which should come from
 * the node's hybrid clock, so that it does not go back and peers bound its drift.
 */

export interface Moment {
  /** Monotonic milliseconds of this process. */
  readonly now: number;
  /** Wall milliseconds, for times in entries and records. */
  readonly wall: number;
}
