/** Bounded list of waiters, ordered by deadline. */

import { assert } from "../../base/assert.ts";
import { Deadlines } from "../../base/deadlines.ts";
import type { IdempotencyKey } from "./key.ts";

export interface Waiting<Waiter> {
  readonly waiter: Waiter;
  readonly key: IdempotencyKey;
  readonly fingerprint: Uint8Array;
  readonly deadline: number;
}

export class WaitList<Waiter> {
  readonly #max: number;
  readonly #waiting = new Deadlines<Waiting<Waiter>>();

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
    this.#waiting.set(waiting, waiting.deadline);
  }

  /** False when that one was answered before: everybody is answered once. */
  end(waiting: Waiting<Waiter>): boolean {
    return this.#waiting.delete(waiting);
  }

  /** Removes and returns the waits whose deadline has passed. */
  endDue(now: number): readonly Waiting<Waiter>[] {
    return this.#waiting.takeDue(now);
  }

  endAll(): readonly Waiter[] {
    return this.endDue(Number.POSITIVE_INFINITY).map(({ waiter }) => waiter);
  }

  nextDeadline(): number | null {
    return this.#waiting.next();
  }
}
