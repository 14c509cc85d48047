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
/** Maximum size of one submission: manifests, options and file names; the files are blobs. */
export const SUBMISSION_BYTES_MAX = 262_144;
/** Maximum size of all waiting submissions together. */
const WAITING_BYTES_MAX = 1_048_576;
/** Maximum number of waiting jobs. */
export const WAITING_MAX = 1_000;
/** Finished jobs that are remembered with their keys; must be the same on all managers of all versions. */
const ENDED_MAX = 1_000;
const ENDED_BYTES_MAX = 524_288;
const SNAPSHOT_BYTES_MAX = 2_097_152;
/** Maximum size of all jobs; the rest of a snapshot is reserved for ending jobs, which must always be possible. */
const JOBS_BYTES_MAX = SNAPSHOT_BYTES_MAX - 262_144;
const NAME_CHARACTERS_MAX = 200;
const REASON_CHARACTERS_MAX = 1_000;
const NAME = /^[a-z0-9-]{1,32}$/;

/** Cores of one worker granted to a job. */
export interface Grant {
  readonly worker: string;
  readonly incarnation: number;
  /** All cores of the worker. */
  readonly capacity: number;
  readonly cores: number;
}

/** Resources that a job requests from the queue. */
export interface JobNeeds {
  /** CPU cores; null: as many as are free and useful. */
  readonly cores: number | null;
  /** Cores beyond this number would be idle. */
  readonly usefulCores: number;
  /** Limit for waiting and running together; null for no limit. */
  readonly timeoutMs: number | null;
  /** Tenant whose turn the job uses; null or absent for the default tenant. */
  readonly tenant?: string | null;
}

export interface DatacenterJob {
  readonly job: string;
  readonly key: string;
  readonly name: string;
  /** The manager that accepted the job and has its files; it leads the job first. */
  readonly takenBy: string;
  /** Digest of the job's identity. */
  readonly digest: string;
  /** Wall-clock milliseconds of the manager that accepted the job; for display only. */
  readonly createdAt: number;
  readonly needs: JobNeeds;
  readonly phase: "queued" | "admitted" | "ended";
  /** Kept until the job's group has it. */
  readonly submission: Uint8Array | null;
  readonly grants: readonly Grant[];
  /** Members of the job's group, in order. */
  readonly members: readonly string[];
  readonly status: JobStatus;
  readonly reason: string | null;
  readonly summary: BlobHash | null;
  /** Wall-clock milliseconds of the manager that ended the job. */
  readonly endedAt?: number;
  /** Calls of a finished job that left a result. */
  readonly calls?: CallCounts;
}

export type DatacenterEntry =
  | {
      readonly kind: "submit";
      readonly job: string;
      readonly key: string;
      readonly name: string;
      readonly takenBy: string;
      /** Digest of the job's identity: the same key with another digest is rejected. */
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
  /** The job's group has the submission. */
  | { readonly kind: "begun"; readonly job: string }
  /** Replaces cores of a lost worker. */
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
      /** Applies only while the job is queued: a cancel of an admitted job goes through its group. */
      readonly onlyQueued: boolean;
      /** Wall-clock milliseconds, for display. */
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
  /** Open jobs in the same order, so that assigning cores does not scan all remembered jobs. */
  readonly #open = new Map<string, DatacenterJob>();
  #changes = 0;
  /** Cores used by jobs, by worker and incarnation, as of a change. */
  #used: { readonly changes: number; readonly cores: ReadonlyMap<string, number> } | null = null;
  #byKey = new Map<string, string>();
  /** Bytes counted per job, and in total. */
  readonly #bytesOf = new Map<string, number>();
  #bytes = 0;
  #endedBytes = 0;
  /** When tenants were last served, over the remembered jobs. */
  readonly #served = new ServedTenants();
  /** Jobs accepted and jobs admitted while this process observed the group. */
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

  /** Increases with every change of a job. */
  get changes(): number {
    return this.#changes;
  }

  /**
   * When a job of each tenant last returned cores, by the wall clock of the manager that ended it; tenants never served
   * are absent.
   */
  get lastServed(): ReadonlyMap<string, number> {
    return this.#served.last;
  }

  /** Whether a remembered job was submitted with this key. */
  knows(key: string): boolean {
    return this.#byKey.has(key);
  }

  /** Cores of a worker used by jobs. */
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

  /** Returns the job id as the reason; it differs from the submitted id when the key was used before. */
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
 * Bytes of a job that count towards the bounds. Calls are excluded: older managers do not keep them and must forget the
 * same jobs at the same entries. They fit into the reserve.
 */
function countedBytes({ calls: _, ...job }: DatacenterJob): number {
  return encodePlain(job).length;
}

/**
 * Whether the group of a job may begin on a manager. An unknown job may not have arrived yet, or may be forgotten along
 * with this manager's promises in its group: such a group must wait until the job is known.
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

/** `endedMax`: simulations, in which few jobs finish, use a smaller number. */
export function datacenterKind(rules: ManagerRules, endedMax = ENDED_MAX): GroupKind {
  return {
    prefix: DATACENTER_PREFIX,
    operationBytesMax: SUBMISSION_BYTES_MAX + 65_536,
    snapshotBytesMax: SNAPSHOT_BYTES_MAX,
    found: (name) => (NAME.test(name) ? new DatacenterState(rules, endedMax) : null),
  };
}

export const DATACENTER_KIND = datacenterKind(MANAGER_RULES);
