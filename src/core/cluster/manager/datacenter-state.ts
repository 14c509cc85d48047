/**
 * The standing group of a datacenter: which jobs there are, in which order they wait, and whose cores are
 * whose. Cores are given here and nowhere else, all that a job needs or none. (`dc/NAME`)
 *
 *     submit ─▶ queued ─admit─▶ admitted (cores, members of its group) ─end─▶ ended
 *                  └────────────cancel / end without cores───────────────────▶
 *
 * A job's group is founded only by its admission, with the members that stand there. (VSR-26)
 */

import { encodePlain } from "../../base/plain-value.ts";
import { clipText } from "../../base/text.ts";
import type {
  Application,
  GroupKind,
  GroupPeek,
  Operation,
} from "../../ledger/node/application.ts";
import { type BlobHash, JOB_STATUSES, type JobStatus } from "../messages.ts";
import { MANAGER_RULES, type ManagerRules } from "./rules.ts";
import { type CallCounts, isCallCounts } from "./run-result.ts";
import { ServedTenants } from "./served-tenants.ts";
import {
  decodeShape,
  isBoolean,
  isBytes,
  isNumber,
  isText,
  isWhole,
  listOf,
  oneOf,
  optional,
  orNull,
  record,
  variant,
} from "./shapes.ts";

export const DATACENTER_PREFIX = "dc/";
/** Of one submission: manifests, options and names of files; the files are blobs. */
export const SUBMISSION_BYTES_MAX = 262_144;
/** Of all submissions that wait. */
const WAITING_BYTES_MAX = 1_048_576;
/** Jobs that wait. */
export const WAITING_MAX = 1_000;
/** Ended jobs that are remembered, with their keys; the same at all managers of all versions. */
const ENDED_MAX = 1_000;
const ENDED_BYTES_MAX = 524_288;
const SNAPSHOT_BYTES_MAX = 2_097_152;
/** Of all jobs: so much stays for those that end, which must always be possible. */
const JOBS_BYTES_MAX = SNAPSHOT_BYTES_MAX - 262_144;
const NAME_CHARACTERS_MAX = 200;
const REASON_CHARACTERS_MAX = 1_000;
const NAME = /^[a-z0-9-]{1,32}$/;

/** Cores of one worker that a job may use. */
export interface Grant {
  readonly worker: string;
  readonly incarnation: number;
  /** All that the worker has. */
  readonly capacity: number;
  readonly cores: number;
}

/** What a job asks of the queue. */
export interface JobNeeds {
  /** CPU cores; null: as many as are free and of use. */
  readonly cores: number | null;
  /** More than so many cores have nothing to do. */
  readonly usefulCores: number;
  /** Of its waiting and its run together; null for no limit. */
  readonly timeoutMs: number | null;
  /** Whose turn it takes; null or left out by who names none. */
  readonly tenant?: string | null;
}

export interface DatacenterJob {
  readonly job: string;
  readonly key: string;
  readonly name: string;
  /** The manager that holds its files: it leads the job first. */
  readonly takenBy: string;
  /** Of what makes the job. */
  readonly digest: string;
  /** Milliseconds of the wall clock of whoever took it: to be shown, not to be counted from. */
  readonly createdAt: number;
  readonly needs: JobNeeds;
  readonly phase: "queued" | "admitted" | "ended";
  /** Until its group has it. */
  readonly submission: Uint8Array | null;
  readonly grants: readonly Grant[];
  /** Of its group, in order. */
  readonly members: readonly string[];
  readonly status: JobStatus;
  readonly reason: string | null;
  readonly summary: BlobHash | null;
  /** Milliseconds of the wall clock of whoever ended it. */
  readonly endedAt?: number;
  /** Of one that has ended, if it left a result. */
  readonly calls?: CallCounts;
}

export type DatacenterEntry =
  | {
      readonly kind: "submit";
      readonly job: string;
      readonly key: string;
      readonly name: string;
      readonly takenBy: string;
      /** Of what makes the job: the same key with another one is refused. */
      readonly digest: string;
      readonly createdAt: number;
      readonly needs: JobNeeds;
      readonly submission: Uint8Array;
    }
  | {
      readonly kind: "admit";
      readonly job: string;
      readonly grants: readonly Grant[];
      readonly members: readonly string[];
    }
  /** Its group holds the submission. */
  | { readonly kind: "begun"; readonly job: string }
  /** Cores of a lost worker are replaced. */
  | {
      readonly kind: "regrant";
      readonly job: string;
      readonly lost: string;
      readonly incarnation: number;
      readonly grants: readonly Grant[];
    }
  | {
      readonly kind: "end";
      readonly job: string;
      readonly status: JobStatus;
      readonly reason: string | null;
      readonly summary: BlobHash | null;
      /** Only if it still waits: for a cancel, which otherwise is the business of its group. */
      readonly onlyQueued: boolean;
      /** Milliseconds of the wall clock, to be shown. */
      readonly at?: number;
      readonly calls?: CallCounts;
    };

