/** Limits of the connections of a process. */

import { assert } from "../../base/assert.ts";

/** Time from the first byte to the end of the greeting. */
export const GREETING_MS_MAX = 5_000;
/** Idle time before a kept connection sends a keep-alive. */
export const KEEP_ALIVE_MS = 10_000;
/** A connection without a complete frame for this long is dead, whatever the network reports. (FRAME-6) */
export const SILENCE_MS_MAX = 30_000;
/** Time the other side may take to close after we have. */
export const LINGER_MS = 1_000;
/** Backlog at which a peer that does not read our answers is disconnected. */
export const BACKLOG_BYTES_MAX = 64 * 1_048_576;
export const DIAL_MS_MAX = 2_000;
/** Time from the greeting to the answer to the opening. */
export const OPENING_MS_MAX = 5_000;
/** Messages queued longer than this for a disconnected peer are dropped: they have been repeated or abandoned since. */
export const STALE_MS = 1_000;
/** A connection that accepts nothing for this long is reconnected. */
export const STALL_MS_MAX = 5_000;
export const BACKOFF_MS_MIN = 50;
export const BACKOFF_MS_MAX = 1_000;
/**
 * Time by which every live peer has reconnected to a restarted process. A connection that was being opened when the
 * previous process died waits for its answer until the timeout, and is then redialled.
 */
export const REJOIN_MS_MAX = OPENING_MS_MAX + BACKOFF_MS_MAX + DIAL_MS_MAX;

/** Limits of the queue for one peer. */
export interface QueueLimits {
  /** Queued bytes; a little more than one window of one large group. */
  readonly bytesMax: number;
  /** Queued messages. Bounds small messages, of which many fit into `bytesMax`. */
  readonly entriesMax: number;
  /** Bytes handed to the network and not accepted by it yet. */
  readonly inHandBytesMax: number;
}

export const QUEUE_LIMITS: QueueLimits = {
  bytesMax: 16 * 1_048_576,
  entriesMax: 8_192,
  inHandBytesMax: 2 * 1_048_576,
};

/** Bytes written between two marks: the precision of `inHandBytes`, while few writes are reported. */
export const MARK_BYTES = 262_144;

assert(
  KEEP_ALIVE_MS * 2 < SILENCE_MS_MAX,
  "a keep-alive can be answered before the connection counts as silent",
);
assert(
  MARK_BYTES < QUEUE_LIMITS.inHandBytesMax,
  "marks arrive before the in-hand limit is reached",
);
