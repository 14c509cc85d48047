/**
 * When each waiting job of the datacenter was accepted, on the clock of this process. Every manager records it when it
 * folds the submission in, so that the limit of a job counts from its acceptance under any leader. The age of entries
 * recovered from disk is taken from the wall clock.
 */

import type { LogEntry } from "../../ledger/group/messages.ts";
import type { ManagerContext } from "./context.ts";

export class WaitingSince {
  readonly #context: ManagerContext;
  /** Bounded by the number of open jobs. */
  readonly #since = new Map<string, number>();

  constructor(context: ManagerContext) {
    this.#context = context;
  }

  /** Called when an entry of the datacenter's group is folded in. */
  onApplied({ wall }: Pick<LogEntry, "wall">, isRecovered: boolean): void {
    const open = this.#context.datacenter()?.open;
    const { now, wall: nowWall } = this.#context;
    const at = isRecovered ? now - Math.max(0, nowWall - wall) : now;
    for (const [job, { submission }] of open ?? [])
      if (submission !== null && !this.#since.has(job)) this.#since.set(job, at);
    for (const job of this.#since.keys())
      if ((open?.get(job)?.submission ?? null) === null) this.#since.delete(job);
  }

  /** A job that arrived with a snapshot counts from the first query for it. */
  of(job: string): number {
    const since = this.#since.get(job) ?? this.#context.now;
    this.#since.set(job, since);
    return since;
  }
}
