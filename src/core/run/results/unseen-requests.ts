/**
 * How many requests a core may have made since its last frame, were it lost now: the most that it made in any
 * second, for as long as nothing was seen of it.
 */

/** Rates are taken over at least so much measured time: single windows may hold bursts. */
const STRETCH_MS = 1_000;

export class UnseenRequests {
  #from = { measuredMs: 0, requests: 0 };
  #last = { measuredMs: 0, requests: 0, seenAtMs: 0 };
  /** Per millisecond. */
  #most = 0;

  /** A frame says how much was made in how much measured time. */
  seen(measuredMs: number, requests: number, nowMs: number): void {
    this.#last = { measuredMs, requests, seenAtMs: nowMs };
    const stretchMs = measuredMs - this.#from.measuredMs;
    if (stretchMs < STRETCH_MS) return;
    this.#most = Math.max(this.#most, (requests - this.#from.requests) / stretchMs);
    this.#from = { measuredMs, requests };
  }

  /** `users`: what each of them had under way comes on top. */
  most(nowMs: number, users: number): number {
    const sinceMs = Math.max(STRETCH_MS, nowMs - this.#last.seenAtMs);
    return Math.ceil(this.#rate * sinceMs) + users;
  }

  get perSecondMax(): number {
    return this.#rate * 1_000;
  }

  /** Per millisecond. */
  get #rate(): number {
    const { measuredMs, requests } = this.#last;
    const stretchMs = Math.max(STRETCH_MS, measuredMs - this.#from.measuredMs);
    return Math.max(this.#most, (requests - this.#from.requests) / stretchMs);
  }
}
