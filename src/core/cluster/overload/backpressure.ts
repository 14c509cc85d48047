/**
 * Pacing of metrics. An overloaded receiver reports its level with every confirmation, and senders wait longer between
 * their messages. Pending metrics are replaced by newer ones, so that totals stay exact. (AD-23, AD-37)
 *
 *     fill of the receiver   none < 70 % ≤ throttle < 85 % ≤ batch < 95 % ≤ reject
 *     a sender waits             0         100 ms           500 ms        1 s more
 *
 * Other messages (a start, an end, a loss) never wait. At the highest level one message per second probes whether the
 * overload is over.
 */

export const BACKPRESSURE_LEVELS = ["none", "throttle", "batch", "reject"] as const;
export type BackpressureLevel = 0 | 1 | 2 | 3;

/** Fill from which each level applies: throttle, batch, reject. (AD-23.2) */
const FILLS = [0.7, 0.85, 0.95] as const;
/** Hysteresis: how far below its threshold the fill must drop before a level is left. */
const RETURN_FILL = 0.05;
/** Tolerance for rounding in computed shares. */
const ROUNDING = 1e-9;
const DELAYS_MS = [0, 100, 500, 1_000] as const;
/** A silent receiver drops by one level per this interval. (AD-37.9) */
const EXPIRY_MS = 5_000;

/** Delay between two messages of metrics. */
export function delayMs(level: BackpressureLevel): number {
  return DELAYS_MS[level];
}

/** Clamps a number to the nearest level. */
export function backpressureLevel(value: number): BackpressureLevel {
  return Math.max(0, Math.min(3, Math.floor(value) || 0)) as BackpressureLevel;
}

/** Backpressure level of a receiver, by its fill. */
export class BackpressureGauge {
  #level: BackpressureLevel = 0;
  #fill = 0;

  get level(): BackpressureLevel {
    return this.#level;
  }

  get fill(): number {
    return this.#fill;
  }

  /** Anything that is not a share counts as full. */
  measure(fill: number): void {
    this.#fill = fill >= 0 && fill <= 1 ? fill : 1;
    const up = FILLS.filter((threshold) => this.#fill >= threshold).length;
    const stays = FILLS.filter(
      (threshold) => this.#fill > threshold - RETURN_FILL + ROUNDING,
    ).length;
    this.#level = backpressureLevel(Math.max(up, Math.min(this.#level, stays)));
  }
}

interface Signal {
  readonly level: BackpressureLevel;
  readonly at: number;
}

/** Levels that receivers have reported to a sender: the highest counts. (AD-37.4) */
export class BackpressureSignals {
  readonly #signals = new Map<string, Signal>();

  heard(receiver: string, level: BackpressureLevel, now: number): void {
    if (level === 0) this.#signals.delete(receiver);
    else this.#signals.set(receiver, { level, at: now });
  }

  /** Removes a receiver that disconnected, along with its level. */
  lost(receiver: string): void {
    this.#signals.delete(receiver);
  }

  level(now: number): BackpressureLevel {
    let highest = 0;
    for (const { at, level } of this.#signals.values())
      highest = Math.max(highest, level - Math.floor(Math.max(0, now - at) / EXPIRY_MS));
    return backpressureLevel(highest);
  }
}
