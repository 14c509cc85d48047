/**
 * Calls and iterations cut off by the end of the graceful stop. One that is younger than typical ones is inconclusive
 * and counts as interrupted; an older one is unanswered, a failure.
 */

import type { Histogram } from "./histogram.ts";

/** Name of the failure kind, in the list of kinds that cores and coordinators share. */
export const UNANSWERED = "unanswered";

/** Quantile of successful calls up to which a waiting time is typical. */
const TYPICAL_QUANTILE = 0.99;

/** Upper bound of typical times in microseconds; 0 when nothing of the kind ever succeeded. */
export function typicalUs(succeeded: Histogram): number {
  return succeeded.count === 0 ? 0 : succeeded.quantile(TYPICAL_QUANTILE);
}
