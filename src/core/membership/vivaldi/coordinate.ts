/**
 * A point in the latency space: Euclidean position plus a height (the member's own access link).
 * The distance of two coordinates estimates their round-trip time. (AD-35; Vivaldi, SIGCOMM 2004)
 */

export interface Coordinate {
  /** Milliseconds per axis; VIVALDI_DIMENSIONS long. */
  readonly position: readonly number[];
  /** Milliseconds of the member's access link, paid by every path. */
  readonly height: number;
  /** Relative error of this coordinate, 0 to 1.5. */
  readonly error: number;
  /** Smoothed absolute residual in milliseconds. (C40-29) */
  readonly errorMs: number;
  /** Smoothed correction of the distance, milliseconds. */
  readonly adjustment: number;
  readonly sampleCount: number;
}

export const VIVALDI_DIMENSIONS = 4;
/** Eight is serf's number; a decoder accepts up to it, the estimator refuses what is not its own. */
export const COORDINATE_DIMENSIONS_MAX = 8;
