/**
 * Limits a node's concurrent work by priority: a request is carried out at once or rejected at once, there is no
 * incoming queue. (AD-32, BEX-1..8)
 *
 * Critical requests always pass and count against no limit (C20-12). The rest share a global limit, each class has its
 * own, and a tenth of the global limit is reserved for high: low is rejected before normal, normal before high.
 */

import { assert } from "../core/base/assert.ts";
import { PRIORITIES, type Priority } from "./registry.ts";

export interface AdmissionLimits {
  /** 0 means no limit. */
  readonly global: number;
  readonly high: number;
  readonly normal: number;
  readonly low: number;
}

/**
 * Per role: gates and managers serve more at once than a worker, which must keep its cores for
 * load.
 */
export const ADMISSION_LIMITS: Readonly<
  Record<"default" | "gate" | "manager" | "worker", AdmissionLimits>
> = {
  default: { global: 1_000, high: 500, normal: 300, low: 200 },
  gate: { global: 2_000, high: 1_000, normal: 600, low: 400 },
  manager: { global: 5_000, high: 2_500, normal: 1_500, low: 1_000 },
  worker: { global: 500, high: 250, normal: 150, low: 100 },
};

type AdmissionState = "healthy" | "pressured" | "overloaded";

const HIGH_RESERVE = 0.1;
const WARN_FILL = 0.8;

interface AdmissionStats {
  readonly inFlight: number;
  readonly acquired: number;
  readonly shed: number;
  readonly limit: number;
  /** Whether the class is at or above 80 % of its limit. */
  readonly nearLimit: boolean;
}

export class Admission {
  readonly #limits: AdmissionLimits;
  readonly #inFlight: Record<Priority, number> = { critical: 0, high: 0, normal: 0, low: 0 };
  readonly #acquired: Record<Priority, number> = { critical: 0, high: 0, normal: 0, low: 0 };
  readonly #shed: Record<Priority, number> = { critical: 0, high: 0, normal: 0, low: 0 };

  constructor(limits: AdmissionLimits) {
    this.#limits = limits;
  }

  /** True: carry it out and `release` it exactly once. False: refuse it now. */
  tryAcquire(priority: Priority): boolean {
    if (!this.#hasRoom(priority)) {
      this.#shed[priority]++;
      return false;
    }
    this.#inFlight[priority]++;
    this.#acquired[priority]++;
    return true;
  }

  release(priority: Priority): void {
    assert(this.#inFlight[priority] > 0, "a request is released once, after it was admitted");
    this.#inFlight[priority]--;
  }

  get state(): AdmissionState {
    if (!this.#hasRoom("normal")) return "overloaded";
    return this.#hasRoom("low") ? "healthy" : "pressured";
  }

  stats(priority: Priority): AdmissionStats {
    const inFlight = this.#inFlight[priority];
    const limit = priority === "critical" ? 0 : this.#limits[priority];
    return {
      inFlight,
      acquired: this.#acquired[priority],
      shed: this.#shed[priority],
      limit,
      nearLimit: limit > 0 && inFlight >= limit * WARN_FILL,
    };
  }

  #hasRoom(priority: Priority): boolean {
    if (priority === "critical") return true;
    const limit = this.#limits[priority];
    if (limit > 0 && this.#inFlight[priority] >= limit) return false;
    const { global } = this.#limits;
    if (global === 0) return true;
    const total = PRIORITIES.reduce(
      (sum, each) => sum + (each === "critical" ? 0 : this.#inFlight[each]),
      0,
    );
    return total < (priority === "high" ? global : global * (1 - HIGH_RESERVE));
  }
}
