/**
 * Retry delays: exponential up to a cap, with jitter, so that clients rejected together do not return together. (AD-21)
 */

import { assert } from "../../base/assert.ts";
import type { Random } from "../../base/random.ts";

export interface RetryConfig {
  /** Calls in all, including the first. */
  readonly attemptsMax: number;
  readonly baseMs: number;
  readonly capMs: number;
  /**
   * full: 0 to t; equal: t/2 to t, where t doubles from the base to the cap; decorrelated: from the base to three times
   * the previous delay.
   */
  readonly jitter: "full" | "equal" | "decorrelated";
}

export const RETRY_DEFAULTS: RetryConfig = {
  attemptsMax: 3,
  baseMs: 500,
  capMs: 30_000,
  jitter: "full",
};

/** The delays of one operation. */
export class RetryDelays {
  readonly #config: RetryConfig;
  readonly #random: Random;
  #attempts = 0;
  #previousMs: number;

  constructor(config: RetryConfig, random: Random) {
    assert(config.attemptsMax >= 1, "an operation is tried at least once");
    assert(config.baseMs > 0 && config.capMs >= config.baseMs, "delays lie between base and cap");
    this.#config = config;
    this.#random = random;
    this.#previousMs = config.baseMs;
  }

  /**
   * Delay after a failed call, or null after the last one. At least the delay requested by the other side, beyond the
   * cap if need be. (AD-21.4, AD-21.9)
   */
  next(retryAfterMs = 0): number | null {
    if (++this.#attempts >= this.#config.attemptsMax) return null;
    return this.#delayMs() + retryAfterMs;
  }

  #delayMs(): number {
    const { baseMs, capMs, jitter } = this.#config;
    if (jitter === "decorrelated") {
      const upTo = 3 * this.#previousMs;
      this.#previousMs = Math.min(capMs, baseMs + this.#random.float() * (upTo - baseMs));
      return this.#previousMs;
    }
    // The exponent is capped first: 2^1100 is infinite.
    const t = Math.min(capMs, baseMs * 2 ** Math.min(this.#attempts - 1, 50));
    return jitter === "equal" ? t / 2 + (this.#random.float() * t) / 2 : this.#random.float() * t;
  }
}
