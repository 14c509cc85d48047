/**
 * When the group of each open job began, on the clock of this process. Every entry records how long after that it was
 * decided. The age of an entry recovered from disk is taken from the wall clock: the clock of a process stops while it
 * is down, and the plan of a job does not.
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

  /** Updates the clock when an entry of the job's group is folded in. */
  onApplied(job: string, { data, kind, wall }: LogEntry, isRecovered: boolean): void {
    const entry = kind === "op" ? decodeRunEntry(data) : null;
    if (entry === null) return;
    const { now, wall: nowWall } = this.#context;
    const ageMs = isRecovered ? Math.max(0, nowWall - wall) : 0;
    const beganAt = now - ageMs - ("at" in entry ? entry.at : 0);
    this.#beganAt.set(job, Math.min(beganAt, this.#beganAt.get(job) ?? beganAt));
  }

  /** Start according to the earliest received entry; null without one. */
  beganAt(job: string): number | null {
    return this.#beganAt.get(job) ?? null;
  }

  forget(job: string): void {
    this.#beganAt.delete(job);
  }
}