const grant = record({ worker: isText, incarnation: isWhole, capacity: isWhole, cores: isWhole });

const needs = record({
  ...{ cores: orNull(isWhole), usefulCores: isWhole, timeoutMs: orNull(isNumber) },
  tenant: optional(orNull(isText)),
});

const isEntry = variant({
  submit: record({
    job: isText,
    key: isText,
    name: isText,
    takenBy: isText,
    digest: isText,
    createdAt: isWhole,
    needs,
    submission: isBytes,
  }),
  admit: record({ job: isText, grants: listOf(grant), members: listOf(isText) }),
  begun: record({ job: isText }),
  regrant: record({ job: isText, lost: isText, incarnation: isWhole, grants: listOf(grant) }),
  end: record({
    job: isText,
    status: oneOf(...JOB_STATUSES),
    reason: orNull(isText),
    summary: orNull(isText),
    onlyQueued: isBoolean,
    at: optional(isWhole),
    calls: optional(isCallCounts),
  }),
});

const isJob = record({
  job: isText,
  key: isText,
  name: isText,
  takenBy: isText,
  digest: isText,
  createdAt: isWhole,
  needs,
  phase: oneOf("queued", "admitted", "ended"),
  submission: orNull(isBytes),
  grants: listOf(grant),
  members: listOf(isText),
  status: oneOf(...JOB_STATUSES),
  reason: orNull(isText),
  summary: orNull(isText),
  endedAt: optional(isWhole),
  calls: optional(isCallCounts),
});

type Outcome = { readonly outcome: string; readonly reason: string | null };

const rejected = (reason: string): Outcome => ({ outcome: "rejected", reason });

export function encodeDatacenterEntry(entry: DatacenterEntry): Uint8Array {
  return encodePlain(entry);
}

export class DatacenterState implements Application {
  readonly #rules: ManagerRules;
  readonly #endedMax: number;
  /** In the order of submission. */
  readonly #jobs = new Map<string, DatacenterJob>();
  /** Those that have not ended, in the same order: whoever looks for cores need not pass all that is remembered. */
  readonly #open = new Map<string, DatacenterJob>();
  #changes = 0;
  /** Cores that jobs hold, by worker and incarnation, as of a change. */
  #used: { readonly changes: number; readonly cores: ReadonlyMap<string, number> } | null = null;
  #byKey = new Map<string, string>();
  /** What each job takes, and all of them. */
  readonly #bytesOf = new Map<string, number>();
  #bytes = 0;
  #endedBytes = 0;
  /** Of those that are remembered. */
  readonly #served = new ServedTenants();
  /** Jobs that came and jobs that got cores while this process looked on. */
  accepted = 0;
  dispatched = 0;

  constructor(rules: ManagerRules = MANAGER_RULES, endedMax = ENDED_MAX) {
    this.#rules = rules;
    this.#endedMax = endedMax;
  }

  get jobs(): ReadonlyMap<string, DatacenterJob> {
    return this.#jobs;
  }

  get open(): ReadonlyMap<string, DatacenterJob> {
    return this.#open;
  }

  /** Rises with every change of a job. */
  get changes(): number {
    return this.#changes;
  }

  /** When a job of each tenant last gave cores back, by the wall clock of who ended it; who had none is left out. */
  get lastServed(): ReadonlyMap<string, number> {
    return this.#served.last;
  }

  /** A job came with this key, and is remembered. */
  knows(key: string): boolean {
    return this.#byKey.has(key);
  }

