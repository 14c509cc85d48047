/**
 * How far our wall clock is ahead of our peers' clocks, as last reported. Which of two clocks is wrong is unknown; a
 * clock that is ahead does more harm, because everything stamped with it must be waited for once it is corrected. The
 * node that is ahead therefore raises the alarm.
 */

import type { Millis } from "../../base/brand.ts";
import { HLC_DRIFT_MS_MAX } from "../../base/hlc.ts";
import type { NodeId } from "../../base/ids.ts";

/** Raises the alarm before others begin to reject our timestamps. */
const AHEAD_MS_MAX = HLC_DRIFT_MS_MAX / 2;
/**
 * Minimum duration. After a pause of this process old messages are read late, which looks as if our clock were ahead.
 */
const AHEAD_FOR_MS = 15_000;
/** Age limit of a report. Peers without a common group exchange nothing while all is quiet. */
const REPORT_AGE_MS_MAX = 60_000;

interface Ahead {
  /** Peer whose clock is furthest behind ours. */
  readonly peer: NodeId;
  readonly aheadMs: number;
}

interface Report {
  readonly aheadMs: number;
  readonly at: Millis;
  /** Since when our clock is ahead of this peer's; null if it is not. */
  readonly since: Millis | null;
}

export class PeerClocks {
  readonly #reports = new Map<NodeId, Report>();
  #ahead: Ahead | null = null;

  /** `aheadMs`: our clock minus theirs, including network delay. Returns true if the alarm begins or ends. */
  onReceived(peer: NodeId, aheadMs: number, now: Millis): boolean {
    const since = aheadMs > AHEAD_MS_MAX ? (this.#reports.get(peer)?.since ?? now) : null;
    this.#reports.set(peer, { aheadMs, at: now, since });
    return this.#hasChanged(now);
  }

  /** Forgets the clock of a disconnected peer. */
  forget(peer: NodeId, now: Millis): boolean {
    this.#reports.delete(peer);
    return this.#hasChanged(now);
  }

  /** Null unless our clock has been ahead by more than the tolerance for a while. */
  get ahead(): Ahead | null {
    return this.#ahead;
  }

  #hasChanged(now: Millis): boolean {
    const before = this.#ahead;
    this.#ahead = null;
    for (const [peer, { aheadMs, at, since }] of this.#reports) {
      const isLasting = since !== null && at - since >= AHEAD_FOR_MS;
      if (isLasting && now - at < REPORT_AGE_MS_MAX && aheadMs > (this.#ahead?.aheadMs ?? 0))
        this.#ahead = { peer, aheadMs };
    }
    return (this.#ahead === null) !== (before === null);
  }
}
