/**
 * Timeouts of all exchanges of one core by one coarse sweep. A timer or an abort signal per request costs more than the
 * request; comparing a few thousand numbers 50 times a second is negligible.
 */

import { clock } from "./clock.ts";
import { clearInterval, setInterval } from "./timers.ts";

export interface Sweepable {
  /** In the sweeper's list; removed when a sweep finds that it is over. */
  swept: boolean;
  /** Started and not finished. */
  readonly underWay: boolean;
  /** On the clock of `clock()`. */
  deadline: number;
  timedOut(now: number): void;
}

/** Largest delay in noticing a timeout. */
const SWEEP_INTERVAL_MS = 20;

class Sweeper {
  readonly #active: Sweepable[] = [];
  #timer: NodeJS.Timeout | undefined;

  /** Adds an item that was started. There is no removal at its end, because that would cost every call. */
  add(item: Sweepable): void {
    if (item.swept) return;
    item.swept = true;
    this.#active.push(item);
    this.#timer ??= setInterval(() => this.#sweep(), SWEEP_INTERVAL_MS);
  }

  #sweep(): void {
    const active = this.#active;
    if (active.length === 0) {
      clearInterval(this.#timer);
      this.#timer = undefined;
      return;
    }
    const now = clock();
    // Backwards, because the last one replaces one that is removed.
    for (let i = active.length - 1; i >= 0; i--) {
      const item = active[i] as Sweepable;
      if (item.underWay && item.deadline <= now) item.timedOut(now);
      if (!item.underWay) this.#drop(i, item);
    }
  }

  #drop(at: number, item: Sweepable): void {
    item.swept = false;
    const last = this.#active.pop() as Sweepable;
    if (last !== item) this.#active[at] = last;
  }
}

export const sweeper = new Sweeper();