  /** Cores of a worker that jobs hold. */
  usedCores(worker: string, incarnation: number): number {
    if (this.#used?.changes !== this.#changes)
      this.#used = { changes: this.#changes, cores: this.#countUsed() };
    return this.#used.cores.get(lifeOf(worker, incarnation)) ?? 0;
  }

  #countUsed(): ReadonlyMap<string, number> {
    const used = new Map<string, number>();
    const holders = this.#rules.grantsFreed ? this.#open : this.#jobs;
    for (const { grants } of holders.values())
      for (const { cores, incarnation, worker } of grants) {
        const life = lifeOf(worker, incarnation);
        used.set(life, (used.get(life) ?? 0) + cores);
      }
    return used;
  }

  problemOf(data: Uint8Array): string | null {
    return decodeShape(data, isEntry) === null ? "not an entry of a datacenter" : null;
  }

  apply({ data }: Operation): Outcome {
    const entry = decodeShape<DatacenterEntry>(data, isEntry);
    if (entry === null) return rejected("UNREADABLE");
    if (entry.kind === "submit") return this.#submit(entry);
    const job = this.#jobs.get(entry.job);
    if (job === undefined) return rejected("UNKNOWN_JOB");
    switch (entry.kind) {
      case "admit":
        return this.#admit(job, entry);
      case "begun":
        this.#put({ ...job, submission: null });
        return { outcome: "begun", reason: null };
      case "regrant":
        return this.#regrant(job, entry);
      case "end":
        return this.#end(job, entry);
    }
  }

  /** The reason is the id of the job, which is another one when the key was used before. */
  #submit(entry: Extract<DatacenterEntry, { kind: "submit" }>): Outcome {
    const { createdAt, digest, job, key, needs: asked, submission, takenBy } = entry;
    const name = clipText(entry.name, NAME_CHARACTERS_MAX);
    const known = this.#jobs.get(this.#byKey.get(key) ?? "");
    if (known !== undefined && this.#rules.keyOnce) {
      if (known.digest !== digest) return rejected("KEY_REUSED");
      return { outcome: "duplicate", reason: known.job };
    }
    if (this.#jobs.has(job)) return rejected("ID_TAKEN");
    const waiting = [...this.#open.values()].filter((one) => one.submission !== null);
    const bytes = waiting.reduce((sum, one) => sum + (one.submission?.length ?? 0), 0);
    if (waiting.length >= WAITING_MAX || bytes + submission.length > WAITING_BYTES_MAX)
      return rejected("QUEUE_FULL");
    const waits = { phase: "queued", status: "QUEUED", reason: null, summary: null } as const;
    const queued: DatacenterJob = {
      ...{ job, key, name, takenBy, digest, createdAt, needs: asked, submission },
      ...waits,
      grants: [],
      members: [],
    };
    if (!this.#hasRoom(queued)) return rejected("QUEUE_FULL");
    this.#put(queued);
    this.accepted++;
    this.#byKey.set(key, job);
    return { outcome: "queued", reason: job };
  }

  #admit(job: DatacenterJob, entry: Extract<DatacenterEntry, { kind: "admit" }>): Outcome {
    const { grants, members } = entry;
    if (job.phase !== "queued") return rejected("NOT_QUEUED");
    if (!this.#fits(grants)) return rejected("NO_CAPACITY");
    const admitted = { ...job, phase: "admitted", status: "STARTING", grants, members } as const;
    if (!this.#hasRoom(admitted)) return rejected("NO_ROOM");
    this.#put(admitted);
    this.dispatched++;
    return { outcome: "admitted", reason: null };
  }

  #regrant(job: DatacenterJob, entry: Extract<DatacenterEntry, { kind: "regrant" }>): Outcome {
    if (job.phase !== "admitted") return rejected("NOT_ADMITTED");
    if (!this.#fits(entry.grants)) return rejected("NO_CAPACITY");
    const kept = job.grants.filter(
      ({ incarnation, worker }) => worker !== entry.lost || incarnation !== entry.incarnation,
    );
    if (kept.length === job.grants.length) return rejected("NOT_HELD");
    const granted = { ...job, grants: [...kept, ...entry.grants] };
    if (!this.#hasRoom(granted)) return rejected("NO_ROOM");
    this.#put(granted);
    return { outcome: "granted", reason: null };
  }

  #fits(grants: readonly Grant[]): boolean {
    return grants.every(({ capacity, cores, incarnation, worker }) => {
      const together = grants
        .filter((one) => one.worker === worker && one.incarnation === incarnation)
        .reduce((sum, one) => sum + one.cores, 0);
      return cores > 0 && this.usedCores(worker, incarnation) + together <= capacity;
    });
  }

  #end(job: DatacenterJob, entry: Extract<DatacenterEntry, { kind: "end" }>): Outcome {
    const { at, calls, onlyQueued, status, summary } = entry;
    const reason = entry.reason === null ? null : clipText(entry.reason, REASON_CHARACTERS_MAX);
    if (job.phase === "ended") return { outcome: "ended", reason: null };
    if (onlyQueued && job.phase !== "queued") return rejected("NOT_QUEUED");
    const grants = this.#rules.grantsFreed ? [] : job.grants;
    const over = { phase: "ended", submission: null, grants } as const;
    const known = {
      ...(at === undefined ? {} : { endedAt: at }),
      ...(calls === undefined ? {} : { calls }),
    };
    this.#put({ ...job, ...over, status, reason, summary, ...known });
    this.#forgetOldest();
    return { outcome: "ended", reason: null };
  }

  #forgetOldest(): void {
    for (const job of this.#jobs.values()) {
      const count = this.#jobs.size - this.#open.size;
      if (count <= this.#endedMax && this.#endedBytes <= ENDED_BYTES_MAX) return;
      if (job.phase !== "ended") continue;
      const own = this.#bytesOf.get(job.job) ?? 0;
      this.#endedBytes -= own;
      this.#bytes -= own;
      this.#bytesOf.delete(job.job);
      this.#jobs.delete(job.job);
      this.#byKey.delete(job.key);
      this.#served.forget(job);
    }
  }

  #hasRoom(job: DatacenterJob): boolean {
    const before = this.#bytesOf.get(job.job) ?? 0;
    return this.#bytes - before + countedBytes(job) <= JOBS_BYTES_MAX;
  }

  #put(job: DatacenterJob): void {
    const bytes = countedBytes(job);
    const known = this.#jobs.get(job.job);
    const before = this.#bytesOf.get(job.job) ?? 0;
    this.#bytes += bytes - before;
    this.#bytesOf.set(job.job, bytes);
    this.#jobs.set(job.job, job);
    this.#changes++;
    if (known?.phase === "ended") {
      this.#endedBytes -= before;
      this.#served.forget(known);
    }
    if (job.phase === "ended") {
      this.#open.delete(job.job);
      this.#endedBytes += bytes;
      this.#served.add(job);
    } else this.#open.set(job.job, job);
  }

