/**
 * Fetches files of jobs to a worker: missing files are requested chunk by chunk from the managers, beginning with the
 * one that ordered them. One chunk is requested at a time, so that nothing waits behind a large file. Chunks are
 * assembled in memory; the driver stores the file if its hash is right.
 *
 *   want ─▶ lookUp ─▶ missing ─▶ get, get, … ─▶ keep ─▶ next file … ─▶ ready, or failed with the reason
 *
 * A manager that does not answer, or has no copy or a damaged one, is skipped. After all were asked, the next round
 * starts after a pause, for as long as a job may take to load.
 */

import type { Millis } from "../../base/brand.ts";
import { Deadlines } from "../../base/deadlines.ts";
import { type Artifact, BLOB_BYTES_MAX, type BlobHash } from "../messages.ts";

/** Rounds over all managers without receiving a chunk. */
const ROUNDS_MAX = 40;
const PAUSE_MS = 500;
/** Damaged copies of one file before giving up. */
const DAMAGED_MAX = 5;

export type FetchEffect =
  /** Finds missing files. Answered by `lookedUp`. */
  | { readonly kind: "lookUp"; readonly job: string; readonly files: readonly Artifact[] }
  /** Requests a chunk from a manager. Answered by `part` with the request number. */
  | {
      readonly kind: "get";
      readonly job: string;
      readonly request: number;
      readonly from: string;
      readonly hash: BlobHash;
      readonly offset: number;
    }
  /** Verifies the hash and stores the file. Answered by `kept`. */
  | {
      readonly kind: "keep";
      readonly job: string;
      readonly hash: BlobHash;
      readonly bytes: Uint8Array;
    }
  | { readonly kind: "ready"; readonly job: string }
  | { readonly kind: "failed"; readonly job: string; readonly problem: string };

interface Wanted {
  /** Managers, the current one first. */
  sources: readonly string[];
  missing: readonly Artifact[];
  /** Content of the first missing file. */
  bytes: Uint8Array;
  offset: number;
  /** Open request; answers to any other are ignored. */
  request: number | null;
  /** Failed requests since the last received chunk. */
  failures: number;
  /** Complete but damaged copies of the first missing file. */
  damaged: number;
}

/** Result of storing a file. */
interface KeepOutcome {
  readonly job: string;
  readonly hash: BlobHash;
  readonly problem: string | null;
  readonly isDamaged: boolean;
}

const NO_BYTES = new Uint8Array(0);

export class Fetches {
  readonly #managers: readonly string[];
  readonly #wanted = new Map<string, Wanted>();
  /** Jobs that pause before their next request. */
  readonly #pauses = new Deadlines<string>();
  #requestCount = 0;

  constructor(managers: readonly string[]) {
    this.#managers = managers;
  }

  get size(): number {
    return this.#wanted.size;
  }

  /** Starts fetching the files of a job. Replaces an earlier request for the same job. */
  want(job: string, from: string, files: readonly Artifact[]): readonly FetchEffect[] {
    const sources = this.#sources(from);
    this.#wanted.set(job, {
      sources,
      missing: [],
      bytes: NO_BYTES,
      offset: 0,
      request: null,
      failures: 0,
      damaged: 0,
    });
    return [{ kind: "lookUp", job, files }];
  }

  /** Asks the new leader of the job first. */
  follow(job: string, from: string): void {
    const wanted = this.#wanted.get(job);
    if (wanted !== undefined) wanted.sources = this.#sources(from);
  }

  forget(job: string): void {
    this.#wanted.delete(job);
    this.#pauses.delete(job);
  }

  lookedUp(job: string, missing: readonly Artifact[]): readonly FetchEffect[] {
    const wanted = this.#wanted.get(job);
    if (wanted === undefined) return [];
    wanted.missing = missing;
    return this.#begin(job, wanted);
  }

  /** Chunk of a file; null if there was no answer or the manager lacks the file. */
  part(
    job: string,
    request: number,
    bytes: Uint8Array | null,
    now: Millis,
  ): readonly FetchEffect[] {
    const wanted = this.#wanted.get(job);
    const [file] = wanted?.missing ?? [];
    if (wanted === undefined || file === undefined || wanted.request !== request) return [];
    wanted.request = null;
    if (bytes === null || bytes.length === 0) return this.#askNext(job, wanted, file, now);
    wanted.failures = 0;
    if (wanted.offset + bytes.length > file.bytes) {
      return this.#fail(job, `${file.path} is larger than its declared ${file.bytes} bytes`);
    }
    wanted.bytes.set(bytes, wanted.offset);
    wanted.offset += bytes.length;
    if (wanted.offset < file.bytes) return this.#get(job, wanted);
    return [{ kind: "keep", job, hash: file.hash, bytes: wanted.bytes }];
  }

  kept(outcome: KeepOutcome, now: Millis): readonly FetchEffect[] {
    const { hash, isDamaged, job, problem } = outcome;
    const wanted = this.#wanted.get(job);
    const [file] = wanted?.missing ?? [];
    if (wanted === undefined || file === undefined || file.hash !== hash) return [];
    if (isDamaged && ++wanted.damaged < DAMAGED_MAX) {
      wanted.offset = 0;
      return this.#askNext(job, wanted, file, now);
    }
    if (problem !== null) return this.#fail(job, `${file.path}: ${problem}`);
    wanted.missing = wanted.missing.slice(1);
    return this.#begin(job, wanted);
  }

  nextDeadline(): number | null {
    return this.#pauses.next();
  }

  tick(now: Millis): readonly FetchEffect[] {
    return this.#pauses.takeDue(now).flatMap((job) => {
      const wanted = this.#wanted.get(job);
      return wanted === undefined ? [] : this.#get(job, wanted);
    });
  }

  #sources(from: string): readonly string[] {
    return [from, ...this.#managers.filter((manager) => manager !== from)];
  }

  #begin(job: string, wanted: Wanted): readonly FetchEffect[] {
    const [file] = wanted.missing;
    if (file === undefined) {
      this.#wanted.delete(job);
      return [{ kind: "ready", job }];
    }
    if (file.bytes > BLOB_BYTES_MAX) return this.#fail(job, `${file.path} is too large`);
    wanted.bytes = new Uint8Array(file.bytes);
    wanted.offset = 0;
    wanted.damaged = 0;
    wanted.request = null;
    if (file.bytes > 0) return this.#get(job, wanted);
    return [{ kind: "keep", job, hash: file.hash, bytes: wanted.bytes }];
  }

  #askNext(job: string, wanted: Wanted, file: Artifact, now: Millis): readonly FetchEffect[] {
    const { sources } = wanted;
    const [current = ""] = sources;
    if (++wanted.failures >= ROUNDS_MAX * sources.length)
      return this.#fail(
        job,
        `${file.path} could not be fetched from ${current} or any other manager`,
      );
    wanted.sources = [...sources.slice(1), current];
    if (wanted.failures % sources.length > 0) return this.#get(job, wanted);
    this.#pauses.set(job, now + PAUSE_MS);
    return [];
  }

  #get(job: string, wanted: Wanted): readonly FetchEffect[] {
    const { missing, offset, sources } = wanted;
    const [file] = missing;
    const [from] = sources;
    if (file === undefined || from === undefined) return [];
    const request = ++this.#requestCount;
    wanted.request = request;
    return [{ kind: "get", job, request, from, hash: file.hash, offset }];
  }

  #fail(job: string, problem: string): readonly FetchEffect[] {
    this.forget(job);
    return [{ kind: "failed", job, problem }];
  }
}
