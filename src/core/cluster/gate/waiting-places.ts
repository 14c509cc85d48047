/**
 * Places of the jobs that wait for a datacenter, the oldest first. Each of them is asked after again and again, and
 * lists show many: so they are put in order once per change.
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

  /** The log of a job has moved on. */
  changed(): void {
    this.#places = null;
  }

  /** In words; null: it does not wait so. */
  of(state: JobState): string | null {
    if (!isWaiting(state)) return null;
    if (this.#places?.has(state.jobId) !== true) this.#places = placesIn(this.#lookup.openJobs());
    const place = this.#places.get(state.jobId);
    return place === undefined ? null : `position ${place} of ${this.#places.size}`;
  }
}

function placesIn(jobs: Iterable<{ readonly state: JobState }>): ReadonlyMap<string, number> {
  const waiting = [...jobs].flatMap(({ state }) => (isWaiting(state) ? [state.jobId] : []));
  // Ids of gates begin with the time.
  return new Map(waiting.sort().map((job, at) => [job, at + 1]));
}

/** No datacenter has been given it yet. */
function isWaiting(state: JobState): boolean {
  return statusOf(state) === "QUEUED" && state.run.dispatched.length === 0;
}
