/**
 * Files of jobs on their way to where they are needed: what is not here is asked for part by part from
 * whoever ordered it, one part at a time, so that nothing waits behind a large file. Parts are put together in
 * memory, and kept by the driver when their hash is right.
 *
 *   want ─▶ lookUp ─▶ missing ─▶ get, get, … ─▶ keep ─▶ next file … ─▶ ready, or failed with the reason
 */

import type { Artifact, BlobHash } from "../messages.ts";

/** Files that are put together at one time take so much together; a larger one is refused. */
const BLOB_BYTES_MAX = 256 * 1_048_576;
/** A part that did not come is asked for again so often. */
const ATTEMPTS_MAX = 5;

export type FetchEffect =
  /** Which of these are not here: `lookedUp` answers. */
  | { readonly kind: "lookUp"; readonly job: string; readonly files: readonly Artifact[] }
  /** To whom; `part` answers. */
  | {
      readonly kind: "get";
      readonly job: string;
      readonly from: string;
      readonly hash: BlobHash;
      readonly offset: number;
    }
  /** `kept` answers: whether it is what its hash says, and on disk. */
  | {
      readonly kind: "keep";
      readonly job: string;
      readonly hash: BlobHash;
      readonly bytes: Uint8Array;
    }
  | { readonly kind: "ready"; readonly job: string }
  | { readonly kind: "failed"; readonly job: string; readonly problem: string };

interface Wanted {
  readonly from: string;
  missing: readonly Artifact[];
  /** Of the first that is missing. */
  bytes: Uint8Array;
  offset: number;
  attempts: number;
}

const NO_BYTES = new Uint8Array(0);

export class Fetches {
  readonly #wanted = new Map<string, Wanted>();

  get size(): number {
    return this.#wanted.size;
  }

  /** A job wants one set of files. */
  want(job: string, from: string, files: readonly Artifact[]): readonly FetchEffect[] {
    this.#wanted.set(job, { from, missing: [], bytes: NO_BYTES, offset: 0, attempts: 0 });
    return [{ kind: "lookUp", job, files }];
  }

  forget(job: string): void {
    this.#wanted.delete(job);
  }

  lookedUp(job: string, missing: readonly Artifact[]): readonly FetchEffect[] {
    const wanted = this.#wanted.get(job);
    if (wanted === undefined) return [];
    wanted.missing = missing;
    return this.#begin(job, wanted);
  }

  /** Null: no answer came, or the file is not there. */
  part(job: string, hash: BlobHash, bytes: Uint8Array | null): readonly FetchEffect[] {
    const wanted = this.#wanted.get(job);
    const [file] = wanted?.missing ?? [];
    if (wanted === undefined || file === undefined || file.hash !== hash) return [];
    if (bytes === null || bytes.length === 0) {
      if (++wanted.attempts < ATTEMPTS_MAX) return [this.#get(job, wanted, file)];
      return this.#fail(job, `${file.path} did not come from ${wanted.from}`);
    }
    wanted.attempts = 0;
    if (wanted.offset + bytes.length > file.bytes) {
      return this.#fail(job, `${file.path} is larger than was said`);
    }
    wanted.bytes.set(bytes, wanted.offset);
    wanted.offset += bytes.length;
    if (wanted.offset < file.bytes) return [this.#get(job, wanted, file)];
    return [{ kind: "keep", job, hash, bytes: wanted.bytes }];
  }

  kept(job: string, hash: BlobHash, problem: string | null): readonly FetchEffect[] {
    const wanted = this.#wanted.get(job);
    const [file] = wanted?.missing ?? [];
    if (wanted === undefined || file === undefined || file.hash !== hash) return [];
    if (problem !== null) return this.#fail(job, `${file.path}: ${problem}`);
    wanted.missing = wanted.missing.slice(1);
    return this.#begin(job, wanted);
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
    if (file.bytes > 0) return [this.#get(job, wanted, file)];
    return [{ kind: "keep", job, hash: file.hash, bytes: wanted.bytes }];
  }

  #get(job: string, { from, offset }: Wanted, { hash }: Artifact): FetchEffect {
    return { kind: "get", job, from, hash, offset };
  }

  #fail(job: string, problem: string): readonly FetchEffect[] {
    this.#wanted.delete(job);
    return [{ kind: "failed", job, problem }];
  }
}
