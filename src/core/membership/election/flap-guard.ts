/**
 * Limits leadership flapping: more than a few changes inside the window start a cooldown in which this voter neither
 * runs nor grants pre-votes. Each further cooldown doubles, up to a maximum; a quiet window resets it. (LEAD-12)
 */

import type { ElectionConfig } from "./config.ts";

export class FlapGuard {
  readonly #config: ElectionConfig;
  #changes: number[] = [];
  #cooldownMs: number;
  #until = Number.NEGATIVE_INFINITY;

  constructor(config: ElectionConfig) {
    this.#config = config;
    this.#cooldownMs = config.flapCooldownMs;
  }

  /** A new leader took over. The length of the cooldown that this starts, or null. */
  changed(now: number): number | null {
    const { flapWindowMs, flapChangesMax, flapCooldownMs, flapCooldownMaxMs } = this.#config;
    this.#changes = this.#changes.filter((at) => now - at < flapWindowMs);
    if (this.#changes.length === 0) this.#cooldownMs = flapCooldownMs;
    this.#changes.push(now);
    if (this.#changes.length <= flapChangesMax) return null;
    const cooldownMs = this.#cooldownMs;
    this.#until = now + cooldownMs;
    this.#cooldownMs = Math.min(flapCooldownMaxMs, cooldownMs * 2);
    // Keep one mark, so that the next window does not count as quiet.
    this.#changes = [now];
    return cooldownMs;
  }

  get changes(): number {
    return this.#changes.length;
  }

  coolingUntil(now: number): number | null {
    return now < this.#until ? this.#until : null;
  }
}
