/**
 * The stall gate: while it is closed no answer of the whole server is sent, and when it opens all that waited are sent
 * at once, in order of arrival. That is what a garbage collection, a lock or a failover looks like from outside, and
 * what distinguishes an honest load generator from one with coordinated omission.
 *
 * Requests are still read during a stall, so a one-second stall under a constant rate gives waiting times spread evenly
 * over 0 … 1 s: the analytical answer that tests compare with.
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

  /** Closes the gate for `ms` from now; a longer running stall stays. */
  stallOnce(ms: number): void {
    const opensAt = performance.now() + ms;
    if (ms <= 0 || opensAt <= this.#opensAt) return;
    this.#opensAt = opensAt;
    if (this.#opening !== null) clearTimeout(this.#opening);
    this.#opening = setTimeout(() => this.#open(), ms);
  }

  /** Schedules one stall, `afterMs` from now. Replaces a scheduled one. */
  stallLater(ms: number, afterMs: number): void {
    if (this.#starting !== null) clearTimeout(this.#starting);
    this.#starting = setTimeout(() => {
      this.#starting = null;
      this.stallOnce(ms);
    }, afterMs);
  }

  /** Stalls for `ms` every `everyMs`, until `stop`; stalls never overlap, or no answer would be sent. */
  stallRepeatedly(ms: number, everyMs: number): void {
    if (this.#repeating !== null) clearInterval(this.#repeating);
    this.#repeating = setInterval(() => {
      if (!this.closed) this.stallOnce(ms);
    }, everyMs);
  }

  /** Ends every stall, running or scheduled, and sends what is queued. */
  stop(): void {
    if (this.#starting !== null) clearTimeout(this.#starting);
    if (this.#repeating !== null) clearInterval(this.#repeating);
    if (this.#opening !== null) clearTimeout(this.#opening);
    this.#starting = null;
    this.#repeating = null;
    this.#open();
  }

  /** Queues an answer until the gate opens; returns false when too many wait already. */
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
