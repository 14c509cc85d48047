/**
 * Orders of a deposed leader are refused: the highest view of each job that this worker has heard of, kept on
 * disk before anything of that view is carried out. (AD-10) Jobs of the past are remembered for a
 * bounded while, the longest unused go first. (FTOK-6)
 */

/** Each is a job's id and a number. */
const FENCED_JOBS_MAX = 10_000;

export type FencedViews = readonly (readonly [job: string, view: number])[];

export class ViewFence {
  readonly #views: Map<string, number>;

  /** What was kept, the longest unused first. */
  constructor(kept: FencedViews) {
    this.#views = new Map(kept.slice(-FENCED_JOBS_MAX));
  }

  /** "raised": to be kept before it is acted on. */
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

  /** Null when nobody has led the job here. */
  viewOf(job: string): number | null {
    return this.#views.get(job) ?? null;
  }

  get views(): FencedViews {
    return [...this.#views];
  }
}
