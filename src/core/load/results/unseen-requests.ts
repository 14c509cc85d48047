/**
 * Upper bound of the requests a core may have made since its last frame, if it is lost now: its highest rate in any
 * second per unit of required load, at the highest load that may have been required since.
 */

import { WINDOW_MS } from "../stats/window-store.ts";

/** Rates are measured over at least this much time: single windows may contain bursts. */
const STRETCH_MS = 1_000;

/** A frame does not include its last windows, which are not full. */
export const OPEN_WINDOWS_MS = 2 * WINDOW_MS;

/** Contents of a frame. */
interface Seen {
  readonly measuredMs: number;
  readonly requests: number;
  /** The minimum load required of this core by then, in the plan's unit of load. */
  readonly load: number;
}

/** Totals up to a frame; `required`: minimum for its core, in the plan's unit of load times seconds. */
interface Counted {
  readonly measuredMs: number;
  readonly requests: number;
  readonly required: number;
}

const NOTHING: Counted = { measuredMs: 0, requests: 0, required: 0 };

/** Requests that may have been made since: at most `perSecond`, and `most` up to now. */
export interface Unseen {
  readonly most: number;
  readonly perSecond: number;
}

export class UnseenRequests {
  /** Start of the present stretch: a frame, so that both ends omit equally much of their last windows. */
  #from: Counted | null = null;
  #last = NOTHING;
  #load = Number.POSITIVE_INFINITY;
  #seenAtMs = 0;
  /** Per unit of required load; null before a stretch is over. */
  #most: number | null = null;

  seen({ load, measuredMs, requests }: Seen, nowMs: number): void {
    const sinceMs = Math.max(0, measuredMs - this.#last.measuredMs);
    const required = this.#last.required + (Math.min(load, this.#load) * sinceMs) / 1_000;
    this.#last = { measuredMs, requests, required };
    this.#load = load;
    this.#seenAtMs = nowMs;
    this.#from ??= this.#last;
    if (measuredMs - this.#from.measuredMs < STRETCH_MS) return;
    this.#most = Math.max(this.#most ?? this.#first(this.#from), ratio(this.#from, this.#last));
    this.#from = this.#last;
  }

  /** The contents of the first frame belong to no stretch; a late one includes earlier loads. */
  #first(from: Counted): number {
    return from.measuredMs < STRETCH_MS ? ratio(NOTHING, this.#last) : 0;
  }

  /** Measured time of the last frame. */
  get measuredMs(): number {
    return this.#last.measuredMs;
  }

  /**
   * `peak`: the highest load that may have been required of this core since the last frame. `users`: adds the call in
   * flight of each. Null when the core had hardly begun: its rate is unknown.
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
  const required = to.required - from.required;
  return required > 0 ? (to.requests - from.requests) / required : 0;
}
