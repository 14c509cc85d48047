/**
 * Files of jobs on their way to a worker: what is not here is asked for part by part from the managers, first
 * of the one that ordered it, one part at a time, so that nothing waits behind a large file. Parts are put
 * together in memory, and kept by the driver when their hash is right.
 *
 *   want ─▶ lookUp ─▶ missing ─▶ get, get, … ─▶ keep ─▶ next file … ─▶ ready, or failed with the reason
 *
 * A manager that does not answer, has no copy yet or a damaged one, is passed over for the next; when all were
 * asked, they are asked again after a pause, for as long as a job may take to load.
 */

import type { Millis } from "../../base/brand.ts";
import { Deadlines } from "../../base/deadlines.ts";
import { type Artifact, BLOB_BYTES_MAX, type BlobHash } from "../messages.ts";

/** All managers are asked so often, without a part that came. */
const ROUNDS_MAX = 40;
const PAUSE_MS = 500;
/** Copies of one file that came and were not what its hash says. */
const DAMAGED_MAX = 5;

export type FetchEffect =
  /** Which of these are not here: `lookedUp` answers. */
  | { readonly kind: "lookUp"; readonly job: string; readonly files: readonly Artifact[] }
  /** To whom; `part` answers, with the number of the question. */
  | {
      readonly kind: "get";
      readonly job: string;
      readonly question: number;
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
  /** The managers, whoever is asked now first. */
  sources: readonly string[];
  missing: readonly Artifact[];
  /** Of the first that is missing. */
  bytes: Uint8Array;
  offset: number;
  /** The one that is open: what answers another comes too late. */
  question: number | null;
  /** Answers without a part since the last one that came. */
  failures: number;
  /** Copies of the first that is missing, from its first byte to its last, that were damaged. */
  damaged: number;
}

/** What became of a file that was to be kept. */
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
  /** Jobs whose next question waits. */
  readonly #pauses = new Deadlines<string>();
  #questions = 0;

  constructor(managers: readonly string[]) {
    this.#managers = managers;
  }

  get size(): number {
    return this.#wanted.size;
  }

  /** A job wants one set of files. */
  want(job: string, from: string, files: readonly Artifact[]): readonly FetchEffect[] {
    const sources = this.#sources(from);
    this.#wanted.set(job, {
      sources,
      missing: [],
      bytes: NO_BYTES,
      offset: 0,
      question: null,
      failures: 0,
      damaged: 0,
    });
    return [{ kind: "lookUp", job, files }];
  }

  /** Another manager leads the job: it is asked from now on. */
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

  /** Null: no answer came, or the file is not there. */
  part(
    job: string,
    question: number,
    bytes: Uint8Array | null,
    now: Millis,
  ): readonly FetchEffect[] {
    const wanted = this.#wanted.get(job);
    const [file] = wanted?.missing ?? [];
    if (wanted === undefined || file === undefined || wanted.question !== question) return [];
    wanted.question = null;
    if (bytes === null || bytes.length === 0) return this.#askNext(job, wanted, file, now);
    wanted.failures = 0;
    if (wanted.offset + bytes.length > file.bytes) {
      return this.#fail(job, `${file.path} is larger than was said`);
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
    wanted.question = null;
    if (file.bytes > 0) return this.#get(job, wanted);
    return [{ kind: "keep", job, hash: file.hash, bytes: wanted.bytes }];
  }

  #askNext(job: string, wanted: Wanted, file: Artifact, now: Millis): readonly FetchEffect[] {
    const { sources } = wanted;
    const [asked = ""] = sources;
    if (++wanted.failures >= ROUNDS_MAX * sources.length)
      return this.#fail(job, `${file.path} did not come from ${asked} or any other manager`);
    wanted.sources = [...sources.slice(1), asked];
    if (wanted.failures % sources.length > 0) return this.#get(job, wanted);
    this.#pauses.set(job, now + PAUSE_MS);
    return [];
  }

  #get(job: string, wanted: Wanted): readonly FetchEffect[] {
    const { missing, offset, sources } = wanted;
    const [file] = missing;
    const [from] = sources;
    if (file === undefined || from === undefined) return [];
    const question = ++this.#questions;
    wanted.question = question;
    return [{ kind: "get", job, question, from, hash: file.hash, offset }];
  }

  #fail(job: string, problem: string): readonly FetchEffect[] {
    this.forget(job);
    return [{ kind: "failed", job, problem }];
  }
}
