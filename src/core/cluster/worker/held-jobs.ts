/** Jobs known to a worker. Only open jobs are scanned on each step, so thousands of finished ones cost nothing. */

import type { HeldJob } from "./held-job.ts";

/** Maximum number of finished jobs whose order position is remembered. */
const CLOSED_JOBS_MAX = 1_000;

export class HeldJobs {
  readonly #open = new Map<string, HeldJob>();
  /** In the order of closing. */
  readonly #closed = new Map<string, HeldJob>();

  /** Jobs that run here or have something left to report. */
  get open(): ReadonlyMap<string, HeldJob> {
    return this.#open;
  }

  get all(): readonly HeldJob[] {
    return [...this.#open.values(), ...this.#closed.values()];
  }

  get(name: string): HeldJob | undefined {
    return this.#open.get(name) ?? this.#closed.get(name);
  }

  /** Adds a new job, or reopens a closed one that gets cores again. */
  reopen(job: HeldJob): void {
    job.isClosed = false;
    this.#closed.delete(job.name);
    this.#open.set(job.name, job);
  }

  close(job: HeldJob): void {
    job.close();
    this.#open.delete(job.name);
    this.#closed.set(job.name, job);
    for (const oldest of this.#closed.keys()) {
      if (this.#closed.size <= CLOSED_JOBS_MAX) return;
      this.#closed.delete(oldest);
    }
  }
}
