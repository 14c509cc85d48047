/** Exponential backoff with full jitter: uniform between zero and the ceiling of this attempt. (TQ-23) */

import { assert } from "../base/assert.ts";
import type { Random } from "../base/random.ts";

export interface RetryPolicy {
  readonly baseMs: number;
  readonly maxMs: number;
}

/** `attempt` is the one that failed, counted from 1. */
export function retryDelayMs(policy: RetryPolicy, attempt: number, random: Random): number {
  assert(attempt >= 1, "attempts are counted from 1");
  const ceiling = Math.min(policy.maxMs, policy.baseMs * 2 ** Math.min(attempt - 1, 40));
  return Math.floor(random.float() * ceiling);
}
