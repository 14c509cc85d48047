/**
 * Time-outs of all exchanges of one core by one coarse sweep. A timer or an abort signal per request
 * costs more than the request; comparing a few thousand numbers 50 times a second costs nothing.
 */

import { clock } from "./clock.ts";

export interface Sweepable {
  /** Place in the sweeper's list; -1 when not in it. */
  sweepSlot: number;
  /** On the clock of `clock()`. */
  deadline: number;
  timedOut(now: number): void;
}

/** How late a time-out may be noticed. */
const SWEEP_INTERVAL_MS = 20;

class Sweeper {
  readonly #active: Sweepable[] = [];
  #timer: NodeJS.Timeout | undefined;

  add(item: Sweepable): void {
    item.sweepSlot = this.#active.length;
    this.#active.push(item);
    this.#timer ??= setInterval(() => this.#sweep(), SWEEP_INTERVAL_MS);
  }

  remove(item: Sweepable): void {
    const slot = item.sweepSlot;
    if (slot < 0) return;
    const last = this.#active.pop() as Sweepable;
    if (last !== item) {
      this.#active[slot] = last;
      last.sweepSlot = slot;
    }
    item.sweepSlot = -1;
  }

  #sweep(): void {
    const active = this.#active;
    if (active.length === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
      return;
    }
    const now = clock();
    // Backwards, because a time-out removes its item and moves the last one into its place.
    for (let i = active.length - 1; i >= 0; i--) {
      const item = active[i];
      if (item !== undefined && item.deadline <= now) item.timedOut(now);
    }
  }
}

export const sweeper = new Sweeper();
