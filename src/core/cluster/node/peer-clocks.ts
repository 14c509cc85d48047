/**
 * How far our wall clock is ahead of the clocks of our peers, as they last told. Which of two clocks is wrong cannot
 * be known here; a clock that is ahead costs more, since whatever is written with it must be waited for once it is
 * corrected. The node that is ahead therefore raises the alarm.
 */

import type { Millis } from "../../base/brand.ts";
import { HLC_DRIFT_MS_MAX } from "../../base/hlc.ts";
import type { NodeId } from "../../base/ids.ts";

/** An alarm before others begin to refuse what we stamp. */
const AHEAD_MS_MAX = HLC_DRIFT_MS_MAX / 2;
/** After a pause of this process old messages are read late, and look as if our clock were ahead. */
const AHEAD_FOR_MS = 15_000;
/** Peers that lead nothing together tell each other nothing while all is quiet: what they said is old. */
const TOLD_MS_MAX = 60_000;

interface Ahead {
  /** The peer whose clock is furthest behind ours. */
  readonly peer: NodeId;
  readonly aheadMs: number;
}

interface Told {
  readonly aheadMs: number;
  readonly at: Millis;
  /** Since when our clock is ahead of this peer's; null while it is not. */
  readonly since: Millis | null;
}

export class PeerClocks {
  readonly #told = new Map<NodeId, Told>();
  #ahead: Ahead | null = null;

  /** `aheadMs`: our clock minus theirs, time on the network included. True: the alarm begins or ends. */
  onTold(peer: NodeId, aheadMs: number, now: Millis): boolean {
    const since = aheadMs > AHEAD_MS_MAX ? (this.#told.get(peer)?.since ?? now) : null;
    this.#told.set(peer, { aheadMs, at: now, since });
    return this.#hasChanged(now);
  }

  /** A peer that is not connected tells nothing of its clock. */
  forget(peer: NodeId, now: Millis): boolean {
    this.#told.delete(peer);
    return this.#hasChanged(now);
  }

  /** Null: our clock is ahead of nobody's by more than clocks may differ, or not for long. */
  get ahead(): Ahead | null {
    return this.#ahead;
  }

  #hasChanged(now: Millis): boolean {
    const before = this.#ahead;
    this.#ahead = null;
    for (const [peer, { aheadMs, at, since }] of this.#told) {
      const isLasting = since !== null && at - since >= AHEAD_FOR_MS;
      if (isLasting && now - at < TOLD_MS_MAX && aheadMs > (this.#ahead?.aheadMs ?? 0))
        this.#ahead = { peer, aheadMs };
    }
    return (this.#ahead === null) !== (before === null);
  }
}
