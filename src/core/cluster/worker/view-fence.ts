/**
 * Fences off deposed leaders: keeps the highest known view of each job, on disk before anything of that view is
 * executed. (AD-10) Finished jobs are remembered up to a limit; the least recently used ones are evicted first.
 * (FTOK-6)
 */

/** Maximum number of entries, each a job id and a number. */
const FENCED_JOBS_MAX = 10_000;

export type FencedViews = readonly (readonly [job: string, view: number])[];

export class ViewFence {
  readonly #views: Map<string, number>;

  /** `kept`: the stored views, least recently used first. */
  constructor(kept: FencedViews) {
    this.#views = new Map(kept.slice(-FENCED_JOBS_MAX));
  }

  /** "raised" views must be stored before they are acted on. */
  admit(job: string, view: number): "current" | "raised" | "stale" {
    const known = this.#views.get(job) ?? -1;
    if (view < known) return "stale";
    this.#views.delete(job);
    this.#views.set(job, view);
    for (const oldest of this.#views.keys()) {
      if (this.#views.size <= FENCED_JOBS_MAX) break;
      this.#views.delete(oldest);
    }
    return view === known ? "current" : "raised";
  }

  /** Highest known view of the job; null if there is none. */
  viewOf(job: string): number | null {
    return this.#views.get(job) ?? null;
  }

  get views(): FencedViews {
    return [...this.#views];
  }
}
