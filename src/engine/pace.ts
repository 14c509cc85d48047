/** When a user of a closed model may begin again: think time, pacing, and the throttle of all users. */

import type { Random } from "../core/base/random.ts";
import type { LoadPlan, Share } from "../core/load/plan/load.ts";
import { shareOfRate, Throttle } from "../core/load/plan/throttle.ts";
import type { PaceOptions } from "../workflow/options.ts";

/** A virtual user, or a place in a mix. */
export interface Paced {
  readonly iteration: { readonly beganAt: number };
  /** The throttle has admitted the next iteration. */
  admitted: boolean;
}

export class Pace {
  readonly #options: PaceOptions;
  readonly #throttle: Throttle | null;

  constructor(options: PaceOptions, plan: LoadPlan, share: Share) {
    this.#options = options;
    const rateMax = "rateMax" in plan ? plan.rateMax : undefined;
    this.#throttle = rateMax === undefined ? null : new Throttle(shareOfRate(rateMax, share));
  }

  /** Whether the author declared think time or pacing. */
  get rests(): boolean {
    return this.#options.pacingMs > 0 || this.#options.thinkMaxMs > 0;
  }

  /** How long a user rests after an iteration. */
  restMs(user: Paced, now: number, random: Random): number {
    const { pacingMs, thinkMaxMs, thinkMinMs } = this.#options;
    const think = thinkMaxMs === 0 ? 0 : random.between(thinkMinMs, thinkMaxMs);
    return Math.max(think, pacingMs === 0 ? 0 : pacingMs - (now - user.iteration.beganAt));
  }

  get throttled(): boolean {
    return this.#throttle !== null;
  }

  /** How long a user waits before beginning; called once per iteration. */
  throttleMs(user: Paced, planMs: number): number {
    if (this.#throttle === null || user.admitted) return 0;
    user.admitted = true;
    return this.#throttle.admit(planMs);
  }
}
