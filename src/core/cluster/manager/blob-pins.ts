/**
 * The blobs that must not be dropped: files of jobs that wait or run, and results of jobs that are remembered.
 * Taken from what is committed; what was just put is kept for a while anyway, so that nothing hurries.
 */

import type { BlobHash } from "../messages.ts";
import type { ManagerContext } from "./context.ts";
import type { DatacenterJob } from "./datacenter-state.ts";
import { decodeSubmission } from "./submission.ts";

/** How long after a change of the datacenter they are looked through; many changes are one look. */
const LOOK_MS = 1_000;

export class BlobPins {
  readonly #context: ManagerContext;
  /** Files of each job that has not ended: a submission is read once. */
  readonly #files = new Map<string, readonly BlobHash[]>();
  #pinned: ReadonlySet<BlobHash> = new Set();
  #lookAt = Number.POSITIVE_INFINITY;

  constructor(context: ManagerContext) {
    this.#context = context;
  }

  /** Something in the datacenter has changed. */
  onChange(): void {
    this.#lookAt = Math.min(this.#lookAt, this.#context.now + LOOK_MS);
  }

  nextDeadline(): number | null {
    return this.#lookAt === Number.POSITIVE_INFINITY ? null : this.#lookAt;
  }

  onTick(): void {
    if (this.#lookAt > this.#context.now) return;
    this.#lookAt = Number.POSITIVE_INFINITY;
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
      // Its group has it, and this manager is behind.
      this.onChange();
      return [];
    }
    const files = [...new Set(submission.files.map(({ hash }) => hash))];
    this.#files.set(job.job, files);
    return files;
  }
}
