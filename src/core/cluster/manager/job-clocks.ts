/**
 * When the group of each job that has not ended began, on the clock of this process: every entry says how long after
 * that it was decided. An entry that was on our disk when this process began is as old as the wall clock says: while a
 * manager is down it does not count on, and the plan of a job goes on all the same.
 */

import type { LogEntry } from "../../ledger/group/messages.ts";
import type { ManagerContext } from "./context.ts";
import { decodeRunEntry } from "./run-entries.ts";

export class JobClocks {
  readonly #context: ManagerContext;
  readonly #beganAt = new Map<string, number>();

  constructor(context: ManagerContext) {
    this.#context = context;
  }

  /** An entry of the job's group is folded in. */
  heard(job: string, { data, kind, wall }: LogEntry, isRecovered: boolean): void {
    const entry = kind === "op" ? decodeRunEntry(data) : null;
    if (entry === null) return;
    const { now, wall: nowWall } = this.#context;
    const ageMs = isRecovered ? Math.max(0, nowWall - wall) : 0;
    const beganAt = now - ageMs - ("at" in entry ? entry.at : 0);
    this.#beganAt.set(job, Math.min(beganAt, this.#beganAt.get(job) ?? beganAt));
  }

  /** By the entry that was heard soonest; null when none was. */
  beganAt(job: string): number | null {
    return this.#beganAt.get(job) ?? null;
  }

  forget(job: string): void {
    this.#beganAt.delete(job);
  }
}
