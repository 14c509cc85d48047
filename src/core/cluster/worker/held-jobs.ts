/**
 * The jobs that a worker knows. What happens to it asks all that are open what is to be said; a worker that has seen
 * thousands of jobs passes those that are over by.
 */

import type { HeldJob } from "./held-job.ts";

/** Where the orders of ended jobs stand is kept for the last ones. */
const CLOSED_JOBS_MAX = 1_000;

export class HeldJobs {
  readonly #open = new Map<string, HeldJob>();
  /** In the order in which they were closed. */
  readonly #closed = new Map<string, HeldJob>();

  /** Those of which something runs here, or is to be told. */
  get open(): ReadonlyMap<string, HeldJob> {
    return this.#open;
  }

  get all(): readonly HeldJob[] {
    return [...this.#open.values(), ...this.#closed.values()];
  }

  get(name: string): HeldJob | undefined {
    return this.#open.get(name) ?? this.#closed.get(name);
  }

  /** A new one, or one that was closed and has cores again. */
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
