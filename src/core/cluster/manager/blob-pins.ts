/**
 * Blobs that must not be dropped: files of waiting and running jobs, and results of remembered jobs. Derived from
 * committed state. The store keeps new blobs for a while in any case, so pins may lag behind.
 */

import type { BlobHash } from "../messages.ts";
import type { ManagerContext } from "./context.ts";
import type { DatacenterJob } from "./datacenter-state.ts";
import { decodeSubmission } from "./submission.ts";

/** Delay between a change of the datacenter and the next scan; it coalesces many changes into one scan. */
const CHECK_MS = 1_000;

export class BlobPins {
  readonly #context: ManagerContext;
  /** Files of each open job; a submission is decoded once. */
  readonly #files = new Map<string, readonly BlobHash[]>();
  #pinned: ReadonlySet<BlobHash> = new Set();
  #checkAt = Number.POSITIVE_INFINITY;

  constructor(context: ManagerContext) {
    this.#context = context;
  }

  /** Schedules a scan after a change of the datacenter. */
  onChange(): void {
    this.#checkAt = Math.min(this.#checkAt, this.#context.now + CHECK_MS);
  }

  nextDeadline(): number | null {
    return this.#checkAt === Number.POSITIVE_INFINITY ? null : this.#checkAt;
  }

  onTick(): void {
    if (this.#checkAt > this.#context.now) return;
    this.#checkAt = Number.POSITIVE_INFINITY;
    const jobs = this.#context.datacenter()?.jobs ?? new Map<string, DatacenterJob>();
    for (const name of this.#files.keys())
      if ((jobs.get(name)?.phase ?? "ended") === "ended") this.#files.delete(name);
    const pinned = new Set([...jobs.values()].flatMap((job) => this.#blobsOf(job)));
    const same =
      pinned.size === this.#pinned.size && [...pinned].every((one) => this.#pinned.has(one));
    this.#pinned = pinned;
    if (!same) this.#context.emit({ kind: "pinBlobs", hashes: [...pinned] });
  }

  #blobsOf(job: DatacenterJob): readonly BlobHash[] {
    if (job.phase === "ended") return job.summary === null ? [] : [job.summary];
    const known = this.#files.get(job.job);
    if (known !== undefined) return known;
    const submission =
      job.submission === null
        ? (this.#context.runOf(job.job)?.state.submission ?? null)
        : decodeSubmission(job.submission);
    if (submission === null) {
      // The job's group has the submission and this manager is behind: scan again later.
      this.onChange();
      return [];
    }
    const files = [...new Set(submission.files.map(({ hash }) => hash))];
    this.#files.set(job.job, files);
    return files;
  }
}
