/** Leases: assigns blocks of indices, each index once over all cores. */

import { ITERATIONS_LEASE } from "../job/core-messages.ts";
import type { WorkflowManifest } from "../job/manifest.ts";
import type { PlanPart } from "../plan/load.ts";
import { ENDLESS_APART } from "../plan/row-cycle.ts";
import { rowsOf } from "../plan/split.ts";
import type { Granted } from "./phase-types.ts";

export class LeaseAllocator {
  readonly #next: Map<string, number>;
  readonly #iterations: number;
  readonly #part: PlanPart | undefined;

  /** `next`: the next index of each lease. */
  constructor(
    { load, part }: Pick<WorkflowManifest, "load" | "part">,
    next: Readonly<Record<string, number>> = {},
  ) {
    this.#iterations = load.kind === "shared" ? load.iterations : 0;
    this.#part = part;
    this.#next = new Map(Object.entries(next));
  }

  /** The next index of each lease. */
  get next(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#next);
  }

  grant(name: string, size: number): Granted {
    const { first, limit } = this.#range(name);
    const from = this.#next.get(name) ?? first;
    const to = Math.min(from + Math.max(1, Math.floor(size)), limit);
    this.#next.set(name, to);
    return { from, to, last: to >= limit };
  }

  /** Feeds of order "once" carry their number of rows after their name: "feed:users:1000". */
  #range(name: string): { readonly first: number; readonly limit: number } {
    const part = this.#part;
    if (name === ITERATIONS_LEASE) {
      const first = part?.firstIteration ?? 0;
      return { first, limit: first + this.#iterations };
    }
    const rows = Number(name.slice(name.lastIndexOf(":") + 1));
    if (!(rows > 0))
      return { first: (part?.index ?? 0) * ENDLESS_APART, limit: Number.POSITIVE_INFINITY };
    if (part === undefined) return { first: 0, limit: rows };
    const { from, to } = rowsOf(rows, part);
    return { first: from, limit: to };
  }
}