  snapshot(): Uint8Array {
    return encodePlain([...this.#jobs.values()]);
  }

  restore(bytes: Uint8Array): boolean {
    const jobs = decodeShape<readonly DatacenterJob[]>(bytes, listOf(isJob));
    if (jobs === null) return false;
    this.#changes++;
    this.#jobs.clear();
    this.#open.clear();
    this.#bytesOf.clear();
    this.#bytes = 0;
    this.#endedBytes = 0;
    this.#served.clear();
    for (const job of jobs) this.#put(job);
    this.#byKey = new Map(jobs.map(({ job, key }) => [key, job]));
    return true;
  }
}

function lifeOf(worker: string, incarnation: number): string {
  return `${incarnation}/${worker}`;
}

/**
 * What a job takes of the bounds. Its calls are left out: a manager of before does not keep them, and must forget the
 * same jobs at the same entries. All of them fit beside what is counted.
 */
function countedBytes({ calls: _, ...job }: DatacenterJob): number {
  return encodePlain(job).length;
}

/**
 * Whether the group of a job may begin at a manager. Where the job is not known it may be still to come, or forgotten
 * with all that this manager promised in its group: others must wait until it is known.
 */
export function mayRun(job: string, peek: GroupPeek): boolean {
  const found = peek(DATACENTER_PREFIX);
  if (!(found?.application instanceof DatacenterState)) return false;
  if (found.application.jobs.has(job)) return true;
  return found.tail.some((data) => {
    const entry = decodeShape<DatacenterEntry>(data, isEntry);
    return entry?.kind === "submit" && entry.job === job;
  });
}

/** `endedMax`: another number is for simulations, in which few jobs end. */
export function datacenterKind(rules: ManagerRules, endedMax = ENDED_MAX): GroupKind {
  return {
    prefix: DATACENTER_PREFIX,
    operationBytesMax: SUBMISSION_BYTES_MAX + 65_536,
    snapshotBytesMax: SNAPSHOT_BYTES_MAX,
    found: (name) => (NAME.test(name) ? new DatacenterState(rules, endedMax) : null),
  };
}

export const DATACENTER_KIND = datacenterKind(MANAGER_RULES);
