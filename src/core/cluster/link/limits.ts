/** The bounds of a process's connections, each with its reason. */

import { assert } from "../../base/assert.ts";

/** From the first byte to the end of the greeting. */
export const GREETING_MS_MAX = 5_000;
/** A kept connection that has heard nothing for so long asks whether the other side is there. */
export const KEEP_ALIVE_MS = 10_000;
/** A connection that hears no whole frame for so long is dead, whatever the network says. (FRAME-6) */
export const SILENCE_MS_MAX = 30_000;
/** How long the other side may take to close after we have. */
export const LINGER_MS = 1_000;
/** A peer that does not take what we answer is cut off when this much waits for it. */
export const BACKLOG_BYTES_MAX = 64 * 1_048_576;
export const DIAL_MS_MAX = 2_000;
/** From the greeting to the answer to the opening. */
export const OPENING_MS_MAX = 5_000;
/** What waited longer than this while the peer was away has been repeated or given up since. */
export const STALE_MS = 1_000;
/** A connection that takes nothing for so long is made anew. */
export const STALL_MS_MAX = 5_000;
export const BACKOFF_MS_MIN = 50;
export const BACKOFF_MS_MAX = 1_000;
/**
 * By then whoever lives and is meant to has called a process that has just begun: a connection that was being
 * opened when the process before it ended waits for its answer until it gives up, and is then made anew.
 */
export const REJOIN_MS_MAX = OPENING_MS_MAX + BACKOFF_MS_MAX + DIAL_MS_MAX;

/** What may wait for one peer. */
export interface QueueLimits {
  /** In the queue; a little more than one window of one large group. */
  readonly bytesMax: number;
  /** Of small messages many fit into these bytes: they are bounded, too. */
  readonly entriesMax: number;
  /** Handed to the network and not yet taken by it. */
  readonly inHandBytesMax: number;
}

export const QUEUE_LIMITS: QueueLimits = {
  bytesMax: 16 * 1_048_576,
  entriesMax: 8_192,
  inHandBytesMax: 2 * 1_048_576,
};

/** Written between two marks: what is in hand is known this well, and few writes are reported. */
export const MARK_BYTES = 262_144;

assert(KEEP_ALIVE_MS * 2 < SILENCE_MS_MAX, "a question has time to be answered");
assert(MARK_BYTES < QUEUE_LIMITS.inHandBytesMax, "what is in hand is known before it is too much");
