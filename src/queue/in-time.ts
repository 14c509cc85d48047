/** How long a caller waits for a write. */

import { QUEUE_LIMITS } from "../core/queue/defaults.ts";
import { QueueError } from "../core/queue/errors.ts";
import { within } from "../host/timer.ts";

/** A write that the database delays for too long is answered with an error; it may still take effect later. */
export function inTime<Value>(work: Promise<Value>): Promise<Value> {
  const problem =
    "the database does not answer; the write may still take effect. Repeat it with an idempotency_key to be sure";
  return within(work, QUEUE_LIMITS.writeWaitMs, () => new QueueError("UNAVAILABLE", problem));
}
