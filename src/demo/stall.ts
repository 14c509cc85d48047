/**
 * The stall gate: while it is closed no answer of the whole server leaves, and when it opens all
 * that waited leave at once, in order of arrival. That is what a garbage collection, a lock or a
 * fail-over looks like from outside, and what tells an honest load generator from one that
 * coordinates its omissions with the server.
 *
 * Requests are still read during a stall, so a one-second stall under a constant rate gives waiting
 * times spread evenly over 0 … 1 s: the analytical answer that tests compare with.
 */

import { HELD_ANSWERS_MAX } from "./limits.ts";

export class StallGate {
  #held: (() => void)[] = [];
  #opensAt = 0;
  #opening: NodeJS.Timeout | null = null;
  #starting: NodeJS.Timeout | null = null;
  #repeating: NodeJS.Timeout | null = null;

  get closed(): boolean {
    return this.#opening !== null;
  }

  /** Closes the gate for `ms` from now; a longer stall that is already running stays. */
  stallOnce(ms: number): void {
    const opensAt = performance.now() + ms;
    if (ms <= 0 || opensAt <= this.#opensAt) return;
    this.#opensAt = opensAt;
    if (this.#opening !== null) clearTimeout(this.#opening);
    this.#opening = setTimeout(() => this.#open(), ms);
  }

  /** One stall, `afterMs` from now. Replaces one that was still to come. */
  stallLater(ms: number, afterMs: number): void {
    if (this.#starting !== null) clearTimeout(this.#starting);
    this.#starting = setTimeout(() => {
      this.#starting = null;
      this.stallOnce(ms);
    }, afterMs);
  }

  /** A stall of `ms` every `everyMs`, until `stop`; never one into another, or no answer would leave. */
  stallRepeatedly(ms: number, everyMs: number): void {
    if (this.#repeating !== null) clearInterval(this.#repeating);
    this.#repeating = setInterval(() => {
      if (!this.closed) this.stallOnce(ms);
    }, everyMs);
  }

  /** Ends every stall, running or planned, and lets go of what is held. */
  stop(): void {
    if (this.#starting !== null) clearTimeout(this.#starting);
    if (this.#repeating !== null) clearInterval(this.#repeating);
    if (this.#opening !== null) clearTimeout(this.#opening);
    this.#starting = null;
    this.#repeating = null;
    this.#open();
  }

  /** Keeps an answer until the gate opens; false when too many wait already. */
  hold(answer: () => void): boolean {
    if (this.#held.length >= HELD_ANSWERS_MAX) return false;
    this.#held.push(answer);
    return true;
  }

  #open(): void {
    this.#opening = null;
    this.#opensAt = 0;
    const released = this.#held;
    this.#held = [];
    for (const answer of released) answer();
  }
}
