/**
 * Admission of a named queue: how many tasks run at once over all nodes, how many start per time, or none while it is
 * paused. Only the leader assigns, so that its count is the count of the cluster.
 */

import { assert } from "../base/assert.ts";
import type { Backoff } from "./retry.ts";

export const DEFAULT_QUEUE = "default";

export interface QueueLimits {
  readonly paused: boolean;
  /** Tasks that may run at once; null for no limit. */
  readonly concurrency: number | null;
  /** At most `count` starts in `perMs`, with at most one `perMs` of starts saved up; null for no limit. */
  readonly rate: { readonly count: number; readonly perMs: number } | null;
  /** Backoff of its failed tasks, unless they or their executors define one. */
  readonly backoff: Backoff | null;
}

interface Gate {
  limits: QueueLimits;
  /** Assigned and not finished. */
  held: number;
  /** Credit earned up to `at`, in milliseconds times `count`: a start costs `perMs` of it. */
  earned: number;
  at: number;
}

export const NO_LIMITS: QueueLimits = {
  paused: false,
  concurrency: null,
  rate: null,
  backoff: null,
};

export class QueueGates {
  readonly #gates = new Map<string, Gate>();

  /** A queue with new limits begins without saved starts: a change of leader gives none away. */
  set(queue: string, limits: QueueLimits, now: number): void {
    const gate = this.#gate(queue);
    gate.limits = limits;
    gate.earned = 0;
    gate.at = now;
  }

  limitsOf(queue: string): QueueLimits {
    return this.#gates.get(queue)?.limits ?? NO_LIMITS;
  }

  /** Number of tasks that may be assigned now. */
  room(queue: string, now: number): number {
    const gate = this.#gates.get(queue);
    if (gate === undefined) return Number.MAX_SAFE_INTEGER;
    const { paused, concurrency, rate } = gate.limits;
    if (paused) return 0;
    const free = concurrency === null ? Number.MAX_SAFE_INTEGER : concurrency - gate.held;
    if (rate === null) return Math.max(0, free);
    refill(gate, now);
    return Math.max(0, Math.min(free, Math.floor(gate.earned / rate.perMs)));
  }

  taken(queue: string, now: number): void {
    const gate = this.#gate(queue);
    gate.held++;
    const { rate } = gate.limits;
    if (rate === null) return;
    refill(gate, now);
    gate.earned -= rate.perMs;
  }

  /** Counts a task that a new leader found running: it was started long ago. */
  adopted(queue: string): void {
    this.#gate(queue).held++;
  }

  released(queue: string): void {
    const gate = this.#gate(queue);
    assert(gate.held > 0, "only what was handed out comes back");
    gate.held--;
  }

  /** When the next start of an exhausted queue is free; null when time changes nothing. */
  nextAt(now: number): number | null {
    let next: number | null = null;
    for (const gate of this.#gates.values()) {
      const { rate, paused } = gate.limits;
      if (rate === null || paused) continue;
      refill(gate, now);
      if (gate.earned >= rate.perMs) continue;
      // Whole milliseconds: a time that is not after `now` would be polled forever.
      const at = now + Math.ceil((rate.perMs - gate.earned) / rate.count);
      next = next === null ? at : Math.min(next, at);
    }
    return next;
  }

  #gate(queue: string): Gate {
    let gate = this.#gates.get(queue);
    if (gate === undefined) {
      gate = { limits: NO_LIMITS, held: 0, earned: 0, at: 0 };
      this.#gates.set(queue, gate);
    }
    return gate;
  }
}

function refill(gate: Gate, now: number): void {
  const { rate } = gate.limits;
  if (rate === null) return;
  const earned = Math.max(0, now - gate.at) * rate.count;
  gate.earned = Math.min(rate.count * rate.perMs, gate.earned + earned);
  gate.at = now;
}
