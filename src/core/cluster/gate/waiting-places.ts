/**
 * Queue positions of jobs that wait for a datacenter, oldest first. They are read for every poll and list, so they are
 * computed once per change.
 */

import type { JobState } from "../../ledger/job/job-state.ts";
import { statusOf } from "./status.ts";
import type { GateLookup } from "./types.ts";

export class WaitingPlaces {
  readonly #lookup: Pick<GateLookup, "openJobs">;
  #places: ReadonlyMap<string, number> | null = null;

  constructor(lookup: Pick<GateLookup, "openJobs">) {
    this.#lookup = lookup;
  }

  /** The log of a job has changed. */
  changed(): void {
    this.#places = null;
  }

  /** Position as text; null if the job does not wait. */
  of(state: JobState): string | null {
    if (!isWaiting(state)) return null;
    if (this.#places?.has(state.jobId) !== true) this.#places = placesIn(this.#lookup.openJobs());
    const place = this.#places.get(state.jobId);
    return place === undefined ? null : `position ${place} of ${this.#places.size}`;
  }
}

function placesIn(jobs: Iterable<{ readonly state: JobState }>): ReadonlyMap<string, number> {
  const waiting = [...jobs].flatMap(({ state }) => (isWaiting(state) ? [state.jobId] : []));
  // Job ids begin with the creation time.
  return new Map(waiting.sort().map((job, at) => [job, at + 1]));
}

/** The job has not been dispatched to a datacenter yet. */
function isWaiting(state: JobState): boolean {
  return statusOf(state) === "QUEUED" && state.run.dispatched.length === 0;
}
