/**
 * How many requests a core may have made since its last frame, were it lost now: the most that it made in any
 * second for the load that was asked for, at the highest load that may have been asked for since.
 */

import { WINDOW_MS } from "../stats/window-store.ts";

/** Rates are taken over at least so much measured time: single windows may hold bursts. */
const STRETCH_MS = 1_000;

/** What a frame does not tell yet: its last windows are not full. */
export const OPEN_WINDOWS_MS = 2 * WINDOW_MS;

/** What a frame says. */
interface Seen {
  readonly measuredMs: number;
  readonly requests: number;
  /** The least that this core is asked for by then, in the plan's unit of load. */
  readonly load: number;
}

/** Up to a frame; `asked` is of its core at least, in the plan's unit of load times seconds. */
interface Counted {
  readonly measuredMs: number;
  readonly requests: number;
  readonly asked: number;
}

const NOTHING: Counted = { measuredMs: 0, requests: 0, asked: 0 };

/** What may have been made since: `perSecond` at most, and `most` up to now. */
export interface Unseen {
  readonly most: number;
  readonly perSecond: number;
}

export class UnseenRequests {
  /** Where the present stretch began: with a frame, so that both ends tell as much of their last windows. */
  #from: Counted | null = null;
  #last = NOTHING;
  #load = Number.POSITIVE_INFINITY;
  #seenAtMs = 0;
  /** For each unit of load that was asked for; null before a stretch is over. */
  #most: number | null = null;

  seen({ load, measuredMs, requests }: Seen, nowMs: number): void {
    const sinceMs = Math.max(0, measuredMs - this.#last.measuredMs);
    const asked = this.#last.asked + (Math.min(load, this.#load) * sinceMs) / 1_000;
    this.#last = { measuredMs, requests, asked };
    this.#load = load;
    this.#seenAtMs = nowMs;
    this.#from ??= this.#last;
    if (measuredMs - this.#from.measuredMs < STRETCH_MS) return;
    this.#most = Math.max(this.#most ?? this.#first(this.#from), ratio(this.#from, this.#last));
    this.#from = this.#last;
  }

  /** What the first frame tells is in no stretch that begins with one; a late one tells of loads that were before. */
  #first(from: Counted): number {
    return from.measuredMs < STRETCH_MS ? ratio(NOTHING, this.#last) : 0;
  }

  /** Of the last frame. */
  get measuredMs(): number {
    return this.#last.measuredMs;
  }

  /**
   * `peak`: the highest load that this core may be asked for since the last frame. `users`: what each of them had
   * under way comes on top. Null when the core had hardly begun: nothing says how much it makes.
   */
  most(nowMs: number, users: number, peak: number): Unseen | null {
    if (this.#from === null || this.#most === null || this.#last.requests === 0) return null;
    const isLong = this.#last.measuredMs - this.#from.measuredMs >= STRETCH_MS / 2;
    const perUnit = Math.max(this.#most, isLong ? ratio(this.#from, this.#last) : 0);
    const perSecond = perUnit * peak;
    const sinceMs = Math.max(STRETCH_MS, nowMs - this.#seenAtMs) + OPEN_WINDOWS_MS;
    return { most: Math.ceil((perSecond * sinceMs) / 1_000) + users, perSecond };
  }
}

function ratio(from: Counted, to: Counted): number {
  const asked = to.asked - from.asked;
  return asked > 0 ? (to.requests - from.requests) / asked : 0;
}
