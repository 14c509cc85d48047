/**
 * Who waits for an answer, at most so many, the earliest deadline first. All waits of one list last equally
 * long, so the order of arrival is the order of deadlines.
 */

import { assert } from "../../base/assert.ts";
import type { IdempotencyKey } from "./key.ts";

export interface Waiting<Waiter> {
  readonly waiter: Waiter;
  readonly key: IdempotencyKey;
  readonly fingerprint: Uint8Array;
  readonly deadline: number;
}

export class WaitList<Waiter> {
  readonly #max: number;
  readonly #waiting = new Set<Waiting<Waiter>>();
  #lastDeadline = -Infinity;

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#waiting.size;
  }

  get full(): boolean {
    return this.#waiting.size >= this.#max;
  }

  add(waiting: Waiting<Waiter>): void {
    assert(!this.full, "waits are within their bound");
    assert(waiting.deadline >= this.#lastDeadline, "waits begin in the order of time");
    this.#lastDeadline = waiting.deadline;
    this.#waiting.add(waiting);
  }

  /** False when that one was answered before: everybody is answered once. */
  end(waiting: Waiting<Waiter>): boolean {
    return this.#waiting.delete(waiting);
  }

  /** Ends and returns the waits whose time is over. */
  endDue(now: number): readonly Waiting<Waiter>[] {
    const due: Waiting<Waiter>[] = [];
    for (const waiting of this.#waiting) {
      if (waiting.deadline > now) break;
      this.#waiting.delete(waiting);
      due.push(waiting);
    }
    return due;
  }

  endAll(): readonly Waiter[] {
    const all = [...this.#waiting].map(({ waiter }) => waiter);
    this.#waiting.clear();
    return all;
  }

  nextDeadline(): number | null {
    for (const waiting of this.#waiting) return waiting.deadline;
    return null;
  }
}
