/**
 * How often figures may come. A receiver that is hard-pressed says so with every confirmation, and senders wait
 * longer between their messages; what waits is replaced by what is newer, so that totals stay exact. (AD-23, AD-37)
 *
 *     fill of the receiver   none < 70 % ≤ throttle < 85 % ≤ batch < 95 % ≤ reject
 *     a sender waits             0         100 ms           500 ms        1 s more
 *
 * What is no figure (a start, an end, a loss) never waits. At the highest level a message per second is the
 * probe that finds out when it is over.
 */

export const BACKPRESSURE_LEVELS = ["none", "throttle", "batch", "reject"] as const;
export type BackpressureLevel = 0 | 1 | 2 | 3;

/** From this fill on: throttle, batch, reject. (AD-23.2) */
const FILLS = [0.7, 0.85, 0.95] as const;
/** Below its threshold by so much before a level is left. */
const RETURN_FILL = 0.05;
/** Shares are computed: what is off by less is no difference. */
const ROUNDING = 1e-9;
const DELAYS_MS = [0, 100, 500, 1_000] as const;
/** A receiver that says nothing for so long counts for one level less, then again. (AD-37.9) */
const EXPIRY_MS = 5_000;

/** Between two messages of figures. */
export function delayMs(level: BackpressureLevel): number {
  return DELAYS_MS[level];
}

/** What is no level counts as the nearest one. */
export function backpressureLevel(value: number): BackpressureLevel {
  return Math.max(0, Math.min(3, Math.floor(value) || 0)) as BackpressureLevel;
}

/** The level of a receiver, by how full it is. */
export class BackpressureGauge {
  #level: BackpressureLevel = 0;
  #fill = 0;

  get level(): BackpressureLevel {
    return this.#level;
  }

  get fill(): number {
    return this.#fill;
  }

  /** What is not a share counts as full. */
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

/** What a sender has heard of its receivers: the highest of their levels counts. (AD-37.4) */
export class BackpressureSignals {
  readonly #signals = new Map<string, Signal>();

  heard(receiver: string, level: BackpressureLevel, now: number): void {
    if (level === 0) this.#signals.delete(receiver);
    else this.#signals.set(receiver, { level, at: now });
  }

  /** It is gone, and what it said with it. */
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
