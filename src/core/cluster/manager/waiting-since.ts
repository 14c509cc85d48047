/**
 * Since when each job of the datacenter waits, on the clock of this process. Every manager notes it when it folds the
 * submission in, so that the limit of a job counts from its acceptance, whoever leads the datacenter by then. What was
 * on our disk when this process began is as old as the wall clock says.
 */

import type { LogEntry } from "../../ledger/group/messages.ts";
import type { ManagerContext } from "./context.ts";

export class WaitingSince {
  readonly #context: ManagerContext;
  /** As many as there are open jobs at most. */
  readonly #since = new Map<string, number>();

  constructor(context: ManagerContext) {
    this.#context = context;
  }

  /** An entry of the datacenter's group is folded in. */
  heard({ wall }: Pick<LogEntry, "wall">, isRecovered: boolean): void {
    const open = this.#context.datacenter()?.open;
    const { now, wall: nowWall } = this.#context;
    const at = isRecovered ? now - Math.max(0, nowWall - wall) : now;
    for (const [job, { submission }] of open ?? [])
      if (submission !== null && !this.#since.has(job)) this.#since.set(job, at);
    for (const job of this.#since.keys())
      if ((open?.get(job)?.submission ?? null) === null) this.#since.delete(job);
  }

  /** A job that came with a snapshot waits since it is first asked after. */
  of(job: string): number {
    const since = this.#since.get(job) ?? this.#context.now;
    this.#since.set(job, since);
    return since;
  }
}
