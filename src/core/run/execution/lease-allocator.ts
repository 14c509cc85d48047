/** Leases: hands out blocks of indices, each index once over all cores. */

import { ITERATIONS_LEASE } from "../job/core-messages.ts";
import type { Granted } from "./phase-types.ts";

export class LeaseAllocator {
  readonly #next: Map<string, number>;
  readonly #iterations: number;

  /** How many iterations are shared, 0 when there is no such limit; and where each lease stands. */
  constructor(iterations: number, next: Readonly<Record<string, number>> = {}) {
    this.#iterations = iterations;
    this.#next = new Map(Object.entries(next));
  }

  /** The next index of each lease. */
  get next(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#next);
  }

  grant(name: string, size: number): Granted {
    const limit = this.#limit(name);
    const from = this.#next.get(name) ?? 0;
    const to = Math.min(from + Math.max(1, Math.floor(size)), limit);
    this.#next.set(name, to);
    return { from, to, last: to >= limit };
  }

  /** Feeds of order "once" carry their number of rows behind their name: "feed:users:1000". */
  #limit(name: string): number {
    if (name === ITERATIONS_LEASE) return this.#iterations;
    const rows = Number(name.slice(name.lastIndexOf(":") + 1));
    return rows > 0 ? rows : Number.POSITIVE_INFINITY;
  }
}
